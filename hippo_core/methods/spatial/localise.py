"""Where an explorer is, step by step: a filter over walks, each with the map that it makes of what was seen.

A particle is a walk on an unbounded grid of cells. At each step every particle goes on in all four directions, and the best are kept, by
the sum of logarithms of how likely are

    the told direction      told wrong with the probability `MOVE`; summing moves alone is path integration, and drifts
    the label and sights    of a cell the majority of what it has shown; this is where a place is recognised, and drift ends
    the open sides          as they were last told, but for the share `CHANGED` that opens or closes

Each particle has its own map, as in FastSLAM (Montemerlo et al. 2002, section 3), where particles are drawn and here the best are kept.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import log

from hippo_core.methods.spatial.gate import Edges
from hippo_core.methods.spatial.place_map import Cell, PlaceMap, beside
from hippo_core.methods.spatial.reading import VisitStatement
from hippo_core.spoken import MOVES, OPPOSITE

CellSide = tuple[Cell, str]
MOVE, WRONG_LABEL, CHANGED = 0.06, 0.08, 0.04  # how likely a told direction is wrong, a label is; a side is another than it was last told
SHARED = 0.02  # how likely a new cell shares a label
LABELS = 20  # how many labels there are, about


@dataclass
class Particle:
    """A walk up to now (`trail`, the cell of each step), and its map: of cells what they showed, of sides whether they were last open."""

    score: float = 0.0
    trail: tuple[Cell, ...] = ()
    shown: dict[Cell, Counter[str]] = field(default_factory=dict)
    open: dict[CellSide, bool] = field(default_factory=dict)

    @property
    def here(self) -> Cell:
        return self.trail[-1] if self.trail else (0, 0)


@dataclass(frozen=True)
class LocalisedWalk:
    """What a filter makes of a walk: the cell of each step, and how far the particles spread at each (cells, root mean square)."""

    cells: tuple[Cell, ...]
    spread: tuple[float, ...]
    shown: dict[Cell, Counter[str]]


def side(cell: Cell, word: str) -> CellSide:
    """A side by the name that it has from both of its cells."""
    return (cell, word) if word in ("south", "east") else (beside(cell, word), OPPOSITE[word])


def localise(visits: Sequence[VisitStatement], particles: int = 16) -> LocalisedWalk:
    """The likeliest walk, and its spread."""
    beam = [Particle()]
    spread: list[float] = []
    for number, visit in enumerate(visits):
        moves = [(particle, word) for particle in beam for word in (MOVES if number else ("",))]
        scored: list[tuple[float, Particle, Cell]] = []
        for particle, word in moves:
            cell = beside(particle.here, word) if word else (0, 0)
            scored.append((particle.score + fit(particle, cell, visit, word), particle, cell))
        best = sorted(scored, key=lambda candidate: -candidate[0])[:particles]
        beam = [_went_on(particle, cell, score, visit) for score, particle, cell in best]
        spread.append(_spread(beam))
    return LocalisedWalk(beam[0].trail, tuple(spread), beam[0].shown)


def integrate(visits: Sequence[VisitStatement]) -> LocalisedWalk:
    """The walk by its stated moves alone, without recognising a place: path integration that is never corrected."""
    cells: list[Cell] = []
    shown: dict[Cell, Counter[str]] = {}
    for visit in visits:
        here = cells[-1] if cells else (0, 0)
        cells.append(beside(here, visit.move) if visit.move else here)
        if visit.place:
            shown.setdefault(cells[-1], Counter())[visit.place] += 1
    return LocalisedWalk(tuple(cells), (0.0,) * len(cells), shown)


def fit(particle: Particle, cell: Cell, visit: VisitStatement, word: str) -> float:
    """The logarithm of how likely a step's words are, if it led to this cell in this direction ("" for the first step)."""
    total = 0.0
    if word:
        total += log(1 - MOVE if word == visit.move else MOVE / 3)
        total += 0.0 if particle.open.get(side(particle.here, word), True) else log(CHANGED)
        total += 0.0 if visit.open is None or OPPOSITE[word] in visit.open else log(CHANGED)
    for direction in MOVES:
        known = particle.open.get(side(cell, direction))
        if known is not None and visit.open is not None:
            total += log(1 - CHANGED if known == (direction in visit.open) else CHANGED)
    return total + sum(_label_fit(particle, where, label) for where, label in _labels(cell, visit).items())


def _labels(cell: Cell, visit: VisitStatement) -> dict[Cell, str]:
    """What a step at a cell shows, there and beside it."""
    return {**({cell: visit.place} if visit.place else {}), **{beside(cell, direction): label for direction, label in visit.seen.items()}}


def explored_map(numbered: Iterable[tuple[int, VisitStatement]], walk: LocalisedWalk, edges: Edges | None = None) -> PlaceMap:
    """The map of a walk: its cells are the places; a link is open by what is seen from its two ends, the last counting most. `edges`:
    which are to collect the links, empty so far."""
    place_map = PlaceMap(edges=edges or Edges())
    visited = dict.fromkeys(walk.cells)
    name = {cell: str(number) for number, cell in enumerate(visited)}
    here: Cell | None = None
    for (number, visit), cell in zip(numbered, walk.cells, strict=True):
        place_map.statements[name[cell]].append(number)
        for word in MOVES:
            if near := name.get(beside(cell, word)):
                came = here is not None and beside(cell, word) == here
                by = visit.by if came else ""
                if visit.open is not None or came:
                    place_map.edges.observe(frozenset((name[cell], near)), number, visit.open is None or word in visit.open, by)
        here = cell
    place_map.links = place_map.edges.open
    place_map.walk_cells = {place: cell for cell, place in name.items()}
    place_map.labels = {place: walk.shown[cell].most_common(1)[0][0] if cell in walk.shown else "" for cell, place in name.items()}
    place_map.steps = {place: {} for place in name.values()}
    for cell, place in name.items():
        for word in MOVES:
            near = name.get(beside(cell, word))
            if near is not None and frozenset((place, near)) in place_map.links:
                place_map.steps[place][word] = near
    return place_map


def _label_fit(particle: Particle, cell: Cell, label: str) -> float:
    counts = particle.shown.get(cell)
    if counts:
        return log(counts[label] / counts.total() * (1 - WRONG_LABEL) + WRONG_LABEL / LABELS)
    is_used = any(label == other.most_common(1)[0][0] for other in particle.shown.values())
    return log((SHARED + WRONG_LABEL if is_used else 1) / LABELS)


def _went_on(particle: Particle, cell: Cell, score: float, visit: VisitStatement) -> Particle:
    shown, opened = dict(particle.shown), dict(particle.open)
    for where, label in _labels(cell, visit).items():
        shown[where] = shown.get(where, Counter()) + Counter([label])
    if visit.open is not None:
        opened |= {side(cell, direction): direction in visit.open for direction in MOVES}
    return Particle(score, (*particle.trail, cell), shown, opened)


def _spread(beam: Sequence[Particle]) -> float:
    rows = [particle.here[0] for particle in beam]
    columns = [particle.here[1] for particle in beam]
    mean = sum(rows) / len(rows), sum(columns) / len(columns)
    return (sum((row - mean[0]) ** 2 + (column - mean[1]) ** 2 for row, column in zip(rows, columns, strict=True)) / len(beam)) ** 0.5
