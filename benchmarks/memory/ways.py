"""Write a folder suite of unique shortest ways from its hand-written frames.

    python -m benchmarks.memory.ways data/ways

reads ``frames.yaml`` of the folder and writes ``facts.jsonl`` and ``items.jsonl`` beside it.
Every link can be walked both ways and costs one step; a closed one cannot be walked.
Every second world has compass directions.

The committed files of ``data/ways`` are frozen: they were written before the choice of closed links was
made independent of the hash seed, and a new run gives other ones. Write new suites to new folders.
"""

from __future__ import annotations

import argparse
import json
import random
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import yaml

COMPASS = {(0, 1): "north", (0, -1): "south", (1, 0): "east", (-1, 0): "west"}
BACK = {"north": "south", "south": "north", "east": "west", "west": "east"}
STEPS = (2, 3, 4)


def fill(frame: str, **words: str) -> str:
    """The frame with its words, its first letter a capital."""
    text = frame.format(**words)
    return text[0].upper() + text[1:]


def bare(name: str) -> str:
    return name.removeprefix("the ")


def place_map(names: list[str], rng: random.Random) -> nx.Graph:
    """A random tree of the places with a few links more."""
    graph = nx.Graph()
    graph.add_node(names[0])
    for count, name in enumerate(names[1:], 1):
        few = [other for other in names[:count] if graph.degree[other] < 3]
        graph.add_edge(name, rng.choice(few[-4:]))
    for _ in range(len(names) // 5):
        graph.add_edge(*rng.sample(names, 2))
    return graph


def compass_map(names: list[str], rng: random.Random) -> nx.Graph:
    """Places on a grid, grown cell by cell; ``way`` of a link is its direction from either end."""
    cells = {(0, 0): names[0]}
    graph = nx.Graph()
    graph.add_node(names[0])
    for name in names[1:]:
        free = [((x, y), (x + dx, y + dy)) for x, y in cells for dx, dy in COMPASS if (x + dx, y + dy) not in cells]
        here, there = rng.choice(free)
        cells[there] = name
        for (dx, dy), direction in COMPASS.items():
            near = (there[0] - dx, there[1] - dy)
            if near in cells and (near == here or rng.random() < 0.3):
                other = cells[near]
                graph.add_edge(other, name, way={other: direction, name: BACK[direction]})
    return graph


def wordings(steps: list[str], start: str = "") -> list[str]:
    """The accepted ways to say the steps, the plain one first."""
    lists = [steps, [start, *steps]] if start else [steps]
    texts: list[str] = []
    for wordings_of in lists:
        for words in ([bare(step) for step in wordings_of], wordings_of):
            texts += [
                ", ".join(words),
                ", then ".join(words),
                " then ".join(words),
                ", ".join(words[:-1]) + " and " + words[-1],
                ", ".join(words[:-1]) + ", and " + words[-1],
                " ".join(words),
            ]
    return list(dict.fromkeys(texts))


def turning(frames: list[str], rng: random.Random):
    """Frames in shuffled order, each once before any comes again."""
    while True:
        yield from rng.sample(frames, len(frames))


def build(words: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The facts and the items of all worlds."""
    rng = random.Random(words["seed"])
    kinds = ("places", "directions", "distractors", "closed", "asked_places", "asked_directions")
    turn = {kind: turning(words[kind], rng) for kind in kinds}
    facts: list[dict[str, Any]] = []
    items: list[dict[str, Any]] = []
    for number in range(words["worlds"]):
        world, kind = f"w{number:02}", "directions" if number % 2 else "places"
        pool = ["the " + name for name in words["names"]["plain"]]
        if number // 2 % 2:
            pool += ["the " + name for name in words["names"]["two"]]
        if number // 2 % 3 == 2:
            pool += words["names"]["proper"] * 2
        names = list(dict.fromkeys(rng.sample(pool, len(pool))))[: rng.randint(10, 20)]
        graph = (compass_map if kind == "directions" else place_map)(names, rng)
        statements: list[tuple[str, dict[str, str], frozenset[str]]] = []
        for a_name, b_name, link in graph.edges(data=True):
            a, b = rng.sample((a_name, b_name), 2)
            direction = link["way"][a] if kind == "directions" else ""
            text = fill(next(turn[kind]), a=a, b=b, d=direction, o=BACK.get(direction, ""))
            slots = {"a": bare(a), "b": bare(b)}
            spoken = next((d for d in (direction, BACK.get(direction, "")) if d and d in text), "")
            statements.append((text, slots | ({"way": spoken} if spoken else {}), frozenset((a, b))))
        apart = [p for p in combinations(names, 2) if not graph.has_edge(*p) and nx.shortest_path_length(graph, *p) > 2]
        for a, b in rng.sample(apart, min(2, len(apart))):
            statements.append((fill(next(turn["closed"]), a=a, b=b), {}, frozenset()))
        for _ in range(4):
            a, b = rng.sample(names, 2)
            person = rng.choice(words["people"])
            statements.append((fill(next(turn["distractors"]), a=a, b=b, p=person), {}, frozenset()))
        rng.shuffle(statements)
        ids = {}
        for index, (text, slots, ends) in enumerate(statements):
            ids[ends] = f"{world}f{index:02}"
            facts.append({"id": ids[ends], "world": world, "text": text, "slots": slots})
        asked = [(a, b) for a in names for b in names if a != b]
        rng.shuffle(asked)
        paths = {pair: list(nx.all_shortest_paths(graph, *pair)) for pair in asked}
        sole = {pair: path[0] for pair, path in paths.items() if len(path) == 1}
        by_steps = {n: [p for p in sole.values() if len(p) == n + 1] for n in STEPS}
        for count in range(words["questions_per_world"]):
            steps = STEPS[count % len(STEPS)]
            if not by_steps[steps]:
                continue
            direction = by_steps[steps].pop()
            links = list(pairwise(direction))
            moves = [graph.edges[a, b]["way"][a] for a, b in links] if number % 2 else direction[1:]
            items.append(
                {
                    "id": f"{world}q{count}",
                    "world": world,
                    "question": fill(next(turn["asked_" + kind]), a=direction[0], b=direction[-1]),
                    "answers": wordings(moves, "" if number % 2 else direction[0]),
                    "gold_facts": [ids[frozenset(link)] for link in links],
                    "kind": kind,
                    "hops": steps,
                    "slices": [f"steps_{steps}"],
                }
            )
    return facts, items


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where frames.yaml is")
    folder = parser.parse_args().folder
    words = yaml.safe_load((folder / "frames.yaml").read_text(encoding="utf-8"))
    for name, rows in zip(("facts", "items"), build(words), strict=True):
        (folder / f"{name}.jsonl").write_text(lines(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
