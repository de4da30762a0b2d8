"""The relational memory with a fitted reader: which statements are one edge, and which path answers a question, whatever their words.

A statement is of the relation whose first statement says the likest of two names, or of a new one: relations are learnt as they are told.
The graph with its schemas and its gate is the one that patterns fill, too (graph.py). Paths are searched by path_search.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from hippo_core.methods.relational.attribution import Attribution, When
from hippo_core.methods.relational.confidence import fitted
from hippo_core.methods.relational.graph import Graph, Key, StatementEdge
from hippo_core.methods.relational.mentions import Mention
from hippo_core.methods.relational.name_finder import NameSpan, key_of
from hippo_core.methods.relational.path_search import PathSearch, ScoredPath
from hippo_core.methods.relational.paths import Search
from hippo_core.methods.relational.paths import StatementPath as PatternPath
from hippo_core.methods.relational.relations import Relation
from hippo_core.methods.relational.statement_reader import CONFIDENCE_BY_KIND, ReadStatement, StatementReader
from hippo_core.store.trace import Trace

SAME_RELATION = 0.7  # the cosine from which on two statements are of one relation: .97 of such pairs are on validation relations

AnyPath = ScoredPath | PatternPath


@dataclass
class LearnedTraceReader:
    """Reads statements one by one as edges. `relations`: what leads from head to tail in the first statement of each."""

    reader: StatementReader
    relations: list[Tensor] = field(default_factory=list)

    def __call__(self, trace: Trace) -> StatementEdge:
        [spans] = self.reader.names([trace.text])
        names = [NameSpan(start, end, key_of(trace.text[start:end])) for start, end in spans]
        [read] = self.reader.read([trace.text], [names])
        mentions = tuple(Mention(trace.text[span.start : span.end], span.start, span.end) for span in names)
        attribution = Attribution(trace.text, read.names.get(read.teller, ""), CONFIDENCE_BY_KIND.get(read.kind), read.kind == "update")
        pair = _pair(read)
        if pair is None:
            return StatementEdge(trace, attribution, mentions, None)
        lead, back = (read.leads[first, second] for first, second in (pair, pair[::-1]))
        number, turned = self._relation(lead, back)
        head, tail = pair[::-1] if turned else pair
        keys = list(read.names)
        of = [span.key for span in names]
        relation = Relation(f"relation {number}", of.index(keys[head]), of.index(keys[tail]))
        key = Key(mentions[relation.head].key, relation.name, mentions[relation.tail].key, frozenset())
        return StatementEdge(trace, attribution, mentions, relation, key)

    def _relation(self, lead: Tensor, back: Tensor) -> tuple[int, bool]:
        """The relation of the statement, a new one where none is similar, and whether it leads from the second name to the first."""
        if self.relations:
            known = torch.stack(self.relations)
            likes = torch.stack([known @ lead, known @ back])
            best = int(likes.argmax())
            if float(likes.flatten()[best]) >= SAME_RELATION:
                return best % len(self.relations), best >= len(self.relations)
        self.relations.append(lead)
        return len(self.relations) - 1, False


def _pair(read: ReadStatement) -> tuple[int, int] | None:
    """Indices of the two names that an assertion is about, in order; None where there are none, or nothing is asserted."""
    if read.kind not in CONFIDENCE_BY_KIND or len(read.names) < 2:
        return None
    standing = read.standing.triu(1) + torch.full_like(read.standing, -torch.inf).tril()
    best = int(standing.argmax())
    first, second = divmod(best, len(read.names))
    return (first, second) if "teller" not in [[*read.roles.values()][index] for index in (first, second)] else None


class LearnedSearch(PathSearch):
    """Search over the traces of a world; `graph`: of these. Of what waits for more evidence only that is used which stands alone."""

    def __init__(self, reader: StatementReader, graph: Graph, resolve: bool = True, hops: int = 3, beam: int = 24) -> None:
        texts = [statement.trace.text for statement in graph.statements]
        super().__init__(reader, texts, [statement.attestations for statement in graph.statements], beam, resolve, hops)
        self.graph = graph
        self.usable = {
            number
            for number, statement in enumerate(graph.statements)
            if not (statement.is_pending and statement.relation) or graph.alone(number)
        }

    def best(self, question: str, allowed: "set[int] | None" = None) -> list[ScoredPath]:
        return super().best(question, self.usable if allowed is None else self.usable & allowed)

    def known(self, question: str) -> bool:
        """Whether patterns know what is asked for: there are none."""
        return False

    def timed(self, question: str) -> tuple[str, When | None]:
        """A question and the time that it asks about: the reader says whether it is one before."""
        return question, None

    def of(self, path: ScoredPath) -> "LearnedSearch":
        """The search that has found a path."""
        return self

    def confidence(self, question: str, path: ScoredPath) -> float:
        """That a path leads to the answer."""
        return fitted("learned")[False].of(path.evidence)


class EitherSearch:
    """Search by patterns and by the fitted reader over one graph: the one of higher fitted confidence answers (confidence.py)."""

    def __init__(self, patterns: Search, learned: LearnedSearch) -> None:
        self.patterns, self.learned, self.graph = patterns, learned, patterns.graph
        self.names = {**learned.names, **patterns.names}

    def best(self, question: str, allowed: "set[int] | None" = None) -> Sequence[AnyPath]:
        """The paths of the more confident search, best first; none where neither has any."""
        results = [paths for search in (self.patterns, self.learned) if (paths := search.best(question, allowed))]
        return max(results, key=lambda paths: self.of(paths[0]).confidence(question, paths[0]), default=[])

    def of(self, path: AnyPath) -> Any:
        """The search that has found a path."""
        return self.learned if isinstance(path, ScoredPath) else self.patterns

    def against(self, path: AnyPath) -> list[list[int]]:
        """Of each statement of a path those that it overruled."""
        return self.of(path).against(path)
