"""The map that a memory makes of what was told: places, the steps between them, by what they lead, and which statements say so.

What is told of a link or of a side more than once is weighed: each time counts one, for open or for closed, and what was told before counts
`keep` of what it did. So what is stale or was once told wrong loses to what is told later, and more often.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from hippo_core.methods.spatial.gate import Edges, Evidence
from hippo_core.methods.spatial.reading import Barrier, Link, Observation, There, Visit
from hippo_core.spoken import MOVES, OPPOSITE

Cell = tuple[int, int]  # row and column; row 0 is where the first place lies, and rows grow to the south


@dataclass
class PlaceMap:
    """Places by id. `steps[a][word] = b`: what one reaches from a by a step, a direction or on a map without directions the id of b;
    `labels`: what a place goes by; `links`: the evidence of each pair of linked places; `cells`: where places lie, as far as directions
    say so; `told`: of a place the numbers of the statements that describe it, the latest last; `edges`: what was told of links in all."""

    steps: dict[str, dict[str, str]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    links: dict[frozenset[str], Evidence] = field(default_factory=dict)
    cells: dict[str, Cell] = field(default_factory=dict)
    told: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    edges: Edges = field(default_factory=Edges)

    @property
    def is_grid(self) -> bool:
        """Whether steps are directions."""
        return any(word in MOVES for near in self.steps.values() for word in near)

    def find(self, label: str, next_to: str = "") -> str | None:
        """The place of this label, beside one of the label `next_to` where that is given; None where there is none."""
        found = [place for place, own in self.labels.items() if own == label]
        near = [place for place in found if not next_to or next_to in (self.labels[other] for other in self.steps[place].values())]
        return next(iter([*near, *found]), None)


def beside(cell: Cell, word: str) -> Cell:
    """The cell that a step in a direction leads to."""
    down, right = MOVES[word]
    return cell[0] + down, cell[1] + right


def told_map(observations: Iterable[tuple[int, Observation]], edges: Edges | None = None) -> PlaceMap:
    """The map of links that are told one by one, in order of telling; a place is its label. `edges`: that they are told to, none so far."""
    found = PlaceMap(edges=edges or Edges())
    words: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    barred: set[tuple[str, str]] = set()
    for number, one in observations:
        if isinstance(one, Link):
            found.edges.hear(frozenset((one.origin, one.goal)), number, not one.closed, one.by)
            if one.word:
                words[one.origin, one.goal][one.word] += 1
                words[one.goal, one.origin][OPPOSITE[one.word]] += 1
                barred -= {(one.origin, one.word), (one.goal, OPPOSITE[one.word])}
            for place in (one.origin, one.goal):
                found.labels[place] = place
                found.told[place].append(number)
        elif isinstance(one, There):
            found.told[one.place].append(number)
        elif isinstance(one, Barrier):
            barred.add((one.place, one.word))
            found.labels[one.place] = one.place
            found.told[one.place].append(number)
    found.steps, found.links = {place: {} for place in found.labels}, found.edges.open
    for pair, _ in sorted(found.links.items(), key=lambda link: link[1].open):  # the surest last: it keeps the direction
        for a, b in (tuple(pair), tuple(pair)[::-1]):
            word = words[a, b].most_common(1)[0][0] if words[a, b] else b
            if (a, word) not in barred:
                found.steps[a][word] = b
    found.cells = laid_out(found.steps)
    return found


def labelled_map(visits: Iterable[tuple[int, Visit]], edges: Edges | None = None) -> PlaceMap:
    """The map of an exploration in which a place is its label: what has the same label is one place, and what shows none is left out."""
    told: list[tuple[int, Observation]] = []
    before, known = "", dict[tuple[str, str], str]()
    for number, visit in visits:
        here = visit.place
        if here:
            told += [(number, There(here))]
            if before and visit.move and before != here:
                known |= {(before, visit.move): here, (here, OPPOSITE[visit.move]): before}
            known |= {(here, word): label for word, label in visit.seen.items() if label != here}
            for word in MOVES:
                if near := known.get((here, word)):
                    by = visit.by if near == before and word == OPPOSITE.get(visit.move, "") else ""
                    told.append((number, Link(here, near, word, by, closed=word not in visit.open)))
        before = here
    return told_map(told, edges)


def laid_out(steps: dict[str, dict[str, str]]) -> dict[str, Cell]:
    """Where places lie, by the directions of the steps between them; parts that do not hang together lie apart from each other."""
    cells: dict[str, Cell] = {}
    for first in steps:
        if first in cells or not any(word in MOVES for word in steps[first]):
            continue
        cells[first] = (0, 1000 * len(cells))
        waiting = [first]
        while waiting:
            here = waiting.pop(0)
            for word, near in steps[here].items():
                if word in MOVES and near not in cells:
                    cells[near] = beside(cells[here], word)
                    waiting.append(near)
    return cells
