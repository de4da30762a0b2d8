"""Routes on a remembered map, by scipy: breadth-first where every step costs one, Dijkstra's where steps have costs of their own.

scipy searches all that can be reached, so on a large map a few places around the start are searched first. Each place has a row of slots,
and a free slot leads back to the place itself. So a new or closed link changes one row, and the matrix is rebuilt only when a row, or the
matrix, is full.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, dijkstra

from hippo_core.methods.spatial.place_map import PlaceMap

SLOTS = 4  # of a place that is new: as many as there are directions; others have one to spare, hubs a fourth
AROUND = 100  # one place of so many, and so many at most, are looked at before scipy looks at all of them
ROW_MARGIN = 1.25  # rows for each place


@dataclass(frozen=True, slots=True)
class PlannedRoute:
    """A route: its places from the first to the last, and the step words between them."""

    places: tuple[str, ...]
    words: tuple[str, ...]


class Planner:
    """Routes of least cost on one map; of fewest steps where all cost the same."""

    def __init__(self, place_map: PlaceMap) -> None:
        self.map = place_map
        self._build()

    def route(self, start: str, goal: str) -> PlannedRoute | None:
        """A best route; None where there is none, or a place is not known. The route from a place to itself has no steps."""
        if start not in self.number or goal not in self.number:
            return None
        most = 0 if self.map.is_weighed else min(len(self.names) // AROUND, AROUND)
        places = (most and self._around(start, goal, most)) or self._anywhere(start, goal)
        return PlannedRoute(places, tuple(self._word(a, b) for a, b in pairwise(places))) if places else None

    def _around(self, start: str, goal: str, most: int) -> tuple[str, ...]:
        """The places of a way of fewest steps, if it is found among so many around the start."""
        before, steps = {start: ""}, self.map.steps
        for here in (waiting := [start]):
            if goal in before or len(before) > most:
                break
            new = [near for near in steps[here].values() if near not in before]
            before |= dict.fromkeys(new, here)
            waiting += new
        passed = [goal] if goal in before else []
        while passed and passed[-1] != start:
            passed.append(before[passed[-1]])
        return tuple(reversed(passed))

    def _anywhere(self, start: str, goal: str) -> tuple[str, ...]:
        """The places of a best way; none where there is none."""
        first, last = self.number[start], self.number[goal]
        if self.map.is_weighed:
            _, before = dijkstra(self.matrix, indices=first, return_predecessors=True)
        else:
            _, before = breadth_first_order(self.matrix, first)
        passed = [last]
        while passed[-1] != first:
            if (here := before.item(passed[-1])) < 0:
                return ()
            passed.append(here)
        return tuple(self.names[number] for number in reversed(passed))

    def update(self, *places: str) -> None:
        """Copy the changed steps of these places from the map."""
        for place in places:
            if place not in self.number:
                self.number[place] = len(self.names)
                self.names.append(place)
        if len(self.names) >= len(self.matrix.indptr) or not all(self._take_over(place) for place in places):
            self._build()

    def _word(self, a: str, b: str) -> str:
        return next(word for word, near in self.map.steps[a].items() if near == b)

    def _build(self) -> None:
        steps = self.map.steps
        self.names = list(steps)
        self.number = {place: number for number, place in enumerate(self.names)}
        rows = int(ROW_MARGIN * len(self.names)) + SLOTS
        linked = np.zeros(rows, np.int64)
        linked[: len(self.names)] = [len(near) for near in steps.values()]
        slots = np.where(linked > 0, linked + 1 + linked // SLOTS, SLOTS)
        ends = np.concatenate(([0], np.cumsum(slots)))
        leads = np.repeat(np.arange(rows), slots)
        used = np.arange(len(leads)) < np.repeat(ends[:-1] + linked, slots)
        leads[used] = [self.number[b] for near in steps.values() for b in near.values()]
        self.matrix = csr_array((np.ones(len(leads)), leads.astype(np.int32), ends.astype(np.int32)), shape=(rows, rows))
        for a in {a for a, _ in (*self.map.costs, *self.map.doubts)} & self.number.keys():
            self._take_over(a)

    def _take_over(self, place: str) -> bool:
        """Whether the steps of a place fit into its row; if so they are put there."""
        near, number = self.map.steps.get(place, {}), self.number[place]
        begin, end = self.matrix.indptr[number : number + 2]
        if len(near) > end - begin:
            return False
        free = end - begin - len(near)
        self.matrix.indices[begin:end] = [*(self.number[b] for b in near.values()), *[number] * free]
        self.matrix.data[begin:end] = [*(self.map.cost(place, b) for b in near.values()), *[1.0] * free]
        return True
