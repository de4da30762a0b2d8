"""The graph of a world's statements: nodes are names; edges are what statements say of two names, who says so and when.

Edges conflict where their relation has one tail at a time, which is learned (`Schema`). All of them stay, and `resolve_conflict` says
which one holds. A pending edge counts there too. A path leads over a pending edge only where the graph has its relation, but no other edge
of its head.
"""

import re
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from hippo_core.methods.relational.attribution import CERTAIN, HEARSAY, Attribution, Date, When, infer_speaker, lowered, parse_attribution
from hippo_core.methods.relational.edge import HUB, Attestation, Edge, EdgeTerms, hub, recency
from hippo_core.methods.relational.mentions import Mention, NameIndex, mentions
from hippo_core.methods.relational.relations import Relation, relation_of
from hippo_core.store.trace import Trace

FUNCTIONAL = 0.75  # of heads with one tail, by Laplace's rule of succession: two without an exception, five with one
Tails = Literal["", "one", "moved", "several", "open"]  # of a head: nothing but hearsay, one, one after another, several, people disagree


class Slots(NamedTuple):
    """The kinds of an edge's head and tail: what they are said to be, "number", or "" where nothing tells."""

    head: str
    tail: str


@dataclass
class Schema:
    """A relation as far as it is known. `heads`: the kinds of each head's first edge."""

    heads: dict[str, Slots] = field(default_factory=dict)
    head_kinds: Counter[str] = field(default_factory=Counter)
    tail_kinds: Counter[str] = field(default_factory=Counter)
    tails: Counter[Tails] = field(default_factory=Counter)

    def learn(self, head: str, slots: Slots) -> None:
        """One more head, once."""
        if head not in self.heads:
            self.heads[head] = slots
            self.head_kinds[slots.head] += 1
            self.tail_kinds[slots.tail] += 1

    def score(self, head: str, slots: Slots) -> float:
        """How well an edge fits, from 0 to 1: n / (n + 1), where n is how many other heads had a slot of the same kind, or one of which
        nothing tells; of head and tail the one that fits less."""
        own = self.heads.get(head)
        counts = (
            _like(self.head_kinds, slots.head) - (own is not None and _compatible(own.head, slots.head)),
            _like(self.tail_kinds, slots.tail) - (own is not None and _compatible(own.tail, slots.tail)),
        )
        return min(counts) / (min(counts) + 1)

    @property
    def functional(self) -> bool:
        """Whether a head has one tail at a time. A head that moved from one to another says so twice; where tellers disagree a head says
        nothing, as that is what is to be judged."""
        single, several = self.tails["one"] + 2 * self.tails["moved"], self.tails["several"]
        return (single + 1) / (single + several + 2) >= FUNCTIONAL


def _compatible(kind: str, other: str) -> bool:
    return kind == other or (not kind and other != "number") or (not other and kind != "number")


def _like(kinds: Counter[str], kind: str) -> int:
    if kind:
        return kinds[kind] + (kinds[""] if kind != "number" else 0)
    return kinds.total() - kinds["number"]


WHEN = re.compile(r" (?:in|on|at) (?P<when>[a-z]\w*)$")


class Key(NamedTuple):
    """What makes two statements one edge; `context`: further names, and a time."""

    head: str
    relation: str
    tail: str
    context: frozenset[str]


@dataclass(frozen=True, slots=True)
class StatementEdge:
    """A statement as an edge: its text, the names in it, its relation, and the key that equal edges share (both None: it joins no two
    names)."""

    trace: Trace
    attribution: Attribution
    mentions: tuple[Mention, ...]
    relation: Relation | None
    key: Key | None = None  # kept, as every step of a write asks for it

    @property
    def teller(self) -> str:
        return self.attribution.teller or self.trace.teller

    @property
    def confidence(self) -> float | None:
        """By the words of the statement, else as its teller gave it."""
        return self.trace.confidence if self.attribution.confidence is None else self.attribution.confidence

    @property
    def head(self) -> str:
        return self.key.head if self.key else ""

    @property
    def tail(self) -> str:
        return self.key.tail if self.key else ""

    @property
    def attestation(self) -> Attestation:
        """That of this statement alone."""
        return Attestation(self.teller, self.trace.time, self.confidence, self.attribution.replaces)

    @property
    def attestations(self) -> tuple[Attestation, ...]:
        """All that a gate has added to this edge, in order."""
        return self.trace.payload.attestations if isinstance(self.trace.payload, Edge) else (self.attestation,)

    @property
    def is_pending(self) -> bool:
        """Whether it is only an episodic trace, until a replay promotes it."""
        return isinstance(self.trace.payload, Edge) and self.trace.payload.is_pending and not self.trace.uses

    def became(self, trace: Trace) -> bool:
        """Whether a trace is this statement, repeated or promoted since; not where it is another one, or pending again."""
        same = (trace.id, trace.source, trace.text) == (self.trace.id, self.trace.source, self.trace.text)
        return same and (self.is_pending or not replace(self, trace=trace).is_pending)


def read(trace: Trace) -> StatementEdge:
    """Read a statement's text. Fewer than two names, or a name and itself, make no edge."""
    attribution = parse_attribution(trace.text)
    attribution = infer_speaker(replace(attribution, core=lowered(attribution.core)), mentions(lowered(attribution.core)))
    names = tuple(mentions(attribution.core))
    relation = relation_of(attribution.core, names)
    if relation is None or names[relation.head].key == names[relation.tail].key:
        return StatementEdge(trace, attribution, names, None)
    return StatementEdge(trace, attribution, names, relation, _key(attribution.core, names, relation))


TraceReader = Callable[[Trace], StatementEdge]


def _key(core: str, names: Sequence[Mention], relation: Relation) -> Key:
    head, tail = names[relation.head].key, names[relation.tail].key
    others, when = {mention.key for mention in names} - {head, tail}, WHEN.search(core)
    return Key(head, relation.name, tail, frozenset(others | ({when["when"]} if when else set())))


@dataclass
class ConflictSet:
    """Edges of one head, relation and context: `numbers` of statements, by tail."""

    numbers: list[int] = field(default_factory=list)
    edges: int = 0  # how many of them are not pending
    tails: dict[str, int] = field(default_factory=dict)  # how many of them have it
    tails_by_teller: dict[str, set[str]] = field(default_factory=dict)  # by teller, but for hearsay
    known: set[str] = field(default_factory=set)  # by any teller, but for hearsay
    moved: bool = False
    winner: int | None = None  # until the next statement

    def take(self, tail: str, attestations: Iterable[Attestation]) -> None:
        """Add what was said of a tail."""
        self.winner = None
        for attestation in attestations:
            self.moved = self.moved or attestation.replaces
            if attestation.confidence != HEARSAY:
                self.tails_by_teller.setdefault(attestation.teller, set()).add(tail)
                self.known.add(tail)

    @property
    def state(self) -> Tails:
        """How many tails the head has at a time, as far as these edges show."""
        if len(self.known) < 2:
            return "one" if self.known else ""
        if self.moved:
            return "moved"
        return "several" if len(self.tails_by_teller) == 1 else "open"


class ConflictClaim(NamedTuple):
    """One attestation of a statement; `old`: that it says what is no longer so, or never was."""

    number: int
    tail: str
    attestation: Attestation
    old: bool = False

    @property
    def confidence_or_default(self) -> float:
        """Its confidence; a plain statement counts as certain."""
        return CERTAIN if self.attestation.confidence is None else self.attestation.confidence


@dataclass
class Graph:
    """The graph of one world's statements, by number in order of telling."""

    statements: list[StatementEdge] = field(default_factory=list)
    at: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))  # by name the statements that mention it, but pending ones
    types: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # what each name is said to be
    groups: dict[tuple[str, str, frozenset[str]], ConflictSet] = field(default_factory=dict)  # by head, relation and context
    schemas: dict[str, Schema] = field(default_factory=dict)  # one a relation
    names: dict[str, str] = field(default_factory=dict)  # each name as first written
    edges: dict[Key, int] = field(default_factory=dict)  # the first statement of each edge
    pending: dict[Key, int] = field(default_factory=dict)
    relations: set[str] = field(default_factory=set)  # those of `edges`
    pending_at: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))  # as `at`, of pending ones
    pairs: set[tuple[str, str]] = field(default_factory=set)  # which names are joined
    nodes: NameIndex = field(default_factory=NameIndex)  # the names of `at`
    kinds: set[str] = field(default_factory=set)  # all that names are said to be
    dates: set[str] = field(default_factory=set)  # the kinds of dates that occur
    read_trace: TraceReader = read

    @classmethod
    def of(cls, traces: Iterable[Trace], read_trace: TraceReader = read) -> "Graph":
        """The graph of these traces."""
        graph = cls(read_trace=read_trace)
        for trace in traces:
            graph.add(read_trace(trace))
        return graph

    def follow(self, traces: Sequence[Trace]) -> "Graph":
        """The graph of these traces: this one, grown, where they begin with its own, repeated or promoted since; else a new one."""
        if len(traces) < len(self.statements):
            return Graph.of(traces, self.read_trace)
        for number, (statement, trace) in enumerate(zip(self.statements, traces, strict=False)):
            if statement.trace == trace:
                continue
            if not statement.became(trace):
                return Graph.of(traces, self.read_trace)
            self.renew(number, trace)
        for trace in traces[len(self.statements) :]:
            self.add(self.read_trace(trace))
        return self

    def add(self, statement: StatementEdge) -> None:
        """Add a statement."""
        number = len(self.statements)
        self.statements.append(statement)
        if statement.attribution.since:
            self.dates.add(statement.attribution.since.kind)
        for key, name in {mention.key: mention.name for mention in statement.mentions}.items():
            self.names.setdefault(key, name)
            if statement.is_pending:
                self.pending_at[key].append(number)
            else:
                self.at[key].append(number)
                self.nodes.add(key)
        if (relation := statement.relation) and (key := statement.key):
            self.types[statement.head] |= {relation.head_type} - {""}
            self.types[statement.tail] |= {relation.tail_type} - {""}
            self.kinds |= {relation.head_type, relation.tail_type} - {""}
            group = self.groups.setdefault((key.head, key.relation, key.context), ConflictSet())
            group.numbers.append(number)
            if not statement.is_pending:
                self._join(group, key, number)
            group.tails[key.tail] = group.tails.get(key.tail, 0) + 1
            self._take(group, statement, statement.attestations)
            self.schemas[key.relation].learn(key.head, self.slots(statement))
            if statement.is_pending:
                self.pending.setdefault(key, number)

    def renew(self, number: int, trace: Trace) -> None:
        """Replace the trace of a statement that was repeated, or promoted, and so is no longer pending."""
        before = self.statements[number]
        statement = self.statements[number] = replace(before, trace=trace)
        if (group := self._group(number)) is not None:
            self._take(group, statement, statement.attestations)
        if before.is_pending and not statement.is_pending:
            for name in {mention.key for mention in statement.mentions}:
                self.pending_at[name].remove(number)
                insort(self.at[name], number)
                self.nodes.add(name)
            if (key := statement.key) and group:
                self._join(group, key, number)
                self.pending.pop(key, None)

    def _join(self, group: ConflictSet, key: Key, number: int) -> None:
        group.edges += 1
        self.relations.add(key.relation)
        self.edges.setdefault(key, number)
        self.pairs.add(_pair(key.head, key.tail))

    @property
    def growth(self) -> dict[str, float]:
        """`nodes_per_1k` and `edges_per_1k`: names and edges (each of its own where nothing gates) for 1,000 statements that were told."""
        attempts = max(1, sum(statement.trace.evidence for statement in self.statements))
        nodes, edges = sum(map(bool, self.at.values())), sum(group.edges for group in self.groups.values())
        return {"nodes_per_1k": 1e3 * nodes / attempts, "edges_per_1k": 1e3 * edges / attempts}

    def statements_about(self, name: str) -> list[int]:
        """The statements that mention a name and may be part of a path, in order."""
        return sorted([*self.at.get(name, ()), *(number for number in self.pending_at.get(name, ()) if self.alone(number))])

    def alone(self, number: int) -> bool:
        """Whether a pending statement is the only one of its head in a relation that the graph has."""
        group, key = self._group(number), self.statements[number].key
        return group is not None and key is not None and not group.edges and key.relation in self.relations

    def _take(self, group: ConflictSet, statement: StatementEdge, attestations: Iterable[Attestation]) -> None:
        assert statement.relation is not None
        schema = self.schemas.setdefault(statement.relation.name, Schema())
        schema.tails[group.state] -= 1
        group.take(statement.tail, attestations)
        schema.tails[group.state] += 1

    def _group(self, number: int) -> ConflictSet | None:
        key = self.statements[number].key
        return self.groups[key.head, key.relation, key.context] if key else None

    def slots(self, statement: StatementEdge) -> Slots:
        """The kinds of an edge's two names, by its own words, else by earlier statements."""
        assert statement.relation is not None
        return Slots(self._kind(statement.head, statement.relation.head_type), self._kind(statement.tail, statement.relation.tail_type))

    def _kind(self, name: str, stated: str) -> str:
        return "number" if name[:1].isdigit() else stated or min(self.types.get(name, ()), default="")

    def fit(self, statement: StatementEdge) -> float:
        """How well a statement fits the schema of its relation, 0 to 1 (`Schema.score`); 0 for one that joins no two names."""
        schema = self.schemas.get(statement.relation.name) if statement.relation else None
        return schema.score(statement.head, self.slots(statement)) if schema else 0.0

    def terms(self, statement: StatementEdge, confidence: float, now: bool = True) -> EdgeTerms:
        """What a gate weighs of an edge. `confidence`: of all its tellers; `now`: whether it is being told, or replayed later."""
        names, key = (statement.head, statement.tail), statement.key
        numbers_by_name = [self.at[name] for name in names if self.at.get(name)]
        gap = min((len(self.statements) - numbers[-1] for numbers in numbers_by_name), default=None)
        novelty = 0.0 if key in self.edges else 0.5 if _pair(*names) in self.pairs else 1.0
        degree = max((len(numbers) for numbers in numbers_by_name), default=0)
        return EdgeTerms(confidence, self.fit(statement), novelty, recency(gap) if now else 1.0, hub(degree, HUB))

    def competing_statements(self, number: int) -> list[int]:
        """The statements that say the same relation of the same head in the same context, this one among them."""
        group = self._group(number)
        return group.numbers if group else [number]

    def contested(self, number: int) -> bool:
        """Whether others say otherwise: another tail, where the relation has one tail at a time."""
        group, relation = self._group(number), self.statements[number].relation
        return group is not None and relation is not None and len(group.tails) > 1 and self.schemas[relation.name].functional

    def current_statement(self, number: int) -> int:
        """The statement that holds, of this one and those it conflicts with."""
        group = self._group(number)
        if group is None:
            return number
        if group.winner is None:
            group.winner = resolve_conflict(self._claims(group)).number
        return group.winner

    def statement_at(self, number: int, when: When) -> int | None:
        """The statement that held at the time that a question asks about; None where none did."""
        if not self.contested(number):
            since = self.statements[number].attribution.since
            return None if since and when.date and _later(since, when.date) else number
        if when.date is None:
            history = self.history(number)
            return history[0] if when.what == "first" else history[-2] if len(history) > 1 else None
        later = [
            statement.trace.time
            for statement in self.statements
            if statement.attribution.since and _later(statement.attribution.since, when.date)
        ]
        claims = [claim for claim in self._claims(self._group(number)) if not later or claim.attestation.time < min(later)]
        return resolve_conflict(claims).number if claims else None

    def history(self, number: int) -> list[int]:
        """The statements that held one after the other, of this one and those it conflicts with: the first one of each tail in turn."""
        winners = list[ConflictClaim]()
        claims = self._claims(self._group(number))
        for time in dict.fromkeys(claim.attestation.time for claim in claims):
            winner = resolve_conflict([claim for claim in claims if claim.attestation.time <= time])
            if not winners or winners[-1].tail != winner.tail:
                winners.append(winner)
        return [winner.number for winner in winners] or [number]

    def _claims(self, group: ConflictSet | None) -> list[ConflictClaim]:
        """All attestations of a group, in order."""
        statements = ((number, self.statements[number]) for number in (group.numbers if group else ()))
        claims = [
            ConflictClaim(number, statement.tail, attestation) for number, statement in statements for attestation in statement.attestations
        ]
        return sorted(claims, key=lambda claim: (claim.attestation.time, claim.number))

    @property
    def repeated(self) -> float:
        """The share of its edges that repeat another; 0 without edges."""
        keys = [statement.key for statement in self.statements if statement.relation]
        return 1 - len(set(keys)) / len(keys) if keys else 0.0


def resolve_conflict(claims: Sequence[ConflictClaim]) -> ConflictClaim:
    """The claim that holds, of claims in order.

    A claim that says something changed outdates those before it. Of the rest count those of the highest confidence, by each teller's last
    claim; then the tail of most tellers; then the latest.
    """
    begin = max((index for index, claim in enumerate(claims) if claim.attestation.replaces), default=0)
    left = [*enumerate(claims)][begin:]
    left = [(index, claim) for index, claim in left if claim.confidence_or_default > HEARSAY] or left
    last = {claim.attestation.teller: (index, claim) for index, claim in left}
    most = max(claim.confidence_or_default for _, claim in last.values())
    indices_by_tail: dict[str, list[int]] = defaultdict(list)
    for index, claim in last.values():
        if claim.confidence_or_default == most:
            indices_by_tail[claim.tail].append(index)
    winner = max(indices_by_tail.values(), key=lambda indices: (len(indices), max(indices)))
    return claims[max(winner)]


def _later(date: Date, than: Date) -> bool:
    return date.kind == than.kind and date.number > than.number


def _pair(name: str, other: str) -> tuple[str, str]:
    return (name, other) if name <= other else (other, name)
