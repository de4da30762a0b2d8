"""Paths through the graph: from the names of a question over statements that share a name, to what is asked for."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import numpy as np

from hippo_core.methods.encoded import Encoder
from hippo_core.methods.relational.attribution import When, asked_of
from hippo_core.methods.relational.clauses import NONE, SOMETHING, Clauses, TextSimilarity, blank, spelling
from hippo_core.methods.relational.confidence import fitted
from hippo_core.methods.relational.graph import ConflictClaim, Graph, StatementEdge, resolve_conflict
from hippo_core.methods.relational.mentions import COMMON, Mention, mentions
from hippo_core.methods.relational.relations import TYPES
from hippo_core.retrieval.lexicon import words

SAYS = 0.5  # least similarity of a statement's word to an asked one, to count as the same
KINDS = {kind for pair in TYPES.values() for kind in pair} - {""}  # that patterns tell of names
ASKED = re.compile(
    r"\b(?:which|what) (?P<a>[a-z]+)|\bthe (?P<b>[a-z]+) (?:where|in which|that|who|which)\b|\b(?P<c>where|who|whom|when)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts of a path."""

    covered: float = 1.0  # the share of the question's words that it has
    seen: float = 0.5  # that the question's names are met
    schema: float = 0.1  # that others are told of likewise
    fits: float = 1.0  # where what is asked for is of a kind that patterns tell: that the end is of it
    hop: float = 0.05  # there, what each statement costs
    clauses: float = 1.0  # elsewhere: how well its statements say in order what the question's parts say
    asked: float = 1.0  # there, what each statement costs that is more or less than the parts ask for
    near: float = 0.5  # how much less well a statement may say these, to be one of the same matter


@dataclass(frozen=True, slots=True)
class StatementPath:
    """Statements by number, in the order in which they lead from a name of the question to `end`."""

    statements: tuple[int, ...]
    nodes: tuple[str, ...]
    score: float  # how well they fit
    worth: np.ndarray = field(compare=False, repr=False)  # what parts of the question they say (`Clauses`)
    lost: tuple[int, ...] = ()  # statements that say otherwise in other words, and do not hold
    evidence: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)  # what speaks for the best path

    @property
    def end(self) -> str:
        return self.nodes[-1]


class Search:
    """Search over one graph; its settings are those of `RelationalSection`. `encoder`: by which words are compared."""

    def __init__(
        self,
        graph: Graph,
        similarity: TextSimilarity | None = None,
        resolve: bool = True,
        hops: int = 3,
        beam: int = 12,
        weights: Weights | None = None,
        encoder: Encoder = "own",
    ) -> None:
        self.graph, self.similarity, self.resolve, self.hops, self.beam = graph, similarity or TextSimilarity(), resolve, hops, beam
        self.weights, self.encoder, self.names = weights or Weights(), encoder, graph.names
        self.words = [[word for word in words(_text(statement)) if word not in COMMON] for statement in graph.statements]
        self.statement_names = [dict.fromkeys(mention.key for mention in statement.mentions) for statement in graph.statements]
        self.document_frequency = Counter(word for own in self.words for word in set(own))
        self.usual_frequency = (
            float(np.median(list(self.document_frequency.values()))) if self.document_frequency else 1.0
        )  # how often a word counts that is in none

    def link(self, question: str) -> dict[str, Mention]:
        """The nodes that a question names, and where: by their whole name, a part of it, or nearly so."""
        nodes: dict[str, Mention] = {}
        for mention in mentions(question):
            if key := self.graph.nodes.nearest(mention.key):
                nodes.setdefault(key, mention)
        return nodes

    def best(self, question: str, allowed: set[int] | None = None) -> list[StatementPath]:
        """Paths, best first; none where the question names nothing that is known. Where it asks about a time, contested statements are
        replaced by what held then."""
        question, when = self.timed(question)
        seeds, weights, graph = self.link(question), self.weights, self.graph
        if not seeds:
            return []
        own = {word for seed in seeds for word in seed.split()}
        kind = wanted(question)
        own |= {kind} & graph.kinds
        asked = [word for word in dict.fromkeys(words(question)) if word not in COMMON and word not in own]
        idf = np.array([np.log(1 + len(self.words) / self.document_frequency.get(word, self.usual_frequency)) for word in asked])
        rows = Rows(self.similarity, asked, self.words)
        by_patterns = self.known(question)
        names = mentions(question)
        clauses = {seed: Clauses(question, mention, names, self.similarity) for seed, mention in seeds.items()}

        def score(statements: Sequence[int], seed: str, worth: np.ndarray) -> float:  # wherever in the last statement the path ends
            covered = float(rows.of(statements).max(0) @ idf / idf.sum()) if asked else 0.0
            seen = sum(any(name in self.statement_names[number] for number in statements) for name in seeds) / len(seeds)
            schema = min(graph.fit(graph.statements[name]) for name in statements)
            score = weights.covered * covered + weights.seen * seen + weights.schema * schema
            if by_patterns:
                return score
            parts = clauses[seed]
            return score + weights.clauses * max(0.0, worth[parts.end]) - weights.asked * abs(len(statements) - parts.hops)

        def ended(score: float, hops: int, end: str) -> float:
            return score + weights.fits * (kind in graph.types.get(end, ())) - weights.hop * hops if by_patterns else score

        beam = [StatementPath((), (seed,), 0.0, clauses[seed].begin()) for seed in seeds]
        paths: list[StatementPath] = []
        for _ in range(self.hops):
            wider: dict[tuple[tuple[int, ...], str], StatementPath] = {}
            rows.compare(number for path in beam for number in graph.statements_about(path.end))
            for path in beam:
                current = dict.fromkeys(self._standing(number, when) for number in graph.statements_about(path.end))
                numbers = [
                    candidate
                    for candidate in current
                    if candidate is not None and candidate not in path.statements and (allowed is None or candidate in allowed)
                ]
                parts = clauses[path.nodes[0]]
                if not by_patterns:
                    parts.compare({number: _remainder(graph.statements[number]) for number in numbers})
                for number in numbers:
                    worth = path.worth if by_patterns else parts.after(path.worth, number)
                    statements = (*path.statements, number)
                    ends = [key for key in self.statement_names[number] if key not in path.nodes]
                    total = score(statements, path.nodes[0], worth) if ends else 0.0
                    for end in ends:
                        nodes = (*path.nodes, end)
                        wider[statements, end] = StatementPath(statements, nodes, ended(total, len(statements), end), worth)
            beam = sorted(wider.values(), key=lambda path: -(path.score if by_patterns else path.worth.max()))[: self.beam]
            paths += beam
        paths.sort(key=lambda path: -path.score)
        if self.resolve and paths and not by_patterns:
            best, lost = self._settled(paths, clauses)
            paths.remove(best)
            paths.insert(0, replace(best, lost=lost))
        if paths:
            paths[0] = replace(paths[0], evidence=self._evidence(paths, clauses, rows, idf, kind, names, by_patterns))
        return paths

    def _evidence(
        self,
        paths: Sequence[StatementPath],
        clauses: Mapping[str, Clauses],
        rows: "Rows",
        idf: np.ndarray,
        kind: str,
        names: Sequence[Mention],
        by_patterns: bool,
    ) -> dict[str, float]:
        """What speaks for the first of these paths, and against it. Where nothing is asked but names, all words are said."""
        best = paths[0]
        parts, statements = clauses[best.nodes[0]], [self.graph.statements[number] for number in best.statements]
        known = [statement.relation.words if statement.relation else frozenset[str]() for statement in statements]
        similarities = np.maximum(rows.of(best.statements), [[_among(word, words) for word in rows.asked] for words in known])
        competing = [path.score for path in paths if path.end != best.end]
        path_names = {key for number in best.statements for key in self.statement_names[number]}
        saying = set(similarities.argmax(0)[similarities.max(0) >= SAYS].tolist()) if idf.size else set[int]()
        kinds = (statements[-1].relation.head_type, statements[-1].relation.tail_type) if statements[-1].relation else ()
        by_word = similarities.max(0)  # of each word that is asked
        off = abs(len(best.statements) - parts.hops)
        return {
            "covered": float(by_word @ idf / idf.sum()) if idf.size else 1.0,  # the share of the question's words that it says
            "least": float(by_word.min()) if idf.size else 1.0,  # how alike the words are that it says least
            "most": float(by_word.max()) if idf.size else 1.0,
            "forms": sum(map(bool, known)) / len(known),  # the share of its statements that tell a relation in a known form
            "met": sum(self.graph.nodes.nearest(mention.key) in path_names for mention in names) / len(names),  # of the question's names
            "lead": min(1.0, best.score - max(competing)) if competing else 1.0,  # over the best path with another end
            "typed": float(kind in kinds),  # its last statement says that the end is of the kind that is asked for
            "fits": float(kind in self.graph.types.get(best.end, ())),  # anything says so
            "schema": min(map(self.graph.fit, statements)),  # that others are told of likewise
            "idle": float(len(set(range(len(best.statements) - 1)) - saying)),  # statements before the last that say no word that is asked
            "off": float(off),  # how many more or fewer statements there are than the parts of the question
            "clauses": 0.0 if by_patterns else max(0.0, float(best.worth[parts.end])) / len(best.statements),  # how well parts are said
        }

    def against(self, path: StatementPath) -> list[list[int]]:
        """Of each statement of a path those that it overruled."""
        graph, losers = self.graph, []
        for node, number in zip(path.nodes, path.statements, strict=False):
            competing = [other for other in path.lost if other in graph.at[node]]
            if graph.contested(number):
                competing = [
                    other for other in graph.competing_statements(number) if graph.statements[other].tail != graph.statements[number].tail
                ]
            losers.append(competing)
        return losers

    def known(self, question: str) -> bool:
        """Whether a question asks for something of a kind that patterns know of names here."""
        return wanted(question) in KINDS & self.graph.kinds

    def of(self, path: StatementPath) -> "Search":
        """The search that has found a path."""
        return self

    def confidence(self, question: str, path: StatementPath) -> float:
        """That a path leads to the answer."""
        return fitted(self.encoder)[self.known(question)].of(path.evidence)

    def timed(self, question: str) -> tuple[str, When | None]:
        """A question without the time that it asks about, and that time; unchanged where no statement has such a date."""
        plain, when = asked_of(question)
        return (plain, when) if when and (when.date is None or when.date.kind in self.graph.dates) else (question, None)

    def _standing(self, number: int, when: When | None) -> int | None:
        """The statement that holds, or held, in place of one that others of the same relation contest."""
        if self.resolve and when:
            return self.graph.statement_at(number, when)
        return self.graph.current_statement(number) if self.resolve and self.graph.contested(number) else number

    def _settled(self, paths: Sequence[StatementPath], clauses: Mapping[str, Clauses]) -> tuple[StatementPath, tuple[int, ...]]:
        """The best path, or where tellers disagree on the same parts of the question the one that goes on by what holds; and what lost."""
        best, parts, lost = paths[0], clauses[paths[0].nodes[0]], dict[int, None]()
        for index in range(len(best.statements)):
            if index >= len(best.statements) or best.worth[parts.end] <= NONE / 2:
                break
            node, number = best.nodes[index], best.statements[index]
            share = parts.shares(best.statements)[index]
            before = best.statements[:index]
            longer = [path for path in paths if path.statements[:index] == before and len(path.statements) > index]
            there = {path.statements[index]: path for path in reversed(longer) if path.nodes[index] == node}
            least = parts.says(number, share) - self.weights.near
            claims = [claim for statement in there if parts.says(statement, share) >= least for claim in self._claims(statement, node)]
            if min(len({claim.tail for claim in claims}), len({claim.attestation.teller for claim in claims})) < 2 or not self._claims(
                number, node
            ):
                continue
            claims.sort(key=lambda claim: (claim.attestation.time, claim.number))
            winner = resolve_conflict(claims)
            lost |= dict.fromkeys(claim.number for claim in claims if claim.tail != winner.tail)
            best = best if winner.number == number else there[winner.number]
        return best, tuple(lost)

    def _claims(self, number: int, name: str) -> list[ConflictClaim]:
        """The claims of a statement about a name and one other, where somebody says it."""
        statement = self.graph.statements[number]
        others = [*{mention.key for mention in statement.mentions} - {name}]
        return (
            [ConflictClaim(number, others[0], attestation) for attestation in statement.attestations if attestation.teller]
            if len(others) == 1
            else []
        )


class Rows:
    """The similarity of each asked word to a statement's most similar word, computed on demand; `words`: of each statement."""

    def __init__(self, similarity: TextSimilarity, asked: Sequence[str], words: Sequence[Sequence[str]]) -> None:
        self.similarity, self.asked, self.words = similarity, asked, words
        self._words: dict[str, np.ndarray] = {}
        self._rows: dict[int, np.ndarray] = {}

    def compare(self, statements: Iterable[int]) -> None:
        """Compute these in one batch."""
        new = [number for number in dict.fromkeys(statements) if number not in self._rows]
        unknown = [word for word in dict.fromkeys(word for number in new for word in self.words[number]) if word not in self._words]
        self._words.update(zip(unknown, self.similarity.words(self.asked, unknown).T, strict=True))
        for number in new:
            known = [self._words[word] for word in self.words[number]]
            self._rows[number] = np.max(known, 0) if known else np.zeros(len(self.asked))

    def of(self, statements: Sequence[int]) -> np.ndarray:
        """Of each of these, 0 to 1, [statements, asked]."""
        self.compare(statements)
        return np.stack([self._rows[number] for number in statements])


def wanted(question: str) -> str:
    """The noun that a question asks for ("city" of "in which city ..."), or its question word; "" where it has neither."""
    match = ASKED.search(question)
    return next((group.lower() for group in match.groups() if group), "") if match else ""


def _among(word: str, words: Set[str]) -> float:
    """1 where a word, or one that is spelt much like it, is among these; else 0."""
    return float(any(spelling(word, other) >= SAYS for other in words))


def _text(statement: StatementEdge) -> str:
    """A statement's core, and its relation."""
    return f"{statement.attribution.core} {statement.relation.name}" if statement.relation else statement.attribution.core


def _remainder(statement: StatementEdge) -> str:
    """A statement's core without its names."""
    return blank(statement.attribution.core, statement.mentions, 0, len(statement.attribution.core), SOMETHING)
