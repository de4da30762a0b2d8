"""Ways in mazes that others made (MiniGrid), told step by step by a walker, in which a door closes midway.

    python benchmarks/memory/minigrid_ways.py [--worlds 20] [--sizes 5 7 9 11 12] [--model hippo-tiny --asked 8] [--in-bank-words]
        (after `make peers`)

A walker goes to the neighbour that it has passed least, says what it meets in the words of the suite `spatial` (validation split), and has
been everywhere twice; between the two rounds one link of a shortest way closes. Labels are repeated where there are more places than
labels; those that are asked about have one of their own. A way is right if it can be walked on the map as it is in the end and leads to
the goal; where the closed link cut the goal off, "none" is. Of each world five questions, told apart by what the closed link does:

    same     a way that is as short as before
    round    a longer one, round the closed link
    no path  none any more

`size`: cells that a maze spans at most. The planner alone, and what a model answers that is told its sentence. `--in-bank-words`: the
walker speaks as the test part of the bank of places does, to which the reader was not fitted. One thread.
"""

import argparse
import importlib.util
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import networkx as nx

from hippo_core import Memory
from hippo_core.methods.spatial.answers import MapAnswerer
from hippo_core.methods.spatial.learned import fitted_places
from hippo_core.methods.spatial.place_map import Cell, beside
from hippo_core.spoken import MOVES, NO_PATH, OPPOSITE
from hippo_core.suites.spatial import words
from hippo_core.suites.spatial.explore import ExploredCell, render_visit
from hippo_core.suites.spatial.map import Map
from hippo_core.suites.spatial.path import read_steps
from recipes import place_bank as bank

SIZES, QUESTIONS, NEAREST, SEEDS = (5, 7, 9, 11, 12), 5, 3, 300
ALONE = 40  # labels that only one place has
Steps = dict[Cell, dict[str, Cell]]


@dataclass(frozen=True)
class ToldMaze:
    """What a walker told of a maze, the maze as it is in the end, and questions: their kind, start, goal and fewest steps."""

    texts: list[str]
    true: Map
    questions: list[tuple[str, str, str, float]]


def free(env: Any) -> set[Cell]:
    """The cells of a maze that can be reached, through doors too."""
    cells = ((row, column, env.grid.get(column, row)) for row in range(env.height) for column in range(env.width))
    steps = steps_of({(row, column) for row, column, tile in cells if tile is None or tile.type in ("goal", "door", "floor")})
    column, row = env.agent_pos
    return reached(steps, (int(row), int(column)))


def mazes(kind: str, size: int) -> Iterator[set[Cell]]:
    """Mazes of one kind that span at most so many cells each way; none where MiniGrid has none."""
    from minigrid.core.world_object import Lava, Wall
    from minigrid.envs.crossing import CrossingEnv
    from minigrid.envs.empty import EmptyEnv
    from minigrid.envs.multiroom import MultiRoomEnv

    n_rooms, largest = ROOMS[size] if size in ROOMS else (2 + size // 6, 3 + size // 4)
    made: dict[str, Callable[[], Any]] = {
        "open room": lambda: EmptyEnv(size=size + 2),
        "walls to cross": lambda: CrossingEnv(size=size + 2, num_crossings=size // 2, obstacle_type=Wall),
        "lava to cross": lambda: CrossingEnv(size=size + 2, num_crossings=size // 2, obstacle_type=Lava),
        "rooms with doors": lambda: MultiRoomEnv(n_rooms, n_rooms, largest),
    }
    if "cross" in kind and size % 2 == 0:
        return
    env = made[kind]()
    for seed in range(SEEDS):
        env.reset(seed=seed)
        cells = free(env)
        if all(max(at) - min(at) < size for at in zip(*cells, strict=True)):
            yield cells


ROOMS = {5: (2, 4), 7: (2, 5), 9: (3, 5), 11: (3, 6), 12: (4, 6)}  # how many, and how wide with their walls, such that mazes fit
KINDS = ("open room", "walls to cross", "lava to cross", "rooms with doors")


def steps_of(cells: set[Cell]) -> Steps:
    """The steps between cells."""
    return {cell: {word: near for word in MOVES if (near := beside(cell, word)) in cells} for cell in sorted(cells)}


def random_walk(steps: Steps, start: Cell, random: Random) -> Iterator[tuple[str, Cell]]:
    """A walk that passes through all that can be reached: each time to the neighbour that was passed least."""
    passed, here = Counter([start]), start
    goals = len(reached(steps, start))
    while len(passed) < goals:
        word, here = min(steps[here].items(), key=lambda step: (passed[step[1]], random.random()))
        passed[here] += 1
        yield word, here


def reached(steps: Steps, start: Cell) -> set[Cell]:
    """The cells that can be reached."""
    return {start} | nx.descendants(nx.DiGraph({cell: list(near.values()) for cell, near in steps.items()}), start)


def named(steps: Steps, labels: dict[Cell, str]) -> Map:
    """The maze with a name a cell: its label where no other has it."""
    name = {cell: labels[cell] if list(labels.values()).count(labels[cell]) == 1 else f"{cell}" for cell in steps}
    return Map({name[cell]: {word: name[near] for word, near in to.items()} for cell, to in steps.items()}, is_grid=True)


def describe(cells: set[Cell], random: Random, in_bank_words: bool = False) -> ToldMaze:
    """What a walker tells of a maze, and what is asked."""
    before = steps_of(cells)
    order, names = random.sample(sorted(cells), len(cells)), random.sample(words.PLACES, len(words.PLACES))
    labels = {cell: names[at] if at < len(names) else names[ALONE + at % (len(names) - ALONE)] for at, cell in enumerate(order)}
    first = named(before, labels)
    own = [labels[cell] for cell in order if list(labels.values()).count(labels[cell]) == 1]
    pairs = [(a, b) for a in own for b in own if first.distances[a][b] >= NEAREST]
    random.shuffle(pairs)
    start, goal = pairs[0]
    cell_of = {labels[cell]: cell for cell in order}
    here, word = random.choice(list(along(before, first.route(random, start, goal), cell_of[start])))
    after = {cell: dict(near) for cell, near in before.items()}
    del after[beside(here, word)][OPPOSITE[word]], after[here][word]
    stand = random.choice(order)
    visits: list[ExploredCell] = [seen(before, labels, None, stand)]
    for steps in (before, after):
        for move, stand in random_walk(steps, stand, random):  # noqa: B020
            visits.append(seen(steps, labels, move, stand))
    lines = [
        render_visit(random, number, visit, None, "val") or render_visit(random, number, visit, None, "train")
        for number, visit in enumerate(visits, 1)
    ]
    texts = in_the_banks(random, visits) if in_bank_words else [visit.text for visit in lines if visit]
    last = named(after, labels)
    questions = []
    for a, b in pairs[:QUESTIONS]:
        now, then = last.distances[a][b], first.distances[a][b]
        questions.append(("no path" if math.isinf(now) else "same" if now == then else "round", a, b, now))
    return ToldMaze(texts, last, questions)


def in_the_banks(random: Random, visits: list[ExploredCell]) -> list[str]:
    """What a walker met, in the test wordings of the bank of places: one way to number steps a walk, and one to tell what is open."""
    first, later = random.choice(bank.markers("test"))
    alone, both = random.choice(bank.openings("test"))
    texts = []
    for number, visit in enumerate(visits, 1):
        marker, kind = (later, "arrive") if visit.move else (first, "start")
        text = random.choice(bank.walks(kind, "test")).format(place=f"the {visit.label}", direction=visit.move)
        walls = [word for word in MOVES if word not in visit.open]
        exits = (both if walls else alone).format(open=_listed(visit.open), walls=_listed(walls))
        text = marker.format(step=number) + text
        texts.append(f"{text[:1].upper()}{text[1:]} {exits}")
    return texts


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def along(steps: Steps, moves: list[str], here: Cell) -> Iterator[tuple[Cell, str]]:
    """The cells from which the steps of a way lead, and the steps."""
    for word in moves:
        yield here, word
        here = steps[here][word]


def seen(steps: Steps, labels: dict[Cell, str], move: str | None, here: Cell) -> ExploredCell:
    """What a walker meets in a cell."""
    return ExploredCell(0, labels[here], move, None, tuple(steps[here]), labels[here], {})


def score(maze: ToldMaze, start: str, goal: str, fewest: float, answer: str) -> tuple[float, float]:
    """Whether an answer is right, and its steps over the fewest (NaN where it is not a way that leads there)."""
    if math.isinf(fewest):
        return float(answer.lower().strip(" .") in NO_PATH), math.nan
    steps = read_steps(answer, frozenset(MOVES))
    passed = maze.true.walk(start, steps) if steps else None
    right = bool(passed) and passed[-1] == goal
    return float(right), len(steps) / fewest if right else math.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--kinds", nargs="+", default=KINDS)
    parser.add_argument("--model", default="")
    parser.add_argument("--asked", type=int, default=8, help="worlds of each kind and size that the model is asked about")
    parser.add_argument("--in-bank-words", action="store_true")
    options = parser.parse_args()
    reader = fitted_places() if options.in_bank_words else None
    if importlib.util.find_spec("minigrid") is None:
        print("minigrid is not installed, so no maze is made: make peers")
        return
    shared = Memory(options.model, "memory/smpd", {"encoder": "own"}) if options.model else None
    print(
        "| maze | size | places | steps told | seconds a map | same | round | no path | steps / fewest | the model: all, steps / fewest |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    all_scores: dict[int, list[float]] = defaultdict(list)
    for kind in options.kinds:
        for size in options.sizes:
            rows, model, ratios, model_ratios, n_cells, n_steps, seconds = defaultdict(list), [], [], [], 0, 0, 0.0
            for number, cells in zip(range(options.worlds), mazes(kind, size), strict=False):
                maze = describe(cells, Random(f"minigrid/{kind}/{size}/{number}"), options.in_bank_words)
                begin = time.process_time()
                atlas = MapAnswerer(maze.texts, reader=reader)
                seconds += time.process_time() - begin
                n_cells, n_steps = n_cells + len(cells), n_steps + len(maze.texts)
                asks = [f"Which directions lead from the {a} to the {b}?" for _, a, b, _ in maze.questions]
                for (what, a, b, fewest), question in zip(maze.questions, asks, strict=True):
                    answer = atlas.answer(question)
                    right, ratio = score(maze, a, b, fewest, answer.answer if answer else "")
                    rows[what].append(right)
                    all_scores[size].append(right)
                    ratios += [ratio] if right and not math.isinf(fewest) else []
                if shared is not None and number < options.asked:
                    with Memory(shared.language_model, "memory/smpd", {"encoder": "own"}) as memory:
                        memory.teach(maze.texts)
                        for (_, a, b, fewest), question in zip(maze.questions, asks, strict=True):
                            right, ratio = score(maze, a, b, fewest, memory.ask(question, tokens=80).text)
                            model.append(right)
                            model_ratios += [ratio] if right and not math.isinf(fewest) else []
            count = sum(map(len, rows.values())) // QUESTIONS
            if count:
                shares = [f"{sum(rows[what]):.0f} of {len(rows[what])}" for what in ("same", "round", "no path")]
                by_model = f"{sum(model):.0f} of {len(model)}, {sum(model_ratios) / max(1, len(model_ratios)):.3f}" if model else "–"
                numbers = f"{n_cells / count:.0f} | {n_steps / count:.0f} | {seconds / count:.2f}"
                steps = sum(ratios) / max(1, len(ratios))
                print(f"| {kind} | {size} | {numbers} | {' | '.join(shares)} | {steps:.3f} | {by_model} |", flush=True)
    print(
        "all kinds, the planner alone: " + "; ".join(f"{size}: {sum(own) / len(own):.3f} of {len(own)}" for size, own in all_scores.items())
    )


if __name__ == "__main__":
    main()
