"""What the macros of the spatial memory save where the same trips are made again and again: moves, decisions and tokens, trip by trip.

    python benchmarks/memory/macros.py [--split val] [--worlds 20] [--episodes 40] [--profile paths_7]

A traveller is told a map of the suite `spatial` and goes from place to place on the true one. Two trips of 6 to 12 steps recur, three
times in four; the others are new. After each trip that ends at its goal its route is told to the memory, as any statement. The memory
sleeps after every five. After the half of them a link in the middle of each recurring trip is closed, which the traveller finds out by a
move in vain, and tells.

All memories make the same trips: without macros; with them; with a table of what was done there, in the place of the policy; and one that
decides on a whole way at once, which macros cannot beat. A decision is a question "what next?"; a move is a step tried, in vain or
not. Tokens: of the sentence, the question and the answer of each decision, as hippo-tiny reads them. One thread.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

import pandas as pd

from hippo_core.methods.base import Observation
from hippo_core.methods.presets import load_preset
from hippo_core.methods.spatial import Smpd
from hippo_core.methods.spatial.answers import MapAnswerer, route_sentence
from hippo_core.methods.spatial.macros import Example, Guide, Macro, Proposer, examples, replayed
from hippo_core.methods.spatial.policy import MacroPolicy
from hippo_core.methods.spatial.reading import Route
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.results.statistics.interval import ratio_interval
from hippo_core.store import TraceStore
from hippo_core.store.trace import Statement
from hippo_core.suites.draw import worlds
from hippo_core.suites.spatial.map import Map, read_map
from hippo_core.suites.types import World

SLEEP_EVERY, RECURRING, NEW, LONG = 5, 2, 0.25, (6, 12)
PATIENCE = 4  # times as many moves as the fewest, before a trip is given up
LEARN = ("macros", "table")
ARMS = ("off", "macros", "table", "whole plan")
TOKENS = Callable[[str], int]


@dataclass(frozen=True)
class Journey:
    """What all memories of a world do: trips, of which those with a `number` recur; links that close before the trip `half`."""

    trips: tuple[tuple[str, str, int | None], ...]
    closed: tuple[frozenset[str], ...]
    half: int


@dataclass
class Table:
    """What was done on each trip, in the place of a policy."""

    known: dict[tuple[str, str], Macro] = field(default_factory=dict)

    def propose(self, here: str, goal: str) -> Macro | None:
        """See `Proposer`."""
        return self.known.get((here, goal))


def drawn(world: World, true: Map, episodes: int) -> Journey | None:
    """A journey; None where the world has no such trips, or falls apart where they are closed."""
    random, half = Random(f"macros/{world.id}"), episodes // 2
    pairs = [(a, b) for a in true.places for b in true.places if LONG[0] <= true.distances[a][b] <= LONG[1]]
    if len(pairs) < RECURRING:
        return None
    recurring = random.sample(pairs, RECURRING)
    planner, closed, now = MapAnswerer([fact.text for fact in world.facts]).planner, list[frozenset[str]](), true
    for start, goal in recurring:
        path = planner.route(start, goal)
        if path is None:
            return None
        link = frozenset(list(pairwise(path.places))[len(path.words) // 2])
        cut = now.without([link])
        if max(cut.distances[true.places[0]].values()) < float("inf"):
            closed.append(link)
            now = cut
    trips = []
    for _ in range(episodes):
        number = random.randrange(RECURRING) if random.random() >= NEW else None
        trips.append((*(recurring[number] if number is not None else random.choice(pairs)), number))
    return Journey(tuple(trips), tuple(closed), half)


@dataclass
class Traveller:
    """One memory on its journey through one world."""

    arm: str
    memory: Smpd
    store: TraceStore
    world: str
    tokens: TOKENS
    n_statements: int = 0
    trained_s: float = 0.0
    habits: Proposer | None = None

    def tell(self, *texts: str) -> None:
        numbers = range(self.n_statements, self.n_statements + len(texts))
        statements = [Statement(f"{self.world}.s{number}", self.world, text, number) for number, text in zip(numbers, texts, strict=True)]
        self.memory.teach([Observation(statement) for statement in statements], self.store)
        self.n_statements += len(texts)
        self.atlas = self.memory.atlas(self.store.traces(self.world))
        self.habits = {"macros": self.atlas.policy, "table": self.habits}.get(self.arm)

    def sleep(self) -> None:
        begin = time.perf_counter()
        list(self.memory.replay(self.world, self.store))
        self.trained_s += time.perf_counter() - begin
        self.tell()
        if self.arm == "table" and (policy := next((trace.payload for trace in self.store.traces(self.world) if trace.payload), None)):
            self.habits = Table(table_of(self._examples(policy), policy.macros))

    def _examples(self, policy: MacroPolicy) -> Mapping[Example, int]:
        trips = (replayed(trip, self.atlas.planner) for _, trip in self.atlas.observations if isinstance(trip, Route))
        return examples([trip for trip in trips if trip], policy.macros)

    def travel(self, true: Map, start: str, goal: str) -> dict[str, float]:
        """One trip on the true map; its route is told where it succeeds."""
        here, path, best = start, list[str](), true.distances[start][goal]
        counts = {"moves": 0, "decisions": 0, "tokens": 0, "in_vain": 0, "macro_moves": 0}
        guide = Guide(self.atlas.planner, goal, self.habits)
        while here != goal and counts["moves"] < PATIENCE * best:
            words, is_macro = guide.next(here)
            if not words:
                break
            if self.arm == "whole plan":
                words = (*words, *(guide.rest.words if guide.rest else ()))
            counts["decisions"] += 1
            counts["tokens"] += sum(map(self.tokens, (*route_sentence(goal, here, ", ".join(words)), ", ".join(words))))
            for word in words:
                counts["moves"] += 1
                near = true.steps[here].get(word)
                if near is None:
                    counts["in_vain"] += 1
                    self.tell(f"The lane between the {here} and the {self.atlas.map.steps[here][word]} is closed.")
                    guide = Guide(self.atlas.planner, goal, self.habits, guide.used)
                    break
                counts["macro_moves"] += is_macro
                here = near
                path.append(word)
        if here == goal:
            self.tell(route_sentence(goal, start, ", ".join(path))[0])
        return {**counts, "success": float(here == goal), "fewest": best, "steps": counts["moves"] + counts["decisions"]}


def table_of(counts: Mapping[Example, int], macros: Sequence[Macro]) -> dict[tuple[str, str], Macro]:
    """What a table of the examples proposes, without a policy: for each place and goal in it, the most frequent choice."""
    best: dict[tuple[str, str], tuple[int, int]] = {}
    for (here, goal, chosen), count in counts.items():
        best[here, goal] = max(best.get((here, goal), (0, -1)), (count, chosen))
    return {where: macros[chosen] for where, (_, chosen) in best.items() if chosen >= 0}


def journeys(arm: str, lm: LanguageModel, journeys_of: list[tuple[World, Map, Journey]]) -> tuple[list[dict[str, object]], float]:
    """The trips of one arm in all worlds, and seconds of sleep for each sleep."""
    settings = load_preset("memory/smpd", {"encoder": "own", "spatial.macros": arm in LEARN}).settings
    rows, seconds, sleeps = list[dict[str, object]](), 0.0, 0

    def tokens(text: str) -> int:
        return len(lm.encode(text))

    for world, true, journey in journeys_of:
        memory = Smpd(lm, settings)
        with tempfile.TemporaryDirectory() as folder, TraceStore.create(Path(folder), "macros", memory.identity()) as store:
            traveller, now = Traveller(arm, memory, store, world.id, tokens), true
            traveller.tell(*(fact.text for fact in world.facts))
            seen: dict[int | None, int] = {}
            for number, (start, goal, recurring) in enumerate(journey.trips):
                if number == journey.half:
                    now = true.without(journey.closed)
                seen[recurring] = seen.get(recurring, 0) + 1
                kind = "new" if recurring is None else ("again" if seen[recurring] > 1 else "first")
                rows.append({"world": world.id, "episode": number, "kind": kind, "arm": arm, **traveller.travel(now, start, goal)})
                if arm in LEARN and number % SLEEP_EVERY == SLEEP_EVERY - 1:
                    traveller.sleep()
                    sleeps += 1
            seconds += traveller.trained_s
    return rows, seconds / max(1, sleeps)


def show(rows: pd.DataFrame, half: int) -> None:
    """A line a kind of trip and memory, each beside the memory without macros. Settled: the last five trips of each half."""
    again, new = rows[rows.kind == "again"], rows[rows.kind == "new"]
    kinds = {"again": again, "again, settled": again[again.episode % half >= half - SLEEP_EVERY], "new": new}
    print("| trips | memory | n | success | moves / fewest | moves | decisions | both | beside off (95 %) | tokens | beside off |")
    print("|---|---|" + "--:|" * 9)
    for kind, trips in kinds.items():
        off = trips[trips.arm == "off"]
        for arm in ARMS:
            mine = trips[trips.arm == arm]
            steps, tokens = (ratio_interval(mine[name], off[name], off["world"]) for name in ("steps", "tokens"))
            means = [f"{mine[name].mean():.2f}" for name in ("moves", "decisions", "steps")]
            beside = f"{steps.mean - 1:+.1%} ({steps.low - 1:+.1%} to {steps.high - 1:+.1%})"
            ends = [f"{mine['success'].mean():.3f}", f"{mine['moves'].sum() / mine['fewest'].sum():.3f}", *means, beside]
            print(f"| {kind} | {arm} | {len(mine)} | {' | '.join(ends)} | {mine['tokens'].mean():.0f} | {tokens.mean - 1:+.1%} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", default="val")
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--profile", default="paths_7")
    asked = parser.parse_args()
    lm, drawn_journeys = load(load_spec("hippo-tiny"), threads=1), list[tuple[World, Map, Journey]]()
    for world in worlds("spatial", asked.profile, None, split=asked.split):
        if journey := drawn(world, true := read_map(world.facts), asked.episodes):
            drawn_journeys.append((world, true, journey))
        if len(drawn_journeys) == asked.worlds:
            break
    print(f"{len(drawn_journeys)} worlds of {asked.profile} ({asked.split}), {asked.episodes} trips each")
    rows, ends = list[dict[str, object]](), list[str]()
    for arm in ARMS:
        own, each = journeys(arm, lm, drawn_journeys)
        rows += own
        ends.append(f"{arm} {each:.2f} s")
    table = pd.DataFrame(rows)
    show(table, asked.episodes // 2)
    macros = table[table.arm == "macros"]
    print(f"share of moves by macros: {macros.macro_moves.sum() / macros.moves.sum():.2f}; a sleep: {', '.join(ends)}")


if __name__ == "__main__":
    main()
