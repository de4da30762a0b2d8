"""The store that a teacher writes to and a recall reads from."""

import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from hippo_core.files import LabError
from hippo_core.store import rows
from hippo_core.store.identity import Identity, as_values
from hippo_core.store.places import hold, store_path
from hippo_core.store.schema import lay_out, make_file
from hippo_core.store.trace import Decision, Refused, Trace
from hippo_core.store.upkeep import Upkeep

T = TypeVar("T")


class TraceStore(Upkeep):
    """Traces, and what a gate decided about each statement. Two tellings in the same order give the same file."""

    @classmethod
    def create(cls, folder: Path | str, session_id: str, identity: Identity, token_limit: int = 512, traces: Sequence[Trace] = ()) -> Self:
        """A new store, open for writing; LabError where one is there already. A trace may have up to `token_limit` tokens.

        `traces`, with ids of their own, are in it from the start: it is there with all of them or not at all.
        """
        if token_limit < 1:
            raise LabError(f"a store's traces have from 1 token, got a token limit of {token_limit}")
        for trace in traces:
            rows.check(trace, identity, token_limit)
        ids = {trace.id for trace in traces}
        if len(ids) < len(traces) or min(ids, default=1) < 1:
            raise LabError("a new store's traces have ids from 1 on, each its own; leave them out and append them, which gives ids")
        meta = {"identity": as_values(identity), "session_id": session_id, "token_limit": token_limit}
        return cls._made(store_path(folder, session_id), lay_out(meta, traces))

    def copy(self, folder: Path | str) -> Self:
        """This session in another folder, open for writing: ids, tombstones, decisions, all that can be undone. This store stays as it
        is; LabError where the other folder has the session already."""
        return self._made(store_path(folder, self.meta["session_id"]), self._write_to)

    @classmethod
    def _made(cls, path: Path, fill: Callable[[sqlite3.Connection], None]) -> Self:
        """A new store whose file is there whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = hold(path.parent)
        try:
            if path.exists():
                raise LabError(f"there is a store at {path} already; open it, name another session, or remove it first")
            make_file(path, fill)
        except BaseException:
            os.close(lock)
            raise
        return cls._opened(path, lock, expect=None)

    def append(self, traces: Iterable[Trace]) -> list[int]:
        """Write traces and return their new ids; they are on the disk then, all of them. Ids that they bring are not kept.

        LabError, before anything is written, where one cannot be stored (see `rows.check`).
        """
        told = list(traces)
        for trace in told:
            rows.check(trace, self.identity, self.token_limit)
        with self.together():
            [[last]] = self._rows("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'traces'")
            ids = list(range(last + 1, last + 1 + len(told)))
            self._many(rows.INSERT, map(rows.trace_row, told, ids))
        return ids

    def log(self, decisions: Iterable[Decision]) -> None:
        """Keep what a gate decided, in this order."""
        told = list(decisions)
        for decision in told:
            rows.check_decision(decision)
        with self.together():
            self._many(rows.LOG, map(rows.decision_row, told))

    def decisions(self) -> list[Decision]:
        """All that was logged, in order."""
        return self._decoded(rows.row_decision, self._rows(f"{rows.READ_LOG} ORDER BY id"))

    def refused(self) -> list[Refused]:
        """The statements that were not written, in order of telling."""
        found = self._rows(f"{rows.READ_LOG} WHERE action = 'refuse' ORDER BY id")
        return [Refused(decision.statement, decision.S) for decision in self._decoded(rows.row_decision, found)]

    def traces(self, world: str | None = None) -> list[Trace]:
        """The traces of a world, or of all, by id. A world that is not there has none."""
        of_world = ("", ()) if world is None else (" AND world = ?", (world,))
        found = self._rows(f"{rows.SELECT} WHERE NOT gone{of_world[0]} ORDER BY id", of_world[1])
        return self._decoded(partial(rows.row_trace, identity=self.identity), found)

    def size(self, world: str | None = None) -> int:
        """How many traces a world has, or all have."""
        of_world = ("", ()) if world is None else (" AND world = ?", (world,))
        [[count]] = self._rows(f"SELECT count(*) FROM traces WHERE NOT gone{of_world[0]}", of_world[1])
        return count

    def _decoded(self, decode: Callable[[tuple[Any, ...]], T], found: list[tuple[Any, ...]]) -> list[T]:
        """Rows as what they were before; LabError where one was changed by something else than a store."""
        try:
            return [decode(row) for row in found]
        except (ValueError, LabError) as error:
            raise self._damaged(error) from None
