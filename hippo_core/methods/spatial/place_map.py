"""The map that a memory builds from statements: places, the steps between them, what these lead over, and which statements say so.

Several statements about one link are weighed: each counts one, for open or for closed, and each new one multiplies the earlier by `keep`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter

from hippo_core.methods.spatial.gate import Edges, LinkEvidence
from hippo_core.methods.spatial.reading import Barrier, Link, Observation, There, VisitStatement
from hippo_core.spoken import MOVES, OPPOSITE

Cell = tuple[int, int]  # row and column; row 0 is where the first place lies, and rows grow to the south


@dataclass
class PlaceMap:
    """Places by id. `steps[a][word] = b`: what a step from a reaches, by a direction, or by the id of b on a map without directions."""

    steps: dict[str, dict[str, str]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)  # the name of a place
    links: dict[frozenset[str], LinkEvidence] = field(default_factory=dict)  # of each pair of linked places
    walk_cells: dict[str, Cell] = field(default_factory=dict)  # where places lie by a walk through them
    statements: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))  # the numbers of those that describe a place
    edges: Edges = field(default_factory=Edges)  # all evidence of links
    doubts: dict[tuple[str, str], float] = field(default_factory=dict)  # what an uncertain step costs more than one

    @property
    def cells(self) -> dict[str, Cell]:
        """Where places lie, by a walk or else as far as the directions of steps say so."""
        return self.walk_cells or grid_layout(self.steps)

    @property
    def is_grid(self) -> bool:
        """Whether steps are directions."""
        return any(word in MOVES for near in self.steps.values() for word in near)

    def find(self, label: str, next_to: str = "") -> str | None:
        """The place of this label, beside one of the label `next_to` where that is given; None where there is none."""
        matches = [place for place, own in self.labels.items() if own == label]
        near = [place for place in matches if not next_to or next_to in (self.labels[other] for other in self.steps[place].values())]
        return next(iter([*near, *matches]), None)

    def ever_joined(self, a: str, b: str) -> bool:
        """Whether links joined two places once, which may be closed now; a walk joins all of its places."""
        return True

    def cost(self, a: str, b: str) -> float:
        """What a step from one place to the next one costs."""
        return 1.0 + self.doubts.get((a, b), 0.0)


def beside(cell: Cell, word: str) -> Cell:
    """The cell that a step in a direction leads to."""
    down, right = MOVES[word]
    return cell[0] + down, cell[1] + right


class LinkMap(PlaceMap):
    """The map of links that are told one by one, in order; a place is its label."""

    def __init__(self, edges: Edges | None = None) -> None:
        super().__init__(edges=edges or Edges())
        self._words: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._barred: set[tuple[str, str]] = set()
        self._one_way: dict[frozenset[str], str] = {}  # where a link begins that leads one way, as it was told last
        self._near: dict[str, dict[str, None]] = defaultdict(dict)  # of a place all that a link to it was told of, open or not

    def ever_joined(self, a: str, b: str) -> bool:
        known, waiting = {a}, [a]
        while waiting and b not in known:
            new = self._near.get(waiting.pop(), {}).keys() - known
            known |= new
            waiting += new
        return b in known

    def observe(self, number: int, observation: Observation) -> None:
        """Add a statement."""
        if isinstance(observation, Link):
            pair = frozenset((observation.origin, observation.goal))
            self.edges.observe(pair, number, not observation.closed, observation.by)
            if pair in self.edges:
                self.links[pair] = self.edges.evidence[pair]
            else:
                self.links.pop(pair, None)
            if not observation.closed:
                self._doubt(observation)
                self._one_way.pop(pair, None)
                if observation.one_way:
                    self._one_way[pair] = observation.origin
            if observation.word:
                self._words[observation.origin, observation.goal][observation.word] += 1
                self._words[observation.goal, observation.origin][OPPOSITE[observation.word]] += 1
                self._barred -= {(observation.origin, observation.word), (observation.goal, OPPOSITE[observation.word])}
            self._near[observation.origin][observation.goal] = self._near[observation.goal][observation.origin] = None
            self._update(number, observation.origin, observation.goal)
        elif isinstance(observation, Barrier):
            self._barred.add((observation.place, observation.word))
            self._update(number, observation.place)
        elif isinstance(observation, There):
            self.statements[observation.place].append(number)

    def _doubt(self, link: Link) -> None:
        """A link is as doubtful as its least doubtful statement."""
        ends, back = (link.origin, link.goal), (link.goal, link.origin)
        doubt = min(link.doubt, self.doubts.get(ends, link.doubt if self.edges.evidence[frozenset(ends)].opened == 1 else 0.0))
        for pair in (ends, back):
            self.doubts.pop(pair, None)
            if doubt:
                self.doubts[pair] = doubt

    def _update(self, number: int, *places: str) -> None:
        for place in places:
            self.labels[place] = place
            self.statements[place].append(number)
            self.steps[place] = {}
            # The least doubtful last: it keeps the direction.
            linked = [
                ((-self.doubts.get((place, near), 0.0), self.links[pair].open), near)
                for near in self._near[place]
                if (pair := frozenset((place, near))) in self.links and self._one_way.get(pair, place) == place
            ]
            for _, near in sorted(linked, key=itemgetter(0)):
                words = self._words.get((place, near))
                word = words.most_common(1)[0][0] if words else near
                if (place, word) not in self._barred:
                    self.steps[place][word] = near


def build_map(observations: Iterable[tuple[int, Observation]], edges: Edges | None = None) -> LinkMap:
    """The map of these observations. `edges`: which are to collect the links, empty so far."""
    link_map = LinkMap(edges)
    for number, observation in observations:
        link_map.observe(number, observation)
    return link_map


def labelled_map(visits: Iterable[tuple[int, VisitStatement]], edges: Edges | None = None) -> PlaceMap:
    """The map of an exploration in which a place is its label: what has the same label is one place, and what shows none is left out."""
    observations: list[tuple[int, Observation]] = []
    before, known = "", dict[tuple[str, str], str]()
    for number, visit in visits:
        here = visit.place
        if here:
            observations += [(number, There(here))]
            if before and visit.move and before != here:
                known |= {(before, visit.move): here, (here, OPPOSITE[visit.move]): before}
            known |= {(here, word): label for word, label in visit.seen.items() if label != here}
            for word in MOVES:
                if near := known.get((here, word)):
                    by = visit.by if near == before and word == OPPOSITE.get(visit.move, "") else ""
                    if visit.open is not None or by:
                        observations.append((number, Link(here, near, word, by, closed=visit.open is not None and word not in visit.open)))
        before = here
    return build_map(observations, edges)


def grid_layout(steps: dict[str, dict[str, str]]) -> dict[str, Cell]:
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
