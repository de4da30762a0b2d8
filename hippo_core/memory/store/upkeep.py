"""What befalls traces after they are told: use, decay, eviction, deletion, in batches that can be undone.

Every call is one batch, or part of the batch of a `maintenance` block. `rollback` undoes the last batches exactly; what was told
in between (appended, told again) stays. A trace that goes becomes a tombstone, until `purge` removes what cannot come back.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

from hippo_core.files import LabError
from hippo_core.memory.store.file import StoreFile

Field = Literal["salience", "uses", "evidence", "gone"]


class Upkeep(StoreFile):
    """A store file with upkeep. Ids that are not there are a LabError, before anything changes."""

    _batch: int | None = None

    @contextmanager
    def maintenance(self, kind: str) -> Iterator[None]:
        """One batch, one transaction, of all that is done within; `kind` says in `history` what it was. Blocks may be nested."""
        with self.together():
            if self._batch is not None:
                yield
                return
            [[self._batch]] = self._rows("INSERT INTO batches (kind) VALUES (?) RETURNING id", (kind,))
            try:
                yield
            finally:
                self._batch = None

    def history(self) -> list[str]:
        """The kinds of the batches that can be undone, oldest first."""
        return [kind for (kind,) in self._rows("SELECT kind FROM batches ORDER BY id")]

    def use(self, ids: Sequence[int]) -> None:
        """Count one use of each, as often as it is named."""
        self._rise("uses", Counter(ids), "use")

    def aggregate(self, trace: int, times: int = 1) -> None:
        """Told again: its evidence rises. Undone only where this happens in a `maintenance` block."""
        if times < 1:
            raise LabError(f"a trace is told again once or more often, got {times}")
        if self._batch is not None:
            self._rise("evidence", {trace: times}, "aggregate")
            return
        self._living([trace])
        with self.together():
            self._rows("UPDATE traces SET evidence = evidence + ? WHERE id = ?", (times, trace))

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
        found = self._saliences(None if ids is None else self._living(ids))
        self._set_salience({trace: (1 - rate) * salience for trace, salience in found.items()}, found, "decay")

    def delete(self, ids: Sequence[int]) -> None:
        """Delete these traces."""
        self._rise("gone", dict.fromkeys(ids, 1), "delete")

    def delete_provenance(self, provenance: str) -> int:
        """Delete all traces of this provenance; how many those were."""
        found = self._ids("provenance = ?", (provenance,))
        self._rise("gone", dict.fromkeys(found, 1), "delete")
        return len(found)

    def evict(self, budget: int | Mapping[str, int]) -> int:
        """Keep at most so many traces in each world, or in each world that is named; how many went.

        The lowest salience goes first, of equals the oldest; a pinned trace only when no unpinned one is left.
        """
        budgets = dict(budget) if isinstance(budget, Mapping) else dict.fromkeys(self.worlds(), budget)
        if any(kept < 0 for kept in budgets.values()):
            raise LabError(f"a budget is a number of traces, 0 or more, got {budget}")
        ranked = {world: self._ids("world = ?", (world,), "pinned, salience, id") for world in budgets}
        going = [trace for world, ids in ranked.items() for trace in ids[: max(0, len(ids) - budgets[world])]]
        self._rise("gone", dict.fromkeys(going, 1), "evict")
        return len(going)

    def expire(self, age: int) -> int:
        """Remove what was told more than `age` before the latest telling of its world, pinned traces excepted; how many went."""
        if age < 0:
            raise LabError(f"an age is 0 or more, in the world's order of telling, got {age}")
        found = self._ids("NOT pinned AND (SELECT max(time) FROM traces latest WHERE latest.world = traces.world) - time > ?", (age,))
        self._rise("gone", dict.fromkeys(found, 1), "evict")
        return len(found)

    def rollback(self, batches: int = 1) -> None:
        """Undo the last `batches` batches: every trace is as it was, but for what was told since."""
        found = [batch for (batch,) in self._rows("SELECT id FROM batches ORDER BY id DESC")]
        if not 1 <= batches <= len(found):
            raise LabError(f"expected from 1 to {len(found)} batches to undo, as many as there are, got {batches}")
        if self._batch is not None:
            raise LabError("a maintenance block is under way: end it before its batch can be undone")
        with self.together():
            for batch in found[:batches]:
                self._undo(batch)

    def purge(self) -> int:
        """Forget how to undo, and remove for good what is gone: its words are in the file no more. How many tombstones went."""
        if self._connection.in_transaction:
            raise LabError("a block is under way: end it before the store is purged")
        with self.together():
            removed = self._rows("DELETE FROM traces WHERE gone RETURNING id")
            self._rows("DELETE FROM undo")
            self._rows("DELETE FROM batches")
        self._rows("VACUUM")
        return len(removed)

    def worlds(self) -> list[str]:
        """The worlds that have traces, in the order of their names."""
        return [world for (world,) in self._rows("SELECT DISTINCT world FROM traces WHERE NOT gone ORDER BY world")]

    def _undo(self, batch: int) -> None:
        for trace, field, value in self._rows("SELECT trace, field, value FROM undo WHERE batch = ? ORDER BY id DESC", (batch,)):
            before = "?" if field == "salience" else f"{field} - ?"
            self._rows(f"UPDATE traces SET {field} = {before} WHERE id = ?", (value, trace))
        self._rows("DELETE FROM undo WHERE batch = ?", (batch,))
        self._rows("DELETE FROM batches WHERE id = ?", (batch,))

    def _ids(self, where: str, values: tuple[str | int, ...], order: str = "id") -> list[int]:
        return [trace for (trace,) in self._rows(f"SELECT id FROM traces WHERE NOT gone AND {where} ORDER BY {order}", values)]

    def _living(self, ids: Sequence[int]) -> list[int]:
        """Each of these ids once, in order; LabError where one is not there, or is gone."""
        found = self._ids("id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),))
        if missing := sorted(set(ids) - set(found)):
            raise LabError(f"{self.path} has no trace {missing[0]} ({len(missing)} such ids); give ids that `traces` returns")
        return found

    def _saliences(self, ids: Sequence[int] | None) -> dict[int, float]:
        """Of these traces, or of all that are there."""
        chosen = ("", ()) if ids is None else (" AND id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),))
        return dict(self._rows(f"SELECT id, salience FROM traces WHERE NOT gone{chosen[0]} ORDER BY id", chosen[1]))

    def _rise(self, field: Field, by: Mapping[int, int], kind: str) -> None:
        self._living(list(by))
        with self.maintenance(kind):
            self._many(f"UPDATE traces SET {field} = {field} + ? WHERE id = ?", ((count, trace) for trace, count in by.items()))
            self._remember(field, by)

    def _shift(self, ids: Sequence[int], by: float, kind: str) -> None:
        if not math.isfinite(by):
            raise LabError(f"salience changes by a finite number, got {by}; mend what computes it")
        found = self._saliences(self._living(ids))
        after = {trace: max(0.0, salience + by) for trace, salience in found.items()}
        if not all(map(math.isfinite, after.values())):
            raise LabError(f"salience would grow beyond all numbers by {by}; give less")
        self._set_salience(after, found, kind)

    def _set_salience(self, after: Mapping[int, float], before: Mapping[int, float], kind: str) -> None:
        with self.maintenance(kind):
            self._many("UPDATE traces SET salience = ? WHERE id = ?", ((value, trace) for trace, value in after.items()))
            self._remember("salience", before)

    def _remember(self, field: Field, values: Mapping[int, float]) -> None:
        rows = ((self._batch, trace, field, value) for trace, value in values.items())
        self._many("INSERT INTO undo (batch, trace, field, value) VALUES (?, ?, ?, ?)", rows)
