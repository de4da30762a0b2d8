"""Ways on mazes from 25 to 1,000,000 places: milliseconds and MiB of our planner beside scipy, rustworkx and networkx.

    python benchmarks/memory/planners.py [--sizes 5 10 32 100 316 1000]

A maze of size x size places: a random spanning tree of the grid and a tenth of the other links. All sides plan the same ways (random
pairs, and pairs that a walk of ten steps parts), whose lengths must agree, and say them in words. Then, ours alone: making the plan
of a map, hearing of one link (map and plan), and planning anew when a step of the way turns out to be closed. One thread; MiB is what
the process grows by while a side's graph is made, the lab's map not among them. networkx and rustworkx are skipped at a size where they
would take longer than the table needs. Places are numbered row by row on all sides.
"""

import argparse
import gc
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from random import Random
from statistics import median
from typing import Any

import networkx as nx
import numpy as np
import rustworkx
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, dijkstra

from hippo_core.methods.spatial.place_map import LinkMap
from hippo_core.methods.spatial.planner import Planner
from hippo_core.methods.spatial.reading import Link

SIZES, LOOPS, NEAR, ROUTES = (5, 10, 32, 100, 316, 1000), 0.1, 10, 50
Ask = Callable[[int, int], Sequence[Any]]


def maze(size: int, random: Random) -> list[tuple[int, int]]:
    """The links of a maze, as pairs of places, the southern or eastern one last."""
    edges = [(at, at + 1) for at in range(size * size) if (at + 1) % size]
    edges += [(at, at + size) for at in range(size * (size - 1))]
    parts = rustworkx.PyGraph()
    parts.add_nodes_from(range(size * size))
    parts.add_edges_from([(a, b, random.random()) for a, b in edges])
    tree = {(a, b) for a, b, _ in rustworkx.minimum_spanning_edges(parts, weight_fn=float)}
    return [edge for edge in edges if edge in tree or random.random() < LOOPS]


def remembered(size: int, links: Sequence[tuple[int, int]]) -> LinkMap:
    """The map of these links, each told once."""
    place_map = LinkMap()
    for number, (a, b) in enumerate(links):
        place_map.observe(number, Link(str(a), str(b), "east" if b == a + 1 else "south"))
    return place_map


def back(before: np.ndarray, start: int, goal: int) -> list[int]:
    """The places from the goal back to the start."""
    passed = [goal]
    while passed[-1] != start:
        passed.append(before.item(passed[-1]))
    return passed


def planners_of(size: int, links: Sequence[tuple[int, int]], place_map: LinkMap, names: Sequence[str]) -> dict[str, Callable[[], Ask]]:
    """What makes each side's graph, and from it what finds a way."""
    both = [*links, *((b, a) for a, b in links)]

    def ours() -> Ask:
        planner = Planner(place_map)
        return lambda a, b: planner.route(names[a], names[b]).words

    def by_scipy(search: str) -> Ask:
        a, b = np.array(both, np.int32).T
        matrix = csr_array((np.ones(len(both)), (a, b)), shape=(size * size, size * size))
        if search == "breadth":
            return lambda a, b: back(breadth_first_order(matrix, a)[1], a, b)
        return lambda a, b: back(dijkstra(matrix, indices=a, return_predecessors=True, unweighted=True)[1], a, b)

    def by_rustworkx(search: str) -> Ask:
        graph = rustworkx.PyDiGraph(multigraph=False)
        graph.add_nodes_from(range(size * size))
        graph.add_edges_from_no_data(both)
        if search == "dijkstra":
            return lambda a, b: list(rustworkx.digraph_dijkstra_shortest_paths(graph, a, target=b)[b])

        def astar(a: int, b: int) -> Sequence[int]:
            row, column = divmod(b, size)
            left = lambda at: float(abs(at // size - row) + abs(at % size - column))  # noqa: E731
            return list(rustworkx.digraph_astar_shortest_path(graph, a, lambda at: at == b, lambda _: 1.0, left))

        return astar

    def by_networkx() -> Ask:
        graph = nx.Graph(links)
        return lambda a, b: nx.bidirectional_shortest_path(graph, a, b)

    return {
        "ours": ours,
        "scipy, breadth first": lambda: by_scipy("breadth"),
        "scipy, Dijkstra": lambda: by_scipy("dijkstra"),
        "rustworkx, Dijkstra": lambda: by_rustworkx("dijkstra"),
        "rustworkx, A*": lambda: by_rustworkx("astar"),
        "networkx, from both ends": by_networkx,
    }


def resident() -> float:
    """MiB of memory that the process holds."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20


def ms(asks: Sequence[Callable[[], Any]]) -> float:
    """Milliseconds of CPU that a call takes, of all calls together, the best of three rounds where they are short."""
    rounds = []
    while not rounds or (len(rounds) < 3 and rounds[0] < 1000):
        begin = time.process_time()
        for ask in asks:
            ask()
        rounds.append((time.process_time() - begin) * 1e3)
    return min(rounds) / len(asks)


def pairs_of(size: int, links: Sequence[tuple[int, int]], random: Random, count: int) -> dict[str, list[tuple[int, int]]]:
    """Pairs anywhere, and pairs that a walk leads from one to the other of."""
    near: dict[int, list[int]] = {}
    for a, b in links:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)

    def end_of_walk(here: int) -> int:
        start, before = here, -1
        for _ in range(NEAR):
            here, before = random.choice([at for at in near[here] if at != before] or near[here]), here
        return here if here != start else near[start][0]

    starts = [random.randrange(size * size) for _ in range(count)]
    return {
        "anywhere": [(a, (a + random.randrange(1, size * size)) % size**2) for a in starts],
        "near": [(a, end_of_walk(a)) for a in starts],
    }


def compare(size: int) -> None:
    """A row a side."""
    random = Random(size)
    links = maze(size, random)
    place_map = remembered(size, links)
    pairs = pairs_of(size, links, random, ROUTES if size <= 100 else 5)
    lengths: dict[str, list[int]] = {}
    names = [str(at) for at in range(size * size)]
    for name, make in planners_of(size, links, place_map, names).items():
        gc.collect()
        memory, begin = resident(), time.process_time()
        ask = make()
        made, grown, row = time.process_time() - begin, resident() - memory, []
        for kind, asked in pairs.items():
            if size >= 1000 and name.startswith(("networkx", "rustworkx, Dijkstra")) and kind == "anywhere":
                row.append("–")
                continue
            route_lengths = [len(directions(place_map, names, ask, *pair)) for pair in asked]
            assert lengths.setdefault(kind, route_lengths) == route_lengths, name
            row.append(f"{ms([partial(directions, place_map, names, ask, *pair) for pair in asked]):.3f}")
        print(f"| {size * size:,} | {name} | {row[0]} | {row[1]} | {made * 1e3:,.1f} | {grown:.1f} |", flush=True)
        del ask
    changes(place_map, pairs["anywhere"], names)


def directions(place_map: LinkMap, names: Sequence[str], ask: Ask, a: int, b: int) -> Sequence[str]:
    """The steps of a way in words."""
    route = ask(a, b)
    if isinstance(route[0], str):  # ours says them itself
        return route
    names_on_route = [names[at] for at in route]
    return [next(word for word, near in place_map.steps[here].items() if near == other) for here, other in pairwise(names_on_route)]


def changes(place_map: LinkMap, pairs: Sequence[tuple[int, int]], names: Sequence[str]) -> None:
    """A row of what changes cost."""
    planner, update_ms, anew = Planner(place_map), [], []
    for number, (a, b) in enumerate(pairs):
        route = planner.route(names[a], names[b])
        step = len(route.words) // 2
        ends, word = route.places[step : step + 2], route.words[step]
        closed, opened = Link(*ends, word, closed=True), Link(*ends, word)

        def hear(link: Link, number: int = number) -> None:
            place_map.observe(number, link)
            planner.update()

        for link in (closed, closed):
            update_ms.append(once(partial(hear, link)))
        anew.append(once(partial(planner.route, names[a], names[b])))
        for link in (opened, opened, opened):
            hear(link)
    line = f"a link heard of {median(update_ms):.3f} ms; planned anew after a step failed {median(anew):.3f} ms"
    print(f"| {len(place_map.steps):,} | ours, {line} | | | | |", flush=True)


def once(do: Callable[[], Any]) -> float:
    """Milliseconds of CPU that one call takes."""
    begin = time.process_time()
    do()
    return (time.process_time() - begin) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    print("| places | side | a way anywhere, ms of CPU | a way nearby, ms | the graph made, ms | MiB |\n|--:|---|--:|--:|--:|--:|")
    for size in parser.parse_args().sizes:
        compare(size)


if __name__ == "__main__":
    main()
