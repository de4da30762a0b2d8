"""Paths through the graph: from the names of a question over statements that share a name, to what is asked for."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hippo_core.methods.relational.graph import Graph, Told
from hippo_core.methods.relational.likeness import Likeness, by_spelling
from hippo_core.methods.relational.mentions import COMMON, mentions
from hippo_core.retrieval.lexicon import words

# What it counts that the end is of the kind that is asked for, that names are met, that others are told of likewise, and each hop.
FITS, SEEN, SCHEMA, HOP = 1.0, 0.5, 0.1, 0.05
ASKED = re.compile(
    r"\b(?:which|what) (?P<a>[a-z]+)|\bthe (?P<b>[a-z]+) (?:where|in which|that|who|which)\b|\b(?P<c>where|who|whom|when)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Path:
    """Statements by number, in the order in which they lead from a name of the question to `end`; `score` says how well they fit."""

    statements: tuple[int, ...]
    nodes: tuple[str, ...]
    score: float

    @property
    def end(self) -> str:
        return self.nodes[-1]

    @property
    def confidence(self) -> float:
        """How sure it is that this is the way to the answer: the score as a share of the largest one that there is."""
        return min(1.0, max(0.0, self.score / (1 + FITS + SEEN + SCHEMA - HOP)))


class Search:
    """Search over one graph.

    Args:
        alike: how alike words are.
        resolve: whether a contested statement is replaced by the one that holds.
        hops: statements of a path, at most.
        beam: paths that are followed further at each hop.
    """

    def __init__(self, graph: Graph, alike: Likeness = by_spelling, resolve: bool = True, hops: int = 3, beam: int = 12) -> None:
        self.graph, self.alike, self.resolve, self.hops, self.beam = graph, alike, resolve, hops, beam
        self.words = [[word for word in words(_text(told)) if word not in COMMON] for told in graph.told]
        self.held = Counter(word for own in self.words for word in set(own))
        self.usual = float(np.median(list(self.held.values()))) if self.held else 1.0  # how often a word counts that is in none

    def link(self, question: str) -> list[str]:
        """The nodes that a question names: by their whole name, a part of it, or nearly so."""
        found: list[str] = []
        for mention in mentions(question):
            if key := self.graph.nodes.nearest(mention.key):
                found.append(key)
        return list(dict.fromkeys(found))

    def best(self, question: str, allowed: set[int] | None = None) -> list[Path]:
        """Paths, best first; none where the question names nothing that is known."""
        seeds = self.link(question)
        if not seeds:
            return []
        own = {word for seed in seeds for word in seed.split()}
        kind = wanted(question)
        own |= {kind} & self.graph.kinds
        asked = [word for word in dict.fromkeys(words(question)) if word not in COMMON and word not in own]
        idf = np.array([np.log(1 + len(self.words) / self.held.get(word, self.usual)) for word in asked])
        rows = Rows(self.alike, asked, self.words)

        def score(statements: Sequence[int], nodes: Sequence[str]) -> float:
            covered = float(rows.of(statements).max(0) @ idf / idf.sum()) if asked else 0.0
            fits = float(bool(kind) and kind in self.graph.types.get(nodes[-1], ()))
            said = {mention.key for one in statements for mention in self.graph.told[one].mentions}
            seen = sum(seed in said for seed in seeds) / len(seeds)
            schema = min(self.graph.fit(one) for one in statements)
            return covered + FITS * fits + SEEN * seen + SCHEMA * schema - HOP * len(statements)

        beam = [Path((), (seed,), 0.0) for seed in seeds]
        found: list[Path] = []
        for _ in range(self.hops):
            wider: dict[tuple[tuple[int, ...], str], Path] = {}
            rows.meet(number for path in beam for number in self.graph.at.get(path.end, ()))
            for path in beam:
                for number in self.graph.at.get(path.end, ()):
                    number = self.graph.holds(number) if self.resolve and self.graph.contested(number) else number
                    if number in path.statements or (allowed is not None and number not in allowed):
                        continue
                    for mention in self.graph.told[number].mentions:
                        if mention.key not in path.nodes:
                            statements, nodes = (*path.statements, number), (*path.nodes, mention.key)
                            wider[statements, mention.key] = Path(statements, nodes, score(statements, nodes))
            beam = sorted(wider.values(), key=lambda path: -path.score)[: self.beam]
            found += beam
        return sorted(found, key=lambda path: -path.score)


class Rows:
    """How alike each word that is asked is to the likest word of a statement, worked out for the statements that are met.

    Args:
        words: of each statement.
    """

    def __init__(self, alike: Likeness, asked: Sequence[str], words: Sequence[Sequence[str]]) -> None:
        self.alike, self.asked, self.words = alike, asked, words
        self._words: dict[str, np.ndarray] = {}
        self._rows: dict[int, np.ndarray] = {}

    def meet(self, statements: Iterable[int]) -> None:
        """Work these out together."""
        new = [number for number in dict.fromkeys(statements) if number not in self._rows]
        unknown = [word for word in dict.fromkeys(word for number in new for word in self.words[number]) if word not in self._words]
        self._words.update(zip(unknown, self.alike(self.asked, unknown).T, strict=True))
        for number in new:
            known = [self._words[word] for word in self.words[number]]
            self._rows[number] = np.max(known, 0) if known else np.zeros(len(self.asked))

    def of(self, statements: Sequence[int]) -> np.ndarray:
        """Of each of these, 0 to 1, [statements, asked]."""
        self.meet(statements)
        return np.stack([self._rows[number] for number in statements])


def wanted(question: str) -> str:
    """The noun that a question asks for ("city" of "in which city ..."), or its question word; "" where it has neither."""
    match = ASKED.search(question)
    return next((group.lower() for group in match.groups() if group), "") if match else ""


def _text(told: Told) -> str:
    """What a statement says, and the relation that it tells."""
    return f"{told.said.core} {told.relation.name}" if told.relation else told.said.core
