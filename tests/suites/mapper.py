"""A reference reader of exploration: the likeliest walk through the likeliest map, from each step's slots alone.

A hypothesis is a walk on an unbounded grid with observations of each cell and of each side between two cells. Step by step each one goes on
in all four directions, and the best `BEAM` are kept (beam search), by the sum of the logarithms of how likely

    the reported move is, given the true direction         a direction may be reported wrong
    the label and the sights are, given the cells' labels  majorities; a new cell hardly shares its label with another
    the open sides are, given their last report            links may close and open; the side that was passed was open

The final map is that of the best hypothesis: of labels the majority, of sides the last report.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import log
from random import Random

from hippo_core.spoken import MOVES, NUMBERS, OPPOSITE
from hippo_core.suites.spatial import words as words
from hippo_core.suites.spatial.explore import beside
from hippo_core.suites.spatial.map import Map
from hippo_core.suites.types import Fact, Item

Cell = tuple[int, int]
Side = tuple[Cell, str]  # a cell and the direction, south or east, in which its neighbour lies

BEAM = 16
WRONG_MOVE = 0.06  # how likely a reported direction is wrong; below: a label, a side since its last report, ...
WRONG_LABEL = 0.08
CHANGED_SIDE = 0.04
SHARED_LABEL = 0.02  # ... and that a new cell has the label of a known one
LABELS = 20  # about as many places as a map has


@dataclass
class Hypothesis:
    """A walk up to now and its map; `last`: the last report of each side, `by`: the label of the link across it."""

    score: float = 0.0
    here: Cell = (0, 0)
    labels: dict[Cell, Counter[str]] = field(default_factory=dict)
    last: dict[Side, bool] = field(default_factory=dict)
    by: dict[Side, str] = field(default_factory=dict)
    visited: frozenset[Cell] = frozenset()


def side(cell: Cell, word: str) -> Side:
    """The side in this direction, by the name that it has from both of its cells."""
    return (cell, word) if word in ("south", "east") else (beside(cell, word), OPPOSITE[word])


def read_words(listed: str) -> set[str]:
    """The directions in a list of them, as it is spoken."""
    return {word for word in MOVES if word in listed.replace(",", " ").split()}


def fit(hypothesis: Hypothesis, cell: Cell, slots: Mapping[str, str], move: str | None) -> float:
    """The logarithm of how likely a step's words are if the walker came to this cell by this move."""
    total = 0.0
    if move:
        total += log(1 - WRONG_MOVE if move == slots["move"] else WRONG_MOVE / 3)
        total += 0.0 if hypothesis.last.get(side(hypothesis.here, move)) else log(CHANGED_SIDE)
    opened = read_words(slots["open"])
    total += 0.0 if not move or OPPOSITE[move] in opened else log(CHANGED_SIDE)
    for word in MOVES:
        known = hypothesis.last.get(side(cell, word))
        if known is not None:
            total += log(1 - CHANGED_SIDE if known == (word in opened) else CHANGED_SIDE)
    if "place" in slots:
        total += label_fit(hypothesis, cell, slots["place"])
    return total + sum(label_fit(hypothesis, beside(cell, word), slots[word]) for word in MOVES if word in slots)


def label_fit(hypothesis: Hypothesis, cell: Cell, label: str) -> float:
    """The logarithm of how likely a cell shows a label, by what it has shown before, or if it is new, by what other cells have."""
    counts = hypothesis.labels.get(cell)
    if counts:
        share = counts[label] / counts.total()
        return log(share * (1 - WRONG_LABEL) + WRONG_LABEL / LABELS)
    used = any(label == counts.most_common(1)[0][0] for counts in hypothesis.labels.values())
    return log((SHARED_LABEL + WRONG_LABEL if used else 1) / LABELS)


def extended(hypothesis: Hypothesis, cell: Cell, score: float, slots: Mapping[str, str], move: str | None) -> Hypothesis:
    """The hypothesis after a step that led to this cell."""
    labels, last, by = dict(hypothesis.labels), dict(hypothesis.last), dict(hypothesis.by)
    opened = read_words(slots["open"])
    last |= {side(cell, word): word in opened for word in MOVES}
    shown = {cell: slots["place"]} if "place" in slots else {}
    for where, label in (shown | {beside(cell, word): slots[word] for word in MOVES if word in slots}).items():
        labels[where] = labels.get(where, Counter()) + Counter([label])
    if move and "by" in slots:
        by[side(hypothesis.here, move)] = slots["by"]
    return Hypothesis(score, cell, labels, last, by, hypothesis.visited | {cell})


@dataclass(frozen=True)
class BelievedMap:
    """What a reader makes of a walk: a map of numbered places, the label of each, and by what each pair of them is linked."""

    map: Map
    labels: dict[str, str]
    by: dict[frozenset[str], str]

    def find(self, label: str, next_to: str = "") -> str | None:
        """The place of this label, next to one of the other label if that is given; None where there is none."""
        for place in sorted(self.map.steps, key=int):
            near = {self.labels[other] for other in self.map.steps[place].values()}
            if self.labels[place] == label and (not next_to or next_to in near):
                return place
        return None


def read_walk(facts: Iterable[Fact]) -> BelievedMap:
    """The likeliest map behind the steps of a walk, in their order."""
    beam = [Hypothesis()]
    for slots in (fact.slots for fact in facts):
        onward = [
            (hypothesis.score + fit(hypothesis, cell, slots, move), number, cell, move)
            for number, hypothesis in enumerate(beam)
            for move in (MOVES if "move" in slots else [None])
            for cell in [beside(hypothesis.here, move) if move else hypothesis.here]
        ]
        best = sorted(onward, key=lambda candidate: -candidate[0])[:BEAM]
        beam = [extended(beam[number], cell, score, slots, move) for score, number, cell, move in best]
    return believed(beam[0])


def believed(hypothesis: Hypothesis) -> BelievedMap:
    """The map of a hypothesis: the visited cells, with a link where the side between two of them was last reported open."""
    number = {cell: str(index) for index, cell in enumerate(sorted(hypothesis.visited))}
    steps: dict[str, dict[str, str]] = {name: {} for name in number.values()}
    by = {}
    for cell, name in number.items():
        for word in MOVES:
            near = number.get(beside(cell, word))
            if near and hypothesis.last.get(side(cell, word)):
                steps[name][word] = near
                if label := hypothesis.by.get(side(cell, word)):
                    by[frozenset((name, near))] = label
    labels = {name: max(hypothesis.labels.get(cell, {"": 1}).items(), key=lambda entry: entry[1])[0] for cell, name in number.items()}
    return BelievedMap(Map(steps, is_grid=True), labels, by)


def answer(belief: BelievedMap, item: Item) -> str:
    """The believed map's answer to a question; "" where it has none. It reads the kind and the cue, no truth."""
    cue = item.cue
    start = belief.find(cue["from"], cue.get("from_next_to", ""))
    if start is None:
        return ""
    near = belief.map.steps[start]
    if item.kind == "exits":
        return ", ".join(word for word in MOVES if word in near)
    if item.kind == "neighbor":
        return belief.labels[near[cue["direction"]]] if cue["direction"] in near else ""
    goal = belief.find(cue["to"], cue.get("to_next_to", ""))
    if goal is None or belief.map.distances[start][goal] == float("inf"):
        return ""
    if item.kind == "edge_label":
        return belief.by.get(frozenset((start, goal)), "")
    steps = belief.map.route(Random(0), start, goal)
    return ", ".join(steps) if item.kind == "grid_path" else NUMBERS[len(steps)]
