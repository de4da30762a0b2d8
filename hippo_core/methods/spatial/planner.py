"""Ways on a remembered map: A* by rustworkx, with the distance on the grid as its bound where places have cells."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import rustworkx

from hippo_core.methods.spatial.place_map import PlaceMap, beside
from hippo_core.spoken import MOVES


@dataclass(frozen=True, slots=True)
class Way:
    """A way: the places that it leads through, the first and the last among them, and the step words between them."""

    places: tuple[str, ...]
    words: tuple[str, ...]


class Planner:
    """Shortest ways on one map; every step costs one."""

    def __init__(self, place_map: PlaceMap) -> None:
        self.map = place_map
        self.names = list(place_map.steps)
        self.number = {place: number for number, place in enumerate(self.names)}
        self.graph = rustworkx.PyDiGraph(multigraph=False)
        self.graph.add_nodes_from(self.names)
        edges = [(self.number[a], self.number[b], word) for a, near in place_map.steps.items() for word, b in near.items()]
        self.graph.add_edges_from(edges)

    def way(self, start: str, goal: str) -> Way | None:
        """A shortest way; None where none leads there, or a place is not known. The way from a place to itself has no steps."""
        if start not in self.number or goal not in self.number:
            return None
        if start == goal:
            return Way((start,), ())
        try:
            passed = rustworkx.digraph_astar_shortest_path(
                self.graph, self.number[start], lambda place: place == goal, lambda _: 1.0, self._bound(goal)
            )
        except rustworkx.NoPathFound:
            return None
        words = [self.graph.get_edge_data(a, b) for a, b in pairwise(passed)]
        return Way(tuple(self.names[number] for number in passed), tuple(words))

    def _bound(self, goal: str) -> Callable[[str], float]:
        """At least so many steps from a place to the goal: the Manhattan distance where directions agree with each other, else 0."""
        cells = self.map.cells
        if goal not in cells or not self._consistent:
            return lambda _: 0.0
        row, column = cells[goal]
        return lambda place: float(abs(cells[place][0] - row) + abs(cells[place][1] - column)) if place in cells else 0.0

    @property
    def _consistent(self) -> bool:
        cells = self.map.cells
        steps = [(a, word, b) for a, near in self.map.steps.items() for word, b in near.items()]
        return all(word in MOVES and a in cells and cells.get(b) == beside(cells[a], word) for a, word, b in steps)
