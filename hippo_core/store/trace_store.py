"""The store that a teacher writes to and a recall reads from: traces in a file, and a journal of what befalls them after they are told.

Each call that changes traces is a batch that can be undone. Ids that are not there are a LabError, before anything changes.
"""

import json
import math
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from hippo_core.errors import LabError
from hippo_core.store import rows
from hippo_core.store.file import StoreFile
from hippo_core.store.identity import Identity, as_values
from hippo_core.store.journal import Journal
from hippo_core.store.paths import hold, store_path
from hippo_core.store.rows import WIDEST
from hippo_core.store.schema import lay_out, make_file
from hippo_core.store.trace import Decision, Refused, Trace
from hippo_core.text import normal

T = TypeVar("T")


class TraceStore:
    """Traces, and what a gate decided about each statement. Two tellings in the same order give the same file."""

    def __init__(self, file: StoreFile) -> None:
        self.file, self.journal = file, (journal := Journal(file))
        self.note, self.together, self.compact, self.close = file.note, file.together, file.compact, file.close
        self.maintenance, self.history, self.rollback = journal.maintenance, journal.history, journal.rollback
        self.purge, self.update_payloads = journal.purge, journal.replace_payloads

    @classmethod
    def open(cls, folder: Path | str, session_id: str, expect: Identity | None = None, read_only: bool = False) -> Self:
        """The store of a session. LabError, in one line, where it is missing, damaged, not a store, held by another writer, or was
        written with another model or memory than `expect` (None: any; payloads are bytes then)."""
        return cls(StoreFile.open(folder, session_id, expect, read_only))

    @classmethod
    def create(cls, folder: Path | str, session_id: str, identity: Identity, traces: Sequence[Trace] = ()) -> Self:
        """A new store, open for writing, with these traces, which have ids of their own, in it from the start or not at all; LabError where
        one is there already."""
        for trace in traces:
            rows.check(trace, identity.codec)
        ids = {trace.id for trace in traces}
        if len(ids) < len(traces) or min(ids, default=1) < 1:
            raise LabError("a new store's traces have ids from 1 on, each its own; leave them out and append them, which gives ids")
        meta = {"identity": as_values(identity), "session_id": session_id}
        return cls._made(store_path(folder, session_id, identity.algorithm), lay_out(meta, traces, identity.codec), identity)

    def copy(self, folder: Path | str) -> Self:
        """This session in another folder, open for writing: ids, tombstones, decisions, all that can be undone. This store stays as it
        is; LabError where the other folder has the session already."""
        identity = self.file.identity
        return self._made(store_path(folder, self.file.meta["session_id"], identity.algorithm), self.file.write_to, identity)

    @classmethod
    def _made(cls, path: Path, fill: Callable[[sqlite3.Connection], None], identity: Identity) -> Self:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = hold(path.parent)
        try:
            if path.exists():
                raise LabError(f"there is a store at {path} already; open it, name another session, or remove it first")
            make_file(path, fill)
        except BaseException:
            os.close(lock)
            raise
        return cls(StoreFile.opened(path, lock, identity))

    def append(self, traces: Iterable[Trace]) -> list[int]:
        """Write traces and return their new ids; they are on the disk then, all of them. LabError, before anything is written, where one
        cannot be stored (see `rows.check`)."""
        self.file.check_writable()
        batch = list(traces)
        for trace in batch:
            rows.check(trace, self.file.codec)
        with self.together():
            [[last]] = self.file.rows("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'traces'")
            ids = list(range(last + 1, last + 1 + len(batch)))
            self.file.many(rows.INSERT, (rows.trace_row(trace, number, self.file.codec) for trace, number in zip(batch, ids, strict=True)))
        return ids

    def log(self, decisions: Iterable[Decision]) -> None:
        """Keep what a gate decided, in this order."""
        logged = list(decisions)
        for decision in logged:
            rows.check_decision(decision)
        with self.together():
            self.file.many(rows.LOG, map(rows.decision_row, logged))

    def decisions(self, world: str | None = None) -> list[Decision]:
        """All that was logged, or all of a world, in order."""
        of_world = ("", ()) if world is None else (" WHERE world = ?", (world,))
        return self._decoded(rows.row_decision, self.file.rows(f"{rows.READ_LOG}{of_world[0]} ORDER BY id", of_world[1]))

    def told(self, world: str) -> int:
        """How many statements of a world were decided about."""
        [[count]] = self.file.rows("SELECT count(*) FROM decisions WHERE world = ?", (world,))
        return count

    @property
    def changes(self) -> int:
        """A number that is another one after every change, through this store or another one that has the file open."""
        return self.file.changes

    def refused(self) -> list[Refused]:
        """The statements that were not written, in order of telling."""
        table_rows = self.file.rows(f"{rows.READ_LOG} WHERE action = 'refuse' ORDER BY id")
        return [Refused(decision.statement, decision.S) for decision in self._decoded(rows.row_decision, table_rows)]

    def traces(self, world: str | None = None) -> list[Trace]:
        """The traces of a world, or of all, by id. A world that is not there has none."""
        of_world = ("", ()) if world is None else (" AND world = ?", (world,))
        table_rows = self.file.rows(f"{rows.SELECT} WHERE NOT gone{of_world[0]} ORDER BY id", of_world[1])
        return self._decoded(partial(rows.row_trace, codec=self.file.codec), table_rows)

    def size(self, world: str | None = None) -> int:
        """How many traces a world has, or all have."""
        of_world = ("", ()) if world is None else (" AND world = ?", (world,))
        [[count]] = self.file.rows(f"SELECT count(*) FROM traces WHERE NOT gone{of_world[0]}", of_world[1])
        return count

    def _decoded(self, decode: Callable[[tuple[Any, ...]], T], table_rows: list[tuple[Any, ...]]) -> list[T]:
        """Rows decoded; LabError where one was changed by something else than a store."""
        try:
            return [decode(row) for row in table_rows]
        except (ValueError, LabError) as error:
            raise self.file.damaged(error) from None

    def use(self, ids: Sequence[int]) -> None:
        """Count one use of each, as often as it is named."""
        self.journal.rise("uses", Counter(map(int, ids)), "use")

    def aggregate(self, trace: int, times: int = 1) -> None:
        """Told again: its evidence rises. Undone only where this happens in a `maintenance` block."""
        if times < 1:
            raise LabError(f"a trace is told again once or more often, got {times}")
        if self.journal.batch is not None:
            self.journal.rise("evidence", {int(trace): times}, "aggregate")
            return
        self.journal.living([trace])
        with self.together():
            self.file.rows("UPDATE traces SET evidence = evidence + ? WHERE id = ?", (times, int(trace)))

    def retell(self, trace: Trace, payload: Any) -> None:
        """Told again: its evidence rises by one, and its payload takes the telling in. As what was told stays, no batch is made of it.
        LabError, before anything changes, for a trace that is not there as it is given, or a payload that is not of the store's kind."""
        after, codec = replace(trace, payload=payload), self.file.codec
        rows.check(after, codec)
        _, before, _ = rows.payload_row(trace, codec)
        with self.together():
            if not self.file.rows(rows.ADD_EVIDENCE, (*rows.payload_row(after, codec), before)):
                self.journal.living([trace.id])  # says that it is not there
                raise LabError(f"trace {trace.id} of {self.file.path} is another one by now; read it anew, then tell it again")

    def raise_salience(self, ids: Sequence[int], by: float) -> None:
        """Add `by` to the salience of each."""
        self._shift(ids, by, "raise")

    def lower_salience(self, ids: Sequence[int], by: float) -> None:
        """Take `by` from the salience of each, down to 0."""
        self._shift(ids, -by, "lower")

    def decay(self, rate: float, ids: Sequence[int] | None = None) -> None:
        """salience <- (1 - rate) * salience, of all that are there or of these."""
        if not 0 <= rate <= 1:
            raise LabError(f"a decay rate is from 0 to 1, got {rate}")
        before = self.journal.saliences(None if ids is None else self.journal.living(ids))
        self.journal.set_salience({trace: (1 - rate) * salience for trace, salience in before.items()}, before, "decay")

    def delete(self, ids: Sequence[int]) -> None:
        """Delete these traces."""
        self.journal.rise("gone", dict.fromkeys(map(int, ids), 1), "delete")

    def delete_provenance(self, provenance: str) -> int:
        """Delete all traces of this provenance; how many those were. LabError for an empty one, which all have that were told without."""
        if not normal(provenance, "the provenance").strip():
            raise LabError("a provenance is needed, got an empty one, which all have that were told without; give ids in its place")
        ids = self.journal.ids("provenance = ?", (provenance,))
        self.journal.rise("gone", dict.fromkeys(ids, 1), "delete")
        return len(ids)

    def erase(self, ids: Sequence[int]) -> None:
        """Remove these traces for good, gone or not, with what was decided about the statements that they stand for and all that could be
        undone of them: every other row is as if they had never been told. Ids are not given again. `compact` takes their words too."""
        chosen = (json.dumps(self.journal.known(ids)),)
        among = "IN (SELECT value FROM json_each(?))"
        with self.together():
            self.file.owe()
            self.file.rows(f"DELETE FROM traces WHERE id {among}", chosen)
            self.file.rows(f"DELETE FROM decisions WHERE trace {among}", chosen)
            self.file.rows(f"DELETE FROM undo WHERE trace {among}", chosen)
            self.file.rows("DELETE FROM batches WHERE id NOT IN (SELECT batch FROM undo)")

    def erase_world(self, world: str) -> None:
        """Remove a world for good: its traces, gone or not, and what was decided about its statements. `compact` takes their words too."""
        of_world = "IN (SELECT id FROM traces WHERE world = ?)"
        with self.together():
            self.file.owe()
            self.file.rows(f"DELETE FROM undo WHERE trace {of_world}", (world,))
            self.file.rows("DELETE FROM batches WHERE id NOT IN (SELECT batch FROM undo)")
            self.file.rows("DELETE FROM traces WHERE world = ?", (world,))
            self.file.rows("DELETE FROM decisions WHERE world = ?", (world,))

    def evict(self, budget: int | Mapping[str, int]) -> int:
        """Keep at most so many traces in each world, or in each that is named; how many went. The lowest salience goes first, of equals the
        oldest; a pinned trace only when no unpinned one is left."""
        budgets = dict(budget) if isinstance(budget, Mapping) else dict.fromkeys(self.worlds(), budget)
        if any(count < 0 for count in budgets.values()):
            raise LabError(f"a budget is a number of traces, 0 or more, got {budget}")
        ranked = {world: self.journal.ids("world = ?", (world,), "pinned, salience, id") for world in budgets}
        going = [trace for world, ids in ranked.items() for trace in ids[: max(0, len(ids) - budgets[world])]]
        self.journal.rise("gone", dict.fromkeys(going, 1), "evict")
        return len(going)

    def expire(self, age: int, world: str | None = None) -> int:
        """Remove what was told last more than `age` before the latest telling of its world, or of this one alone, pinned traces excepted;
        how many went."""
        if age < 0:
            raise LabError(f"an age is 0 or more, in the world's order of telling, got {age}")
        latest = self.file.rows(
            "SELECT world, max(time) FROM (SELECT world, time FROM traces UNION ALL SELECT world, time FROM decisions) "
            "WHERE coalesce(world = ?, 1) GROUP BY world",
            (world,),
        )
        recent = "SELECT trace FROM decisions WHERE world = ?1 AND time >= ?2 AND trace IS NOT NULL"
        stale = f"world = ?1 AND time < ?2 AND NOT pinned AND id NOT IN ({recent})"
        limits = [(name, max(-WIDEST, time - age)) for name, time in latest]
        ids = [trace for limit in limits for trace in self.journal.ids(stale, limit)]
        self.journal.rise("gone", dict.fromkeys(ids, 1), "evict")
        return len(ids)

    def forget(self, world: str, ttl: int | None, merge: float | None, new: Collection[int]) -> None:
        """Expire what was told last more than `ttl` ago in a world, and merge earlier traces into near-equal ones with the ids `new`, from
        the cosine `merge` on (near_equal.py). None: nothing goes."""
        if ttl is not None:
            self.expire(ttl, world)
        if merge is not None:
            from hippo_core.store.near_equal import near_equal

            self.merge(near_equal(self.traces(world), merge, new))

    def merge(self, groups: Iterable[Sequence[Trace]]) -> set[int]:
        """Merge each group into its last trace, which gets the evidence of all. Returns the ids of those deleted."""
        by_last = {last.id: earlier for *earlier, last in groups if earlier}
        merged = {trace.id for earlier in by_last.values() for trace in earlier}
        if merged:
            with self.maintenance("merge"):
                for last, earlier in by_last.items():
                    self.aggregate(last, sum(trace.evidence for trace in earlier))
                self.delete(list(merged))
        return merged

    def worlds(self) -> list[str]:
        """The worlds that have traces, in the order of their names."""
        return [world for (world,) in self.file.rows("SELECT DISTINCT world FROM traces WHERE NOT gone ORDER BY world")]

    def _shift(self, ids: Sequence[int], by: float, kind: str) -> None:
        if not math.isfinite(by):
            raise LabError(f"salience changes by a finite number, got {by}; mend what computes it")
        before = self.journal.saliences(self.journal.living(ids))
        after = {trace: max(0.0, salience + by) for trace, salience in before.items()}
        if not all(map(math.isfinite, after.values())):
            raise LabError(f"salience would grow beyond all numbers by {by}; give less")
        self.journal.set_salience(after, before, kind)

    @property
    def meta(self) -> dict[str, Any]:
        """session_id, identity, and what `note` added."""
        return self.file.meta

    @property
    def identity(self) -> Identity:
        """What the store was written with."""
        return self.file.identity

    @property
    def path(self) -> Path:
        """Its file."""
        return self.file.path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
