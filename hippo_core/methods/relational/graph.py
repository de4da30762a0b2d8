"""The graph of a world's statements: nodes are names, edges what statements say of two of them, with who says so and when.

Of edges that exclude each other all stay, and the one that holds is worked out (`deciding`). They exclude each other where their relation
has one tail at a time, which is learned (schema.py). An edge that waits for more evidence has a voice in that. A path leads over it only
where the graph has the relation, but nothing of it about that head: what is vague is better than nothing, and no better than what is sure.
"""

import re
from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, overload

from hippo_core.methods.gate_terms import hub
from hippo_core.methods.relational.attribution import HEARSAY, SURE, Attribution, infer_speaker, lowered, parse_attribution
from hippo_core.methods.relational.edge import HUB, Attestation, Edge, EdgeTerms, recency
from hippo_core.methods.relational.mentions import Mention, NameIndex, mentions
from hippo_core.methods.relational.relations import Relation, relation_of
from hippo_core.methods.relational.schema import Schema, Slots, Tails
from hippo_core.methods.relational.times import Date, When
from hippo_core.store.trace import Trace

WHEN = re.compile(r" (?:in|on|at) (?P<when>[a-z]\w*)$")


class Key(NamedTuple):
    """What makes two statements one edge; `context`: further names, and a time."""

    head: str
    relation: str
    tail: str
    context: frozenset[str]


@dataclass(frozen=True, slots=True)
class StatementEdge:
    """A statement as an edge: what was heard, the names in it, what it says of two of them, and what makes it one edge with another
    (both None: it joins no two names)."""

    trace: Trace
    said: Attribution
    mentions: tuple[Mention, ...]
    relation: Relation | None
    key: Key | None = None  # kept, as every step of a write asks for it

    @property
    def teller(self) -> str:
        return self.said.teller or self.trace.teller

    @property
    def confidence(self) -> float | None:
        """How surely it is told: by its words, else by what its teller said of it."""
        return self.trace.confidence if self.said.confidence is None else self.said.confidence

    @property
    def head(self) -> str:
        return self.key.head if self.key else ""

    @property
    def tail(self) -> str:
        return self.key.tail if self.key else ""

    @property
    def telling(self) -> Attestation:
        """Its own."""
        return Attestation(self.teller, self.trace.time, self.confidence, self.said.replaces)

    @property
    def tellings(self) -> tuple[Attestation, ...]:
        """All that a gate has added up, in order."""
        return self.trace.payload.tellings if isinstance(self.trace.payload, Edge) else (self.telling,)

    @property
    def waits(self) -> bool:
        """Whether it is kept as an episodic trace alone, until a replay promotes it."""
        return isinstance(self.trace.payload, Edge) and self.trace.payload.waits and not self.trace.uses

    def became(self, trace: Trace) -> bool:
        """Whether a trace is that of this statement, told again or promoted since; not where it is another one, or waits again."""
        same = (trace.id, trace.source, trace.text) == (self.trace.id, self.trace.source, self.trace.text)
        return same and (self.waits or not replace(self, trace=trace).waits)


def read(trace: Trace) -> StatementEdge:
    """A statement's text, read. A statement of fewer than two names joins nothing, nor does one of a name and itself."""
    said = parse_attribution(trace.text)
    said = infer_speaker(replace(said, core=lowered(said.core)), mentions(lowered(said.core)))
    found = tuple(mentions(said.core))
    relation = relation_of(said.core, found)
    if relation is None or found[relation.head].key == found[relation.tail].key:
        return StatementEdge(trace, said, found, None)
    return StatementEdge(trace, said, found, relation, _key(said.core, found, relation))


Listen = Callable[[Trace], StatementEdge]


def _key(core: str, found: Sequence[Mention], relation: Relation) -> Key:
    head, tail = found[relation.head].key, found[relation.tail].key
    others, when = {mention.key for mention in found} - {head, tail}, WHEN.search(core)
    return Key(head, relation.name, tail, frozenset(others | ({when["when"]} if when else set())))


@dataclass
class ConflictSet:
    """Edges of one head, relation and context: `numbers` of statements, by tail."""

    numbers: list[int] = field(default_factory=list)
    edges: int = 0  # how many of them do not wait
    tails: dict[str, int] = field(default_factory=dict)  # how many of them have it
    said: dict[str, set[str]] = field(default_factory=dict)  # by teller, but for hearsay
    known: set[str] = field(default_factory=set)  # by any teller, but for hearsay
    moved: bool = False
    winner: int | None = None  # kept until something is told

    def take(self, tail: str, tellings: Iterable[Attestation]) -> None:
        """What was told of a tail."""
        self.winner = None
        for one in tellings:
            self.moved = self.moved or one.replaces
            if one.confidence != HEARSAY:
                self.said.setdefault(one.teller, set()).add(tail)
                self.known.add(tail)

    @property
    def state(self) -> Tails:
        """How many tails the head has at a time, as far as this tells."""
        if len(self.known) < 2:
            return "one" if self.known else ""
        if self.moved:
            return "moved"
        return "several" if len(self.said) == 1 else "open"


class ConflictClaim(NamedTuple):
    """One telling of a statement."""

    number: int
    tail: str
    said: Attestation

    @property
    def sure(self) -> float:
        """How surely it was told; what is told plainly is as sure as what somebody knows."""
        return SURE if self.said.confidence is None else self.said.confidence


class Period(NamedTuple):
    """That a statement held from one time on until another, in the order of telling (None: it holds)."""

    number: int
    since: int
    until: int | None


@dataclass
class Graph:
    """`told` in order of telling; `at`: of each name the numbers of the statements that mention it and do not wait; `types`: what each name
    is said to be; `groups`: edges by head, relation and context; `schemas`: what relations are like; `names`: each name as it was first
    written; `edges`, `waiting`: of each edge the statement that stands for it; `relations`: those of `edges`; `aside`: as `at`, of what
    waits; `pairs`: which names are joined; `nodes`: the names of `at`; `kinds`: all that names are said to be; `dates`: by what kinds of
    dates things are told to be so."""

    told: list[StatementEdge] = field(default_factory=list)
    at: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    types: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    groups: dict[tuple[str, str, frozenset[str]], ConflictSet] = field(default_factory=dict)
    schemas: dict[str, Schema] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    edges: dict[Key, int] = field(default_factory=dict)
    waiting: dict[Key, int] = field(default_factory=dict)
    relations: set[str] = field(default_factory=set)
    aside: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    pairs: set[tuple[str, str]] = field(default_factory=set)
    nodes: NameIndex = field(default_factory=NameIndex)
    kinds: set[str] = field(default_factory=set)
    dates: set[str] = field(default_factory=set)
    listen: Listen = read

    @classmethod
    def of(cls, traces: Iterable[Trace], listen: Listen = read) -> "Graph":
        """The graph of these traces."""
        graph = cls(listen=listen)
        for trace in traces:
            graph.add(listen(trace))
        return graph

    def follow(self, traces: Sequence[Trace]) -> "Graph":
        """The graph of these traces: this one, grown, where they begin with its own, which may have been told again or promoted; else
        another."""
        if len(traces) < len(self.told):
            return Graph.of(traces, self.listen)
        for number, (told, trace) in enumerate(zip(self.told, traces, strict=False)):
            if told.trace == trace:
                continue
            if not told.became(trace):
                return Graph.of(traces, self.listen)
            self.renew(number, trace)
        for trace in traces[len(self.told) :]:
            self.add(self.listen(trace))
        return self

    def add(self, told: StatementEdge) -> None:
        """One more statement."""
        number = len(self.told)
        self.told.append(told)
        if told.said.since:
            self.dates.add(told.said.since.kind)
        for key, name in {mention.key: mention.name for mention in told.mentions}.items():
            self.names.setdefault(key, name)
            if told.waits:
                self.aside[key].append(number)
            else:
                self.at[key].append(number)
                self.nodes.add(key)
        if (relation := told.relation) and (key := told.key):
            self.types[told.head] |= {relation.head_type} - {""}
            self.types[told.tail] |= {relation.tail_type} - {""}
            self.kinds |= {relation.head_type, relation.tail_type} - {""}
            group = self.groups.setdefault((key.head, key.relation, key.context), ConflictSet())
            group.numbers.append(number)
            if not told.waits:
                self._join(group, key, number)
            group.tails[key.tail] = group.tails.get(key.tail, 0) + 1
            self._take(group, told, told.tellings)
            self.schemas[key.relation].learn(key.head, self.slots(told))
            if told.waits:
                self.waiting.setdefault(key, number)

    def renew(self, number: int, trace: Trace) -> None:
        """The trace of a statement after it was told again, or promoted, so that it waits no more."""
        before = self.told[number]
        told = self.told[number] = replace(before, trace=trace)
        if (group := self._group(number)) is not None:
            self._take(group, told, told.tellings)
        if before.waits and not told.waits:
            for name in {mention.key for mention in told.mentions}:
                self.aside[name].remove(number)
                insort(self.at[name], number)
                self.nodes.add(name)
            if (key := told.key) and group:
                self._join(group, key, number)
                self.waiting.pop(key, None)

    def _join(self, group: ConflictSet, key: Key, number: int) -> None:
        group.edges += 1
        self.relations.add(key.relation)
        self.edges.setdefault(key, number)
        self.pairs.add(_pair(key.head, key.tail))

    def met(self, name: str) -> list[int]:
        """The statements that mention a name and that a path may lead over, in order."""
        return sorted([*self.at.get(name, ()), *(number for number in self.aside.get(name, ()) if self.alone(number))])

    def alone(self, number: int) -> bool:
        """Whether it waits where the graph has its relation, but nothing of it about its head."""
        group, key = self._group(number), self.told[number].key
        return group is not None and key is not None and not group.edges and key.relation in self.relations

    def _take(self, group: ConflictSet, told: StatementEdge, tellings: Iterable[Attestation]) -> None:
        assert told.relation is not None
        schema = self.schemas.setdefault(told.relation.name, Schema())
        schema.tails[group.state] -= 1
        group.take(told.tail, tellings)
        schema.tails[group.state] += 1

    def _group(self, number: int) -> ConflictSet | None:
        key = self.told[number].key
        return self.groups[key.head, key.relation, key.context] if key else None

    def slots(self, told: StatementEdge) -> Slots:
        """Of what kinds the two names of an edge are, by its own words, else by what was told of them before."""
        assert told.relation is not None
        return Slots(self._kind(told.head, told.relation.head_type), self._kind(told.tail, told.relation.tail_type))

    def _kind(self, name: str, said: str) -> str:
        return "number" if name[:1].isdigit() else said or min(self.types.get(name, ()), default="")

    def fit(self, told: StatementEdge) -> float:
        """How well a statement fits what its relation is told of others, 0 to 1 (`Schema.score`); 0 for one that joins no two names."""
        schema = self.schemas.get(told.relation.name) if told.relation else None
        return schema.score(told.head, self.slots(told)) if schema else 0.0

    def terms(self, told: StatementEdge, sure: float, now: bool = True) -> EdgeTerms:
        """What a gate weighs of an edge. `sure`: how sure its tellers are; `now`: whether it is being told, or replayed long after."""
        names, key = (told.head, told.tail), told.key
        places = [self.at[name] for name in names if self.at.get(name)]
        gap = min((len(self.told) - numbers[-1] for numbers in places), default=None)
        novelty = 0.0 if key in self.edges else 0.5 if _pair(*names) in self.pairs else 1.0
        degree = max((len(numbers) for numbers in places), default=0)
        return EdgeTerms(sure, self.fit(told), novelty, recency(gap) if now else 1.0, hub(degree, HUB))

    def rivals(self, number: int) -> list[int]:
        """The statements that say the same relation of the same head in the same context, this one among them."""
        group = self._group(number)
        return group.numbers if group else [number]

    def contested(self, number: int) -> bool:
        """Whether others say otherwise: another tail, where the relation has one tail at a time."""
        group, relation = self._group(number), self.told[number].relation
        return group is not None and relation is not None and len(group.tails) > 1 and self.schemas[relation.name].functional

    @overload
    def holds(self, number: int) -> int: ...
    @overload
    def holds(self, number: int, at: int | None) -> int | None: ...
    def holds(self, number: int, at: int | None = None) -> int | None:
        """The statement that decides what holds, of this one and those that say otherwise; `at`: of what was told until this time, in the
        order of telling, None where nothing was."""
        group = self._group(number)
        if group is None:
            return number if at is None or self.told[number].trace.time <= at else None
        if at is None:
            if group.winner is None:
                group.winner = deciding(self._claims(group))
            return group.winner
        claims = [claim for claim in self._claims(group) if claim.said.time <= at]
        return deciding(claims) if claims else None

    def held(self, number: int, when: When) -> int | None:
        """The statement that decided at the time that is asked about; None where nothing was told of it then."""
        if not self.contested(number):
            since = self.told[number].said.since
            return None if since and when.date and _later(since, when.date) else number
        if when.date is None:
            periods = self.history(number)
            return periods[0].number if when.what == "first" else periods[-2].number if len(periods) > 1 else None
        later = [told.trace.time for told in self.told if told.said.since and _later(told.said.since, when.date)]
        return self.holds(number, min(later) - 1 if later else None)

    def history(self, number: int) -> list[Period]:
        """What held when, of this statement and those that say otherwise; a period ends where another tail holds."""
        group, periods = self._group(number), list[Period]()
        claims = self._claims(group) if group else []
        for time in dict.fromkeys(claim.said.time for claim in claims):
            winner = deciding([claim for claim in claims if claim.said.time <= time])
            if periods and self.told[periods[-1].number].tail == self.told[winner].tail:
                continue
            if periods:
                periods[-1] = periods[-1]._replace(until=time)
            periods.append(Period(winner, time, None))
        return periods or [Period(number, self.told[number].trace.time, None)]

    def _claims(self, group: ConflictSet) -> list[ConflictClaim]:
        """All tellings of a group, in order."""
        told = ((number, self.told[number]) for number in group.numbers)
        claims = [ConflictClaim(number, one.tail, telling) for number, one in told for telling in one.tellings]
        return sorted(claims, key=lambda claim: (claim.said.time, claim.number))

    @property
    def repeated(self) -> float:
        """The share of its edges that repeat another; 0 without edges."""
        keys = [told.key for told in self.told if told.relation]
        return 1 - len(set(keys)) / len(keys) if keys else 0.0


def deciding(told: Sequence[ConflictClaim]) -> int:
    """Of claims in order, the number of the statement that decides.

    What is said to have become so begins a new time. Of the rest the surest count, each teller by the last word, then the most tellers,
    then the latest.
    """
    begin = max((place for place, one in enumerate(told) if one.said.replaces), default=0)
    left = [*enumerate(told)][begin:]
    left = [(place, one) for place, one in left if one.sure != HEARSAY] or left
    last = {one.said.teller: (place, one) for place, one in left}
    most = max(one.sure for _, one in last.values())
    sides: dict[str, list[int]] = defaultdict(list)
    for place, one in last.values():
        if one.sure == most:
            sides[one.tail].append(place)
    winner = max(sides.values(), key=lambda side: (len(side), max(side)))
    return told[max(winner)].number


def _later(date: Date, than: Date) -> bool:
    return date.kind == than.kind and date.number > than.number


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one <= other else (other, one)
