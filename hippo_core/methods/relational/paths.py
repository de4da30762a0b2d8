"""Paths through the graph: from the names of a question over statements that share a name, to what is asked for."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from hippo_core.methods.relational.clauses import Clauses, blank
from hippo_core.methods.relational.graph import Graph, Told, decided
from hippo_core.methods.relational.likeness import Likeness, spelling
from hippo_core.methods.relational.mentions import COMMON, Mention, mentions
from hippo_core.methods.relational.speech import Said
from hippo_core.retrieval.lexicon import words

ASKED = re.compile(
    r"\b(?:which|what) (?P<a>[a-z]+)|\bthe (?P<b>[a-z]+) (?:where|in which|that|who|which)\b|\b(?P<c>where|who|whom|when)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts of a path. `covered`: the share of the question's words that it has; `clauses`: how well its statements say in order
    what the question's parts say, each from a likeness of `chance` on; `fits`: that its end is of the kind that is asked for; `seen`: that
    the question's names are met; `schema`: that others are told of likewise; `hop`: what each statement costs."""

    covered: float = 1.0
    clauses: float = 2.0
    chance: float = 0.15
    fits: float = 1.0
    seen: float = 0.5
    same: float = 0.5
    asked: float = 0.2
    schema: float = 0.1
    hop: float = 0.15

    @property
    def most(self) -> float:
        """The largest score that there is."""
        return self.covered + self.fits + self.seen + self.schema - self.hop


@dataclass(frozen=True, slots=True)
class Path:
    """Statements by number, in the order in which they lead from a name of the question to `end`; `score` says how well they fit."""

    statements: tuple[int, ...]
    nodes: tuple[str, ...]
    score: float
    worth: np.ndarray = field(compare=False, repr=False)  # see Clauses

    @property
    def end(self) -> str:
        return self.nodes[-1]

    @property
    def confidence(self) -> float:
        """How sure it is that this is the way to the answer: the score as a share of the largest one that there is."""
        return min(1.0, max(0.0, self.score / Weights().most))


class Claim(NamedTuple):
    """What a statement says of a name: of which other one, who says so, how surely, and whether it is said to have become so."""

    tail: str
    teller: str
    confidence: float | None
    said: Said

    @classmethod
    def of(cls, told: Told, name: str) -> Self:
        """What this statement of two names says of one of them."""
        [tail] = {mention.key for mention in told.mentions} - {name}
        return cls(tail, told.teller, told.confidence, told.said)


class Search:
    """Search over one graph.

    Args:
        alike: how alike words and texts are.
        resolve: whether a contested statement is replaced by the one that holds.
        hops: statements of a path, at most.
        beam: paths that are followed further at each hop.
        weights: what counts of a path.
    """

    def __init__(
        self,
        graph: Graph,
        alike: Likeness | None = None,
        resolve: bool = True,
        hops: int = 3,
        beam: int = 12,
        weights: Weights | None = None,
    ) -> None:
        self.graph, self.alike, self.resolve, self.hops, self.beam = graph, alike or Likeness(), resolve, hops, beam
        self.weights = weights or Weights()
        self.words = [[word for word in words(_text(told)) if word not in COMMON] for told in graph.told]
        self.known = list(dict.fromkeys(word for own in self.words for word in own))
        self.held = Counter(word for own in self.words for word in set(own))
        self.usual = float(np.median(list(self.held.values()))) if self.held else 1.0  # how often a word counts that is in none
        place = {word: number for number, word in enumerate(self.known)}
        self.places = [[place[word] for word in own] for own in self.words]
        self.remainders = [_remainder(told) for told in graph.told]
        self._settled = self._disputes() if resolve else {}

    def link(self, question: str) -> dict[str, Mention]:
        """The nodes that a question names, with where: by their whole name, a part of it, or nearly so."""
        found: dict[str, Mention] = {}
        for mention in mentions(question):
            key = mention.key
            if key not in self.graph.at:
                near = [(spelling(key, node), node) for node in self.graph.at]
                part = [node for node in self.graph.at if set(key.split()) <= set(node.split()) or set(node.split()) <= set(key.split())]
                best = max(near, default=(0.0, ""))
                key = min(part, key=len) if part else best[1] if best[0] >= 0.5 else ""
            if key:
                found.setdefault(key, mention)
        return found

    def _holding(self, node: str, number: int) -> int:
        """The statement that holds of a name, in the place of one that others contest."""
        if self.resolve and self.graph.contested(number):
            return self.graph.holds(number)
        return self._settled.get((node, number), number)

    def _disputes(self) -> dict[tuple[str, int], int]:
        """Of what several people say of a name in words that are alike, and not of the same other name, the statement that holds."""
        spoken: dict[str, list[int]] = defaultdict(list)
        for number, told in enumerate(self.graph.told):
            names = {mention.key for mention in told.mentions}
            if told.teller and len(names) == 2 and not self.graph.contested(number):
                for name in names:
                    spoken[name].append(number)
        settled: dict[tuple[str, int], int] = {}
        for name, numbers in spoken.items():
            numbers = sorted(set(numbers), key=lambda number: (self.graph.told[number].trace.time, number))
            texts = [self.remainders[number] for number in numbers]
            _, labels = connected_components(csr_array(self.alike.texts(texts, texts) >= self.weights.same), directed=False)
            for label in set(labels.tolist()):
                group = [number for number, own in zip(numbers, labels, strict=True) if own == label]
                claims = [Claim.of(self.graph.told[number], name) for number in group]
                if len({claim.tail for claim in claims}) > 1 and len({claim.teller for claim in claims}) > 1:
                    settled |= dict.fromkeys([(name, number) for number in group], decided(claims, group))
        return settled

    def best(self, question: str, allowed: set[int] | None = None) -> list[Path]:
        """Paths, best first; none where the question names nothing that is known."""
        seeds = self.link(question)
        if not seeds:
            return []
        weights = self.weights
        own = {word for seed in seeds for word in seed.split()}
        kind = wanted(question)
        own |= {kind} if any(kind in types for types in self.graph.types.values()) else set()
        asked = [word for word in dict.fromkeys(words(question)) if word not in COMMON and word not in own]
        idf = np.array([np.log(1 + len(self.words) / self.held.get(word, self.usual)) for word in asked])
        table = self.alike.words(asked, self.known)
        rows = np.stack([table[:, own].max(1) if own else np.zeros(len(asked)) for own in self.places]) if asked else None
        names = mentions(question)
        clauses = {seed: Clauses(question, mention, names, self.remainders, self.alike, weights.chance) for seed, mention in seeds.items()}

        def score(statements: Sequence[int], nodes: Sequence[str], worth: np.ndarray) -> float:
            covered = float(rows[list(statements)].max(0) @ idf / idf.sum()) if rows is not None else 0.0
            fits = float(bool(kind) and kind in self.graph.types.get(nodes[-1], ()))
            said = {mention.key for one in statements for mention in self.graph.told[one].mentions}
            seen = sum(seed in said for seed in seeds) / len(seeds)
            schema = min(self.graph.fit(one) for one in statements)
            ordered = max(0.0, float(worth[clauses[nodes[0]].end]))
            return (
                weights.covered * covered
                + weights.clauses * ordered
                + weights.fits * fits
                + weights.seen * seen
                + weights.schema * schema
                - weights.hop * len(statements)
                - weights.asked * abs(len(statements) - clauses[nodes[0]].hops)
            )

        beam = [Path((), (seed,), 0.0, clauses[seed].begin()) for seed in seeds]
        found: list[Path] = []
        for _ in range(self.hops):
            wider: dict[tuple[tuple[int, ...], str], tuple[Path, float]] = {}
            for path in beam:
                for number in self.graph.at[path.end]:
                    number = self._holding(path.end, number)
                    if number in path.statements or (allowed is not None and number not in allowed):
                        continue
                    for mention in self.graph.told[number].mentions:
                        if mention.key not in path.nodes:
                            worth = clauses[path.nodes[0]].after(path.worth, number, mention.key, self.graph.at[mention.key])
                            statements, nodes = (*path.statements, number), (*path.nodes, mention.key)
                            longer = Path(statements, nodes, score(statements, nodes, worth), worth)
                            hope = longer.score + weights.clauses * max(0.0, float(worth.max() - max(0.0, worth[clauses[nodes[0]].end])))
                            wider[statements, mention.key] = longer, hope
            ordered = sorted(wider.values(), key=lambda pair: -pair[1])[: self.beam]
            beam = [path for path, _ in ordered]
            found += [path for path, _ in wider.values()]
        return sorted(found, key=lambda path: -path.score)


def wanted(question: str) -> str:
    """The noun that a question asks for ("city" of "in which city ..."), or its question word; "" where it has neither."""
    match = ASKED.search(question)
    return next((group.lower() for group in match.groups() if group), "") if match else ""


def _text(told: Told) -> str:
    """What a statement says, and the relation that it tells."""
    return f"{told.said.core} {told.relation.name}" if told.relation else told.said.core


def _remainder(told: Told) -> str:
    """What a statement says, without names and without who says it."""
    return blank(told.said.core, told.mentions, 0, __import__("os").environ.get("RB", ""))
