"""A map of labelled places: drawing one, walking on it, its shortest routes, and reading it back from its facts.

    steps[place][word] = the place that one reaches from `place` by the step `word`

On a grid a word is a direction, on a graph it is the name of the next place; all the rest is the same for both.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

import numpy as np
import rustworkx

from hippo_core.spoken import MOVES, OPPOSITE
from hippo_core.suites.types import Fact

Link = frozenset[str]  # of two places


@dataclass(frozen=True)
class Map:
    """Labelled places and the steps between them; every step can be taken back."""

    steps: dict[str, dict[str, str]]
    is_grid: bool

    @cached_property
    def places(self) -> list[str]:
        return sorted(self.steps)

    @cached_property
    def links(self) -> frozenset[Link]:
        """The pairs of linked places."""
        return frozenset(frozenset((a, b)) for a, near in self.steps.items() for b in near.values())

    @cached_property
    def distances(self) -> dict[str, dict[str, float]]:
        """Steps of a shortest route between any two places; infinite where there is none."""
        number = {place: i for i, place in enumerate(self.places)}
        graph = rustworkx.PyGraph(multigraph=False)
        graph.add_nodes_from(self.places)
        graph.add_edges_from_no_data([(number[a], number[b]) for a, near in self.steps.items() for b in near.values() if a < b])
        matrix = rustworkx.distance_matrix(graph, null_value=np.inf)
        return {a: dict(zip(self.places, row, strict=True)) for a, row in zip(self.places, matrix.tolist(), strict=True)}

    def walk(self, start: str, words: Iterable[str]) -> list[str] | None:
        """The places that the steps lead through, from `start` on; None where one of them leads nowhere."""
        passed = [start]
        for word in words:
            if word not in self.steps.get(passed[-1], {}):
                return None
            passed.append(self.steps[passed[-1]][word])
        return passed

    def route(self, random: Random, start: str, goal: str) -> list[str]:
        """The steps of a shortest route, drawn among all of them step by step."""
        words, here = [], start
        while here != goal:
            nearer = [word for word, place in self.steps[here].items() if self.distances[place][goal] < self.distances[here][goal]]
            words.append(random.choice(nearer))
            here = self.steps[here][words[-1]]
        return words

    def stroll(self, random: Random, start: str, length: int) -> list[str]:
        """The steps of a random walk that turns back only at dead ends."""
        words, here, before = [], start, None
        for _ in range(length):
            exits = list(self.steps[here].items())
            onward = [(word, place) for word, place in exits if place != before] or exits
            word, place = random.choice(onward)
            words.append(word)
            here, before = place, here
        return words

    def count_walks(self, start: str, goal: str, length: int) -> int:
        """How many different walks of this length lead from start to goal."""
        adjacency = np.array([[int(b in self.steps[a].values()) for b in self.places] for a in self.places])
        return int(np.linalg.matrix_power(adjacency, length)[self.places.index(start), self.places.index(goal)])

    def labelled(self, labels: Mapping[Link, str]) -> "Map":
        """The map on which a step is the label of its link."""
        return Map({a: {labels[frozenset((a, b))]: b for b in near.values()} for a, near in self.steps.items()}, is_grid=False)

    def without(self, links: Iterable[Link]) -> "Map":
        """The map with these links (pairs of places) taken out."""
        cut = set(links)
        remaining = {a: {word: b for word, b in near.items() if frozenset((a, b)) not in cut} for a, near in self.steps.items()}
        return Map(remaining, self.is_grid)


def ends_of(fact: Fact) -> set[str]:
    """The two places of a link's fact, {from, direction, to} on a grid, {a, b} on a graph; none of another fact."""
    for start, end in (("from", "to"), ("a", "b")):
        if {start, end} <= fact.slots.keys():
            return {fact.slots[start], fact.slots[end]}
    return set()


def read_map(facts: Iterable[Fact]) -> Map:
    """The map from the facts' slots: {from, direction, to} on a grid, {a, b} on a graph; other slots do not matter."""
    steps: dict[str, dict[str, str]] = {}
    is_grid = False
    for slots in (fact.slots for fact in facts):
        if {"from", "direction", "to"} <= slots.keys():
            is_grid = True
            steps.setdefault(slots["from"], {})[slots["direction"]] = slots["to"]
            steps.setdefault(slots["to"], {})[OPPOSITE[slots["direction"]]] = slots["from"]
        elif {"a", "b"} <= slots.keys():
            steps.setdefault(slots["a"], {})[slots["b"]] = slots["b"]
            steps.setdefault(slots["b"], {})[slots["a"]] = slots["a"]
    return Map(steps, is_grid)


def write_links(drawn: Map) -> str:
    """All links of a map in one line, each step of them apart: "mill north barn; barn south mill"."""
    return "; ".join(f"{a} {word} {b}" for a, near in drawn.steps.items() for word, b in near.items())


def read_links(text: str, is_grid: bool) -> Map:
    """The map that `write_links` wrote."""
    steps: dict[str, dict[str, str]] = {}
    for a, word, b in (link.split(" ") for link in text.split("; ")):
        steps.setdefault(a, {})[word] = b
    return Map(steps, is_grid)


Links = dict[int, dict[str, int]]  # a map before its places have names: node -> step word (on a graph: any) -> node


def draw_grid(random: Random, size: int, obstacles: float) -> tuple[Links, list[tuple[int, str]]]:
    """A connected grid with blocked cells, and for each of these one (neighbour, direction) that it bars."""
    cells = [(row, column) for row in range(size) for column in range(size)]
    while True:
        blocked = set(random.sample(cells, round(obstacles * len(cells))))
        number = {cell: i for i, cell in enumerate(cell for cell in cells if cell not in blocked)}
        links: Links = {i: {} for i in number.values()}
        bars: dict[tuple[int, int], list[tuple[int, str]]] = {}
        for (row, column), i in number.items():
            for word, (down, right) in MOVES.items():
                near = row + down, column + right
                if near in number:
                    links[i][word] = number[near]
                elif near in blocked:
                    bars.setdefault(near, []).append((i, word))
        if is_connected(links):
            return links, [random.choice(bars[cell]) for cell in sorted(bars)]


def draw_graph(random: Random, places: int, extra: int, max_degree: int = 4) -> Links:
    """A random tree with `extra` links more, no place with more than `max_degree` links; nodes in an order that grows from the first."""
    links: Links = {0: {}}

    def join(a: int, b: int) -> None:
        links[a][str(b)], links[b][str(a)] = b, a

    for node in range(1, places):
        links[node] = {}
        join(node, random.choice([other for other in links if other != node and len(links[other]) < max_degree]))
    for _ in range(extra):
        free = [node for node in links if len(links[node]) < max_degree]
        pairs = [(a, b) for a in free for b in free if a < b and str(b) not in links[a]]
        if not pairs:
            break
        join(*random.choice(pairs))
    return links


def build_walls(random: Random, links: Links, share: float) -> None:
    """Cut about this share of a grid's links; the grid stays connected."""
    pairs = [(a, word, b) for a, near in links.items() for word, b in near.items() if a < b]
    for a, word, b in random.sample(pairs, round(share * len(pairs))):
        del links[a][word], links[b][OPPOSITE[word]]
        if not is_connected(links):
            links[a][word], links[b][OPPOSITE[word]] = b, a


def is_connected(links: Links) -> bool:
    """Whether a path leads from any node to any other."""
    graph = rustworkx.PyGraph()
    graph.add_nodes_from(list(links))
    graph.add_edges_from_no_data([(a, b) for a, near in links.items() for b in near.values()])
    return rustworkx.is_connected(graph)


def name_places(
    random: Random, links: Links, labels: Sequence[str], allowed: Sequence[frozenset[int]], is_grid: bool, dead_ends: int
) -> Map | None:
    """The map with a label for each node, such that linked nodes get labels that may be linked.

    `allowed[i]` are the numbers of the labels that label i may be linked with. Nodes get their labels one after the other, the first that
    fits of a random order; where none is left, the last choice is undone (depth-first search). None after `dead_ends` such places.
    """
    order = random.sample(range(len(labels)), len(labels))
    nodes = list(links)
    earlier = [[other for other in near.values() if other < node] for node, near in links.items()]
    chosen: list[int] = []
    waiting: list[Iterator[int]] = []  # for each named node, and the next one, the labels that were not tried yet
    while len(chosen) < len(nodes):
        if len(waiting) == len(chosen):
            fits = [allowed[chosen[other]] for other in earlier[len(chosen)]]
            waiting.append(iter([i for i in order if i not in chosen and all(i in fit for fit in fits)]))
        label = next(waiting[-1], None)
        if label is not None:
            chosen.append(label)
            continue
        if not chosen or not dead_ends:
            return None
        dead_ends -= 1
        waiting.pop()
        chosen.pop()
    name = {node: labels[label] for node, label in zip(nodes, chosen, strict=True)}
    steps = {name[a]: {word if is_grid else name[b]: name[b] for word, b in near.items()} for a, near in links.items()}
    return Map(steps, is_grid)
