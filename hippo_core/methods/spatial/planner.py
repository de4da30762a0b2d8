"""Routes on a remembered map, by scipy: breadth-first where every step costs one, Dijkstra's where some steps are uncertain and cost more.

scipy searches all that can be reached, so on a large map a few places around the start are searched first. The matrix of steps is built
with the planner, and again when it is first needed after a change of the map.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, dijkstra

from hippo_core.methods.spatial.place_map import PlaceMap

AROUND = 100  # one place of so many, and so many at most, are looked at before scipy looks at all of them


@dataclass(frozen=True, slots=True)
class PlannedRoute:
    """A route: its places from the first to the last, and the step words between them."""

    places: tuple[str, ...]
    words: tuple[str, ...]


class Planner:
    """Routes of least cost on one map; of fewest steps where all cost the same."""

    def __init__(self, place_map: PlaceMap) -> None:
        self.map = place_map
        self._matrix: csr_array | None = self._steps()

    def route(self, start: str, goal: str) -> PlannedRoute | None:
        """A best route; None where there is none, or a place is not known. The route from a place to itself has no steps."""
        if start not in self.map.steps or goal not in self.map.steps:
            return None
        most = 0 if self.map.doubts else min(len(self.map.steps) // AROUND, AROUND)
        places = (most and self._around(start, goal, most)) or self._anywhere(start, goal)
        return PlannedRoute(places, tuple(self._word(a, b) for a, b in pairwise(places))) if places else None

    def update(self) -> None:
        """Plan on what the map has become."""
        self._matrix = None

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
        if self._matrix is None:
            self._matrix = self._steps()
        first = self._number[start]
        if self.map.doubts:
            _, before = dijkstra(self._matrix, indices=first, return_predecessors=True)
        else:
            _, before = breadth_first_order(self._matrix, first)
        passed = [self._number[goal]]
        while passed[-1] != first:
            if (here := before.item(passed[-1])) < 0:
                return ()
            passed.append(here)
        return tuple(self._names[at] for at in reversed(passed))

    def _steps(self) -> csr_array:
        """The costs of the steps between places as a matrix; the places are numbered as the map has them."""
        steps = self.map.steps
        self._names = list(steps)
        self._number = {place: at for at, place in enumerate(self._names)}
        leads = np.array([self._number[b] for near in steps.values() for b in near.values()], np.int32)
        ends = np.cumsum([0, *(len(near) for near in steps.values())], dtype=np.int32)
        costs = [self.map.cost(a, b) for a, near in steps.items() for b in near.values()] if self.map.doubts else np.ones(len(leads))
        return csr_array((np.array(costs, float), leads, ends), shape=(len(steps), len(steps)))

    def _word(self, a: str, b: str) -> str:
        return next(word for word, near in self.map.steps[a].items() if near == b)
