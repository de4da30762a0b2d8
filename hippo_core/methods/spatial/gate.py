"""The gate of the map: which links that an explorer tells of become edges, and which are blocked until more is told of them.

    S = repeat + edge + .2 degree          a new edge with S >= block_threshold is blocked, another one is inserted

What is told of an edge always adds to its evidence, blocked or not: a blocked one passes once it is told again. An edge that is there is
not weighed; it is dropped when it is held to be closed. Of thresholds:

    1.2     the first telling counts, but not against what was told before, or at a place with all its sides open
    1.0     an edge must be told twice, and more often against what was told before
    .8      as with 1.0, and more often still
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from hippo_core.methods.relational.edge import Weighed, hub
from hippo_core.methods.spatial.settings import BlockSettings

WEIGHTS: Mapping[str, float] = {"repeat": 1.0, "edge": 1.0, "degree": 0.2}
USUAL_DEGREE = 2  # edges of a place from which on another one is less likely
Link = frozenset[str]  # of two places


@dataclass
class LinkEvidence:
    """The evidence of a link."""

    open: float = 0.0  # above 0: it is there
    weight: float = 0.0  # of all statements
    statements: list[int] = field(default_factory=list)  # their numbers
    opened: int = 0  # how many of them say that it is there
    by: Counter[str] = field(default_factory=Counter)  # over what it leads

    def observe(self, number: int, is_open: bool, by: str = "", keep: float = 0.5) -> None:
        """One more statement."""
        self.open, self.weight = keep * self.open + (1.0 if is_open else -1.0), keep * self.weight + 1.0
        self.opened += is_open
        self.statements.append(number)
        if by:
            self.by[by] += 1


@dataclass(frozen=True, slots=True)
class LinkTerms(Weighed):
    """What is known of a new edge when it is told, each from 0 to 1."""

    weights: ClassVar[Mapping[str, float]] = WEIGHTS
    repeat: float  # 1 / n, told for the n-th time
    edge: float  # the share of its evidence that says it is closed, the latest counting most
    degree: float  # how far the larger of its places exceeds `USUAL_DEGREE` edges


class Edges:
    """The edges of a map, as they are told one by one. Without a gate: all that were ever told to be open. `keep`: the share of a link's
    earlier evidence that still counts when it is told again."""

    def __init__(self, keep: float = 0.5, gate: BlockSettings | None = None) -> None:
        self.keep, self.gate = keep, gate if gate and gate.enabled else None
        self.evidence: dict[Link, LinkEvidence] = {}
        self.stored: set[Link] = set()
        self.degrees: Counter[str] = Counter()
        self.decisions: Counter[str] = Counter()  # insert, aggregate, block, and drop, by how often

    def observe(self, link: Link, number: int, is_open: bool, by: str = "") -> None:
        """What a statement says of a link."""
        evidence = self.evidence.setdefault(link, LinkEvidence())
        evidence.observe(number, is_open, by, self.keep)
        if link in self.stored:
            self.decisions["aggregate"] += 1
            if self.gate and evidence.open <= 0:
                self._change(link, "drop", -1)
                self.stored.remove(link)
        elif is_open:
            if self.gate and self.terms(link).passes(self.gate.block_threshold):
                self.decisions["block"] += 1
            else:
                self._change(link, "insert", 1)
                self.stored.add(link)

    def terms(self, link: Link) -> LinkTerms:
        """The terms of a link that a statement calls open."""
        evidence = self.evidence[link]
        closed = (evidence.weight - evidence.open) / (2 * evidence.weight)
        return LinkTerms(1 / evidence.opened, closed, hub(max(self.degrees[place] for place in link), USUAL_DEGREE))

    def __contains__(self, link: Link) -> bool:
        """Whether one can go there."""
        return link in self.stored and self.evidence[link].open > 0

    @property
    def open(self) -> dict[Link, LinkEvidence]:
        """Those that one can go."""
        return {link: evidence for link, evidence in self.evidence.items() if link in self}

    def _change(self, link: Link, action: str, by: int) -> None:
        self.decisions[action] += 1
        for place in link:
            self.degrees[place] += by
