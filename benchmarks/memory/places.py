"""How well the fitted reader reads statements of places that it was not fitted on, and maps that are told in them.

    python -m benchmarks.memory.places [--split test] [--worlds 24]

Statements of the bank of places: wordings that training lacks, in settings that it has; and all of the settings that it lacks. Then maps
of 10 to 20 places that are told in these wordings alone, with links that are closed and sentences that tell none, and ways asked for in
questions of the split. The reader alone, no model: whether the map's way is right, in places or in directions. Then a link of the way is
told to be closed, and to be open again, and the way is asked for once more. At last what a map of 100 places costs. One thread.
"""

import argparse
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from random import Random
from statistics import median
from typing import Any

import networkx as nx
import torch

from hippo_core.methods.spatial.answers import MapAnswerer
from hippo_core.methods.spatial.encoder import SAYS
from hippo_core.methods.spatial.learned import PlaceReader, fitted_places
from hippo_core.spoken import NO_PATH
from hippo_core.suites.types import Split
from recipes import place_bank as bank
from recipes.place_encoder import marked, says_of, stands_of
from recipes.place_lessons import PEOPLE, SIDES, PlaceLessons

COMPASS = {(0, 1): "north", (0, -1): "south", (1, 0): "east", (-1, 0): "west"}
BACK = {"north": "south", "south": "north", "east": "west", "west": "east"}
STEPS = (2, 3, 4)
OPEN = ("link", "forward", "back", "opened")
NAMES = {
    "one word": "mill barn well attic tower smithy market pond chapel ford kennel pantry wharf orchard granary study dairy library inn",
    "two words": "long gallery, white house, salt barn, dove cote, brick kiln, wash house, fish pond, wine shop, bell tower, herb garden, "
    "ice house, sheep pen, boat yard, cider press, tea room, east pier, old mill, coal cellar, map room, rope walk",
    "proper": "Saint Olave's, Marsh End, Tanner's Row, Kiln Lane, Hope Square, Birch Hall, Ward 7, Hold 2, Kettle Yard, Harrow Green, "
    "Quince Hill, Dolphin Square, Rook Lane, Penny Wharf, Larkfield, Room 12, Vine Cottage, Oxley Gate, Cold Harbour, Gate 4",
}


def statements(reader: PlaceReader, split: Split, unseen: bool) -> dict[str, float]:
    """What is read right of every statement of a split, three times each with other places."""
    texts = PlaceLessons(split, 7, unseen).every(3)
    made, turns = marked(texts, reader.marker)
    hits = dict.fromkeys(("right", "open", "said open", "both", "none", "false", "ends", "ends right"), 0)
    with torch.inference_mode():
        for first in range(0, len(texts), 32):
            part = slice(first, first + 32)
            for text, reading in zip(texts[part], reader.model(made[part], turns[part]), strict=True):
                for i, j, says in says_of(text):
                    label = SAYS[int(reading.says[i, j].argmax())]
                    expected, read = SAYS[says] in OPEN, label in OPEN
                    hits["right"] += label == SAYS[says]
                    hits["open"] += expected
                    hits["said open"] += read
                    hits["both"] += expected and read
                    hits["none"] += SAYS[says] == "none"
                    hits["false"] += SAYS[says] == "none" and read
                for i, j, begins in stands_of(text):
                    hits["ends"] += 1
                    hits["ends right"] += (float(reading.stands[i, j]) > 0) == bool(begins)
    return {
        "statements": len(texts),
        "kind right": hits["right"] / len(texts),
        "F1 of links": 2 * hits["both"] / (hits["open"] + hits["said open"]),
        "false links": hits["false"] / max(1, hits["none"]),
        "direction right": hits["ends right"] / max(1, hits["ends"]),
    }


def frames_of(split: Split, unseen: bool, random: Random) -> dict[str, list[str]]:
    """The wordings of a split as `build_maps` takes them."""
    chosen = bank.unseen(split) if unseen else bank.frames(split)
    frames: dict[str, list[str]] = {"places": [], "directions": [], "distractors": [], "closed": [], "opened": []}
    for frame in chosen:
        fills = {"means": random.choice(bank.means(frame.setting)), "minutes": str(random.randrange(2, 30)), "side": random.choice(SIDES)}
        fills |= {"who": random.choice(PEOPLE)}
        text = frame.text.replace("{direction}", "{d}")
        for slot, word in fills.items():
            text = text.replace(f"{{{slot}}}", word)
        if kind := {"none": "distractors", "closed": "closed", "opened": "opened", "link": "directions" if "{d}" in text else "places"}.get(
            frame.label
        ):
            frames[kind].append(text)
    frames["asked_places"] = frames["asked_directions"] = [text for text, asks in bank.questions(split) if asks == "way"]
    return frames


def fill(frame: str, **words: str) -> str:
    """The frame with its words, its first letter a capital."""
    text = frame.format(**words)
    return text[0].upper() + text[1:]


def bare(name: str) -> str:
    return name.removeprefix("the ")


def place_map(names: list[str], rng: Random) -> nx.Graph:
    """A random tree of the places with a few links more."""
    graph = nx.Graph()
    graph.add_node(names[0])
    for count, name in enumerate(names[1:], 1):
        few = [other for other in names[:count] if graph.degree[other] < 3]
        graph.add_edge(name, rng.choice(few[-4:]))
    for _ in range(len(names) // 5):
        graph.add_edge(*rng.sample(names, 2))
    return graph


def compass_map(names: list[str], rng: Random) -> nx.Graph:
    """Places on a grid, grown cell by cell; `way` of a link is its direction from either end."""
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


def turning(frames: list[str], rng: Random):
    """Frames in shuffled order, each once before any comes again."""
    while True:
        yield from rng.sample(frames, len(frames))


def build_maps(words: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The facts and the items of worlds with unique shortest ways: every link can be walked both ways and costs one step, a closed one
    cannot be walked; every second world has compass directions."""
    rng = Random(words["seed"])
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


@dataclass(frozen=True)
class MapTexts:
    """A map that is told: its statements, the statements' slots, and its questions."""

    texts: list[str]
    slots: list[dict[str, str]]
    items: list[dict[str, Any]]


def maps(words: Mapping[str, Sequence[str]], names: Sequence[str], worlds: int) -> Iterator[MapTexts]:
    """Such maps; the names that begin with a capital have no article."""
    given = {"names": {"plain": list(names), "two": [], "proper": []}, "people": PEOPLE, "seed": 7}
    facts, items = build_maps({**words, **given, "worlds": worlds, "questions_per_world": 10})
    bare = re.compile(rf"\b[Tt]he (?=(?:{'|'.join(name for name in names if name[0].isupper()) or '$'})\b)")
    for world in dict.fromkeys(fact["world"] for fact in facts):
        own = [fact for fact in facts if fact["world"] == world]
        asked = [item | {"question": bare.sub("", item["question"])} for item in items if item["world"] == world]
        yield MapTexts([bare.sub("", fact["text"]) for fact in own], [fact["slots"] for fact in own], asked)


def answered_paths(reader: PlaceReader, drawn_maps: Sequence[MapTexts]) -> tuple[float, int]:
    """The share of ways that the maps answer right, and of how many."""
    right, count = 0, 0
    for map_ in drawn_maps:
        atlas = MapAnswerer(map_.texts, reader=reader)
        for item in map_.items:
            given = atlas.answer(item["question"])
            answer = given.answer if given else ""
            if given and given.route and item["kind"] == "directions":
                answer = ", ".join(given.route.words)
            right += answer.lower() in [accepted.lower().replace("the ", "") for accepted in item["answers"]]
            count += 1
    return right / count, count


def doors(reader: PlaceReader, drawn_maps: Sequence[MapTexts], words: Mapping[str, Sequence[str]]) -> tuple[float, float, int]:
    """The shares of ways answered right once a link in their midst was told to be closed, and once it was told to be open again, and of how
    many: ways told as places."""
    random, closed, opened, count = Random(7), 0, 0, 0
    for map_ in drawn_maps:
        graph = nx.Graph([(slots["a"], slots["b"]) for slots in map_.slots if "a" in slots])
        article = {place: "" if place[0].isupper() else "the " for place in graph}
        for item in (item for item in map_.items if item["kind"] == "places"):
            route = next(places for answer in item["answers"] if len(places := answer.split(", ")) == item["hops"] + 1)
            start, goal = route[0], route[-1]
            ends = route[len(route) // 2 - 1 : len(route) // 2 + 1]
            a, b = (article[place] + place for place in ends)
            closed_text, opened_text = (fill(random.choice(words[kind]), a=a, b=b) for kind in ("closed", "opened"))
            rest = graph.copy()
            rest.remove_edge(*ends)
            paths = list(nx.all_shortest_paths(rest, start, goal)) if nx.has_path(rest, start, goal) else []
            right = [text.lower() for path in paths for text in wordings(path[1:], path[0])] or list(NO_PATH)
            texts = [*map_.texts, closed_text]
            closed += _answer(MapAnswerer(texts, reader=reader), item["question"]) in right
            opened += _answer(MapAnswerer([*texts, opened_text], reader=reader), item["question"]) in [
                accepted.lower().replace("the ", "") for accepted in item["answers"]
            ]
            count += 1
    return closed / count, opened / count, count


def _answer(atlas: MapAnswerer, question: str) -> str:
    answer = atlas.answer(question)
    return answer.answer.lower() if answer else ""


def costs(reader: PlaceReader, words: Mapping[str, Sequence[str]]) -> tuple[float, float]:
    """Milliseconds a statement of a map of 100 places when it is taught, and a question (the median of 50)."""
    random = Random(7)
    names = random.sample(sorted({place for setting in bank.settings_of("train") for place in bank.places(setting)}), 100)
    frames, texts = turning(list(words["directions"]), random), []
    for a, b, link in compass_map(names, random).edges(data=True):
        texts.append(fill(next(frames), a=a, b=b, d=link["way"][a], o=link["way"][b]))
    begin = time.perf_counter()
    atlas = MapAnswerer(texts, reader=reader)
    taught = (time.perf_counter() - begin) / len(texts)
    asked = list[float]()
    for _ in range(50):
        a, b = random.sample(names, 2)
        question = fill(random.choice(words["asked_directions"]), a=a, b=b)
        begin = time.perf_counter()
        atlas.answer(question)
        asked.append(time.perf_counter() - begin)
    return 1000 * taught, 1000 * median(asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", default="test", choices=("val", "test"))
    parser.add_argument("--worlds", type=int, default=24)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    reader = fitted_places()
    print("| statements | how many | kind right | F1 of links | false links | direction right |\n|---|--:|--:|--:|--:|--:|")
    for unseen, what in ((False, "wordings that training lacks"), (True, "settings that it lacks")):
        measures = statements(reader, arguments.split, unseen)
        print(f"| {what} | {measures.pop('statements'):.0f} | " + " | ".join(f"{value:.3f}" for value in measures.values()) + " |")
    print("\n| maps told in | places called by | ways | right | of ways as places | a link closes | it opens again |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for unseen, what in ((False, "wordings that training lacks"), (True, "settings that it lacks")):
        words = frames_of(arguments.split, unseen, Random(7))
        for name, names in NAMES.items():
            maps_ = list(maps(words, re.split(", | " if name == "one word" else ", ", names), arguments.worlds))
            share, count = answered_paths(reader, maps_)
            closed, opened, n_places = doors(reader, maps_, words)
            print(f"| {what} | {name} | {count} | {share:.3f} | {n_places} | {closed:.3f} | {opened:.3f} |", flush=True)
    taught, asked = costs(reader, frames_of(arguments.split, False, Random(7)))
    print(f"\nA map of 100 places: {taught:.1f} ms a statement when it is taught, {asked:.1f} ms a question.")


if __name__ == "__main__":
    main()
