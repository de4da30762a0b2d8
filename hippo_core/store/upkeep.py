"""What befalls traces after they are told: use, decay, eviction, deletion. Each call is a batch that can be undone (`changes`)."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hippo_core.files import LabError
from hippo_core.retrieval.sparse_key import SparseKey
from hippo_core.store import rows
from hippo_core.store.changes import Changes, told_key
from hippo_core.store.rows import WIDEST


class Upkeep(Changes):
    """A store's file with upkeep. Ids that are not there are a LabError, before anything changes."""

    def use(self, ids: Sequence[int]) -> None:
        """Count one use of each, as often as it is named."""
        self._rise("uses", Counter(map(int, ids)), "use")

    def aggregate(self, trace: int, times: int = 1) -> None:
        """Told again: its evidence rises. Undone only where this happens in a `maintenance` block."""
        if times < 1:
            raise LabError(f"a trace is told again once or more often, got {times}")
        if self._batch is not None:
            self._rise("evidence", {int(trace): times}, "aggregate")
            return
        self._living([trace])
        with self.together():
            self._rows("UPDATE traces SET evidence = evidence + ? WHERE id = ?", (times, int(trace)))

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

    def rekey(self, keys: Mapping[int, SparseKey]) -> None:
        """Give traces other keys; LabError, before anything changes, for one that is not of the store's kind."""
        before = self._all_of(self._living(list(keys)))
        for trace in before:
            rows.check(replace(trace, key=keys[trace.id]), self.identity, self.token_limit)
        with self.maintenance("rekey"):
            self._remember("key", {trace.id: told_key(trace.key) for trace in before})
            self._write_keys(keys)

    def delete(self, ids: Sequence[int]) -> None:
        """Delete these traces."""
        self._rise("gone", dict.fromkeys(map(int, ids), 1), "delete")

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
        latest = self._rows("SELECT world, max(time) FROM traces GROUP BY world")
        limits = {world: max(-WIDEST, time - age) for world, time in latest}
        found = [trace for limit in limits.items() for trace in self._ids("world = ? AND time < ? AND NOT pinned", limit)]
        self._rise("gone", dict.fromkeys(found, 1), "evict")
        return len(found)

    def worlds(self) -> list[str]:
        """The worlds that have traces, in the order of their names."""
        return [world for (world,) in self._rows("SELECT DISTINCT world FROM traces WHERE NOT gone ORDER BY world")]

    def _shift(self, ids: Sequence[int], by: float, kind: str) -> None:
        if not math.isfinite(by):
            raise LabError(f"salience changes by a finite number, got {by}; mend what computes it")
        found = self._saliences(self._living(ids))
        after = {trace: max(0.0, salience + by) for trace, salience in found.items()}
        if not all(map(math.isfinite, after.values())):
            raise LabError(f"salience would grow beyond all numbers by {by}; give less")
        self._set_salience(after, found, kind)
