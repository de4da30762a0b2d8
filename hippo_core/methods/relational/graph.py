"""The graph of a world's statements: nodes are names, edges what statements say of two of them, with who says so and when.

Statements that say the same are one edge with several supporters. Of edges that exclude each other all stay, and the one that holds is
worked out: what is said to have become so begins a new time; of the rest the surest count, each teller by the last word, then the most
tellers, then the latest.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hippo_core.methods.relational.mentions import Mention, mentions
from hippo_core.methods.relational.relations import Relation, relation_of
from hippo_core.methods.relational.speech import HEARSAY, Said, listen
from hippo_core.methods.relational.voices import heard
from hippo_core.store.trace import Trace


@dataclass(frozen=True, slots=True)
class Told:
    """A statement as an edge: what was heard, the names in it, and what it says of two of them (None: it mentions fewer)."""

    trace: Trace
    said: Said
    mentions: tuple[Mention, ...]
    relation: Relation | None

    @property
    def teller(self) -> str:
        return self.said.teller or self.trace.teller

    @property
    def confidence(self) -> float | None:
        """How surely it is told: by its words, else by what its teller said of it."""
        return self.trace.confidence if self.said.confidence is None else self.said.confidence

    @property
    def head(self) -> str:
        return self.mentions[self.relation.head].key if self.relation else ""

    @property
    def tail(self) -> str:
        return self.mentions[self.relation.tail].key if self.relation else ""


def read(trace: Trace) -> Told:
    """A statement's text, read."""
    said = listen(trace.text)
    said = heard(said, mentions(said.core))
    found = tuple(mentions(said.core))
    return Told(trace, said, found, relation_of(said.core, found))


@dataclass
class Graph:
    """`told` in order of telling; `at`: of each name the numbers of the statements that mention it; `types`: what each name is said to
    be; `groups`: statements by head and relation; `heads`: of which names a relation is told; `names`:
    each name as it was first written."""

    told: list[Told] = field(default_factory=list)
    at: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    types: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    groups: dict[tuple[str, str], list[int]] = field(default_factory=lambda: defaultdict(list))
    heads: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    names: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, traces: Iterable[Trace]) -> "Graph":
        """The graph of these traces."""
        graph = cls()
        for trace in traces:
            graph.add(read(trace))
        return graph

    def add(self, told: Told) -> None:
        """One more statement."""
        number = len(self.told)
        self.told.append(told)
        for key, name in {mention.key: mention.name for mention in told.mentions}.items():
            self.at[key].append(number)
            self.names.setdefault(key, name)
        if relation := told.relation:
            self.groups[told.head, relation.name].append(number)
            self.heads[relation.name].add(told.head)
            self.types[told.head] |= {relation.head_type} - {""}
            self.types[told.tail] |= {relation.tail_type} - {""}

    def fit(self, number: int) -> float:
        """How well a statement fits what is told of others, 0 to 1: n / (n + 1), where its relation is told of n heads besides its own."""
        told = self.told[number]
        others = len(self.heads[told.relation.name] - {told.head}) if told.relation else 0
        return others / (others + 1)

    def rivals(self, number: int) -> list[int]:
        """The statements that say the same relation of the same head, this one among them."""
        told = self.told[number]
        return self.groups[told.head, told.relation.name] if told.relation else [number]

    def contested(self, number: int) -> bool:
        """Whether others say otherwise: another tail for the same head and relation, by another teller, as a rumor, or later."""
        rivals = [self.told[one] for one in self.rivals(number)]
        if len({one.tail for one in rivals}) < 2:
            return False
        return len({one.teller for one in rivals}) > 1 or any(one.said.replaces or one.confidence == HEARSAY for one in rivals)

    def holds(self, number: int) -> int:
        """The statement that decides what holds, of this one and those that say otherwise."""
        rivals = sorted(self.rivals(number), key=lambda one: (self.told[one].trace.time, one))
        return decided([self.told[one] for one in rivals], rivals)


def decided(told: Sequence[Told], numbers: Sequence[int]) -> int:
    """Of statements in order of telling the number of the one that decides."""
    begin = max((place for place, one in enumerate(told) if one.said.replaces), default=0)
    left = [(one, number) for one, number in zip(told[begin:], numbers[begin:], strict=True)]
    left = [pair for pair in left if pair[0].confidence != HEARSAY] or left
    last = {one.teller: (one, number) for one, number in left}
    most = max(one.confidence or 0.0 for one, _ in last.values())
    surest = [pair for pair in last.values() if (pair[0].confidence or 0.0) == most]
    sides: dict[str, list[int]] = defaultdict(list)
    for one, number in surest:
        sides[one.tail].append(number)
    place = {number: at for at, number in enumerate(numbers)}
    winner = max(sides.values(), key=lambda side: (len(side), max(place[number] for number in side)))
    return max(winner, key=lambda number: place[number])
