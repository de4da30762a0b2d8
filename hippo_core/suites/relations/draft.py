"""A world of relations under construction: its entities, its true facts, and their statements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from hippo_core.suites.relations.bank import CLAUSES, BankRelation, frames, names, relations_of
from hippo_core.suites.reworded import sentence
from hippo_core.suites.semantic.conflict import deciding, disagree_with_confidence
from hippo_core.suites.splits import worded
from hippo_core.suites.types import Split

CONFIDENCE = {"high": 0.9, "middle": 0.6, "low": 0.3}
GUESSED = 0.1
FRAMES = {"denial": "negation", "guess": "hedges"}
TELLERS, PER_KIND = 6, 5  # witnesses; entities of a kind in a world


class DraftEdge(NamedTuple):
    """A fact: a head, a relation, a tail."""

    head: str
    relation: BankRelation
    tail: str

    @property
    def slots(self) -> dict[str, str]:
        """The slots of its statement."""
        return {"head": self.head, "relation": self.relation.name, "tail": self.tail}


@dataclass(frozen=True)
class DraftRow:
    """A statement: its text and slots, the edge that it is `about`, whether it `is_true` and decides the edge, its witness and their
    confidence. Statements about one edge stay in this order."""

    text: str
    slots: Mapping[str, str]
    about: DraftEdge
    is_true: bool = True
    decides: bool = False
    teller: str = ""
    confidence: float | None = None
    fit: bool = True


@dataclass(frozen=True)
class DraftWords:
    """The wordings that a world may use, of a split; `seen`: relations of the training split in wordings that are not of it."""

    random: Random
    split: Split
    seen: bool = False

    @property
    def relations(self) -> tuple[BankRelation, ...]:
        return relations_of("train", split_alone=True) if self.seen else relations_of(self.split)

    def choose(self, texts: Sequence[str], nested: bool = False) -> str:
        """One of the wordings that may be used. `nested`: what it is about is a description, which takes no 's."""
        allowed = worded(texts, self.split) if self.seen or self.split == "train" else tuple(texts)
        plain = [text for text in allowed if "}'s" not in text] if nested else []
        return self.random.choice(plain or allowed)

    def frame(self, name: str, kind: str = "") -> str:
        """A frame of a file; `kind`: of this kind."""
        return self.random.choice(frames(name, kind, self.split))

    def statement(self, edge: DraftEdge, clause: bool = False) -> str:
        """A statement of an edge; `clause`: as a part of another sentence."""
        of = edge.relation.statements
        form = self.choose([of[form] for form in (CLAUSES if clause else of)])
        if clause:
            form = lowered(form.rstrip(" .!"))
        return form.format(h=edge.head, t=edge.tail)

    def names(self, kind: str, count: int) -> list[str]:
        """So many names of a kind, each once, or all that there are."""
        if kind == "person":
            given, family = (self.names(part, count) for part in ("given", "surname"))
            return [f"{first} {last}" for first, last in zip(given, family, strict=True)]
        of = names(kind, self.split)
        return self.random.sample(of, min(count, len(of)))


@dataclass
class RelationDraft:
    """A world under construction: true `edges`, earlier tails (`was`), and tails that were stated and are not true (`refuted`)."""

    words: DraftWords
    edges: list[DraftEdge] = field(default_factory=list)
    kinds: dict[str, list[str]] = field(default_factory=dict)
    tellers: list[str] = field(default_factory=list)
    rows: list[DraftRow] = field(default_factory=list)
    was: dict[DraftEdge, str] = field(default_factory=dict)
    refuted: dict[DraftEdge, list[str]] = field(default_factory=dict)

    @property
    def random(self) -> Random:
        return self.words.random

    def draw(self, n_relations: int, n_edges: int) -> None:
        """Relations that lead to one another, entities of their kinds, and edges between these."""
        pool = self.random.sample(self.words.relations, len(self.words.relations))
        chosen = [pool.pop()]
        while len(chosen) < n_relations and pool:
            ends = {kind for relation in chosen for kind in (relation.head, relation.tail)}
            pool.sort(key=lambda relation: (relation.head in ends) + (relation.tail in ends) + 0.5 * self.random.random())
            relation = pool.pop() if self.random.random() < 0.8 else pool.pop(self.random.randrange(len(pool)))
            if not any(relation.is_like(other) for other in chosen):
                chosen.append(relation)
        for kind in dict.fromkeys(kind for relation in chosen for kind in (relation.head, relation.tail)):
            self.kinds[kind] = self.words.names(kind, PER_KIND)
        options = [(head, relation) for relation in chosen for head in self.kinds[relation.head]]
        for head, relation in self.random.sample(options, min(n_edges, len(options))):
            self.edges.append(DraftEdge(head, relation, self.random.choice([name for name in self.kinds[relation.tail] if name != head])))
        known = {name for of in self.kinds.values() for name in of}
        self.tellers = [name for name in self.words.names("person", TELLERS + PER_KIND) if name not in known][:TELLERS]

    def other(self, edge: DraftEdge, *more: str) -> str:
        """Another entity of the kind of its tail."""
        return self.random.choice([name for name in self.kinds[edge.relation.tail] if name not in (edge.head, edge.tail, *more)])

    def add(self, edge: DraftEdge, text: str, kind: str = "plain", *, tail: str = "", old: str = "", teller: str = "", **about) -> None:
        """A statement about an edge. `tail`: the stated tail, where it is not the edge's; `old`: the stated earlier tail."""
        more = {"told": kind} | ({"old": old} if old else {}) | ({"teller": teller} if teller else {})
        self.rows.append(DraftRow(sentence(text), {**edge.slots, "tail": tail or edge.tail, **more}, edge, teller=teller, **about))

    def state(self, edge: DraftEdge, witnessed: bool) -> None:
        """An edge that nobody contests."""
        certainty = self.random.choice([*CONFIDENCE]) if witnessed else ""
        if certainty:
            self.testify(edge, self.random.choice(self.tellers), certainty, decides=True)
        else:
            self.add(edge, self.words.statement(edge), decides=True)

    def testify(self, edge: DraftEdge, teller: str, certainty: str, tail: str = "", **about) -> None:
        """A witness states an edge, or another tail."""
        clause = self.words.statement(edge._replace(tail=tail or edge.tail), clause=True)
        text = self.words.frame("testimony", certainty).format(w=teller, s=clause)
        self.add(edge, text, certainty, tail=tail, teller=teller, confidence=CONFIDENCE[certainty], **about)

    def update(self, edge: DraftEdge) -> None:
        """First the earlier tail, then its update."""
        old = self.was[edge] = self.other(edge)
        self.add(edge, self.words.statement(edge._replace(tail=old)), tail=old, is_true=False)
        form = self.random.choice([*edge.relation.changes, self.words.frame("updates", "replaced")])
        text = form.format(h=edge.head, t=old, new=edge.tail, noun=edge.relation.noun)
        self.add(edge, text, "update", old=old if "{t}" in form else "", decides=True)
        self.refuted.setdefault(edge, []).append(old)

    def dispute(self, edge: DraftEdge) -> None:
        """Several witnesses disagree; the rules of `conflict` decide what is true."""
        wrong, level_of = self.other(edge), {value: name for name, value in CONFIDENCE.items()}
        testimonies = disagree_with_confidence(self.random, self.tellers, edge.tail, wrong, tuple(level_of))
        decides = deciding(testimonies, edge.tail)
        for index, (teller, tail, confidence) in enumerate(testimonies):
            certainty = level_of[confidence or 0.0]
            self.testify(edge, teller, certainty, tail, is_true=tail == edge.tail, decides=index == decides)
        self.refuted.setdefault(edge, []).append(wrong)

    def distract(self, edge: DraftEdge, kind: str) -> None:
        """A statement that does not change an edge: a denial, a guess, or a former fact."""
        wrong, noun = self.other(edge, *self.refuted.get(edge, ())), edge.relation.noun
        clause = self.words.statement(edge._replace(tail=wrong), clause=True)
        form = self.words.frame("updates", "former") if kind == "former" else self.words.frame(FRAMES[kind])
        teller = self.random.choice(self.tellers) if "{w}" in form else ""
        text = form.format(h=edge.head, t=wrong, old=wrong, noun=noun, s=clause, w=teller)
        confidence = GUESSED if kind == "guess" else None
        self.add(edge, text, kind, tail=wrong, teller=teller, is_true=False, fit=False, confidence=confidence)
        self.refuted.setdefault(edge, []).append(wrong)

    def ordered(self) -> list[DraftRow]:
        """The statements in random order; those about one edge keep theirs."""
        positions = self.random.sample(range(len(self.rows)), len(self.rows))
        own: dict[DraftEdge, list[int]] = {}
        for position, row in zip(positions, self.rows, strict=True):
            own.setdefault(row.about, []).append(position)
        turns = {edge: iter(sorted(of)) for edge, of in own.items()}
        order = {next(turns[row.about]): row for row in self.rows}
        return [order[position] for position in sorted(order)]


def lowered(form: str) -> str:
    """A form as it goes on after other words."""
    return form if form.startswith("I ") else form[:1].lower() + form[1:]
