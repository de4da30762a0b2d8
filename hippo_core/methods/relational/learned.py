"""The relational memory with a fitted reader: which statements are one edge, and which path answers a question, whatever their words.

A statement is of the relation whose first statement says the likest of two names, or of a new one: relations are learnt as they are told.
The graph with its schemas and its gate is the one that patterns fill, too (graph.py). Paths are searched by path_search.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from hippo_core.methods.relational.attribution import Attribution
from hippo_core.methods.relational.confidence import fitted
from hippo_core.methods.relational.graph import Graph, Key, StatementEdge
from hippo_core.methods.relational.mentions import Mention
from hippo_core.methods.relational.name_finder import NameSpan, key_of
from hippo_core.methods.relational.path_search import PathSearch, ScoredPath
from hippo_core.methods.relational.paths import Search
from hippo_core.methods.relational.paths import StatementPath as PatternPath
from hippo_core.methods.relational.relations import Relation
from hippo_core.methods.relational.statement_reader import SURENESS, ReadStatement, StatementReader
from hippo_core.methods.relational.times import When
from hippo_core.store.trace import Trace

ALIKE = 0.7  # the cosine from which on two statements tell one relation: .97 of such pairs do on validation relations

AnyPath = ScoredPath | PatternPath


@dataclass
class Listener:
    """Reads statements one by one as edges. `relations`: what leads from head to tail in the first statement of each."""

    reader: StatementReader
    relations: list[Tensor] = field(default_factory=list)

    def __call__(self, trace: Trace) -> StatementEdge:
        [spans] = self.reader.names([trace.text])
        names = [NameSpan(start, end, key_of(trace.text[start:end])) for start, end in spans]
        [read] = self.reader.read([trace.text], [names])
        found = tuple(Mention(trace.text[span.start : span.end], span.start, span.end) for span in names)
        said = Attribution(trace.text, read.names.get(read.teller, ""), SURENESS.get(read.kind), read.kind == "update")
        pair = _pair(read)
        if pair is None:
            return StatementEdge(trace, said, found, None)
        lead, back = (read.leads[one, other] for one, other in (pair, pair[::-1]))
        number, turned = self._relation(lead, back)
        head, tail = pair[::-1] if turned else pair
        keys = list(read.names)
        of = [span.key for span in names]
        relation = Relation(f"relation {number}", of.index(keys[head]), of.index(keys[tail]))
        key = Key(found[relation.head].key, relation.name, found[relation.tail].key, frozenset())
        return StatementEdge(trace, said, found, relation, key)

    def _relation(self, lead: Tensor, back: Tensor) -> tuple[int, bool]:
        """The relation that is told, a new one where none is alike, and whether from the second name to the first."""
        if self.relations:
            known = torch.stack(self.relations)
            likes = torch.stack([known @ lead, known @ back])
            best = int(likes.argmax())
            if float(likes.flatten()[best]) >= ALIKE:
                return best % len(self.relations), best >= len(self.relations)
        self.relations.append(lead)
        return len(self.relations) - 1, False


def _pair(read: ReadStatement) -> tuple[int, int] | None:
    """Places of the two names that an assertion is about, in order; None where there are none, or nothing is asserted."""
    if read.kind not in SURENESS or len(read.names) < 2:
        return None
    standing = read.standing.triu(1) + torch.full_like(read.standing, -torch.inf).tril()
    best = int(standing.argmax())
    one, other = divmod(best, len(read.names))
    return (one, other) if "teller" not in [[*read.roles.values()][place] for place in (one, other)] else None


class LearnedSearch(PathSearch):
    """Search over the traces of a world; `graph`: of these. Of what waits for more evidence only that is used which stands alone."""

    def __init__(self, reader: StatementReader, graph: Graph, resolve: bool = True, hops: int = 3, beam: int = 24) -> None:
        texts = [told.trace.text for told in graph.told]
        super().__init__(reader, texts, [told.tellings for told in graph.told], beam, resolve, hops)
        self.graph = graph
        self.usable = {number for number, told in enumerate(graph.told) if not (told.waits and told.relation) or graph.alone(number)}

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
        """How sure it is that a path leads to the answer."""
        return fitted("learned")[False].of(path.evidence)


class EitherSearch:
    """Search by patterns and by the fitted reader over one graph: the surer one answers, each by what was fitted of it (confidence.py)."""

    def __init__(self, patterns: Search, learned: LearnedSearch) -> None:
        self.patterns, self.learned, self.graph = patterns, learned, patterns.graph
        self.names = {**learned.names, **patterns.names}

    def best(self, question: str, allowed: "set[int] | None" = None) -> Sequence[AnyPath]:
        """The paths of the surer search, best first; none where neither has any."""
        found = [paths for search in (self.patterns, self.learned) if (paths := search.best(question, allowed))]
        return max(found, key=lambda paths: self.of(paths[0]).confidence(question, paths[0]), default=[])

    def of(self, path: AnyPath) -> Any:
        """The search that has found a path."""
        return self.learned if isinstance(path, ScoredPath) else self.patterns

    def against(self, path: AnyPath) -> list[list[int]]:
        """Of each statement of a path those that say otherwise and do not hold."""
        return self.of(path).against(path)
