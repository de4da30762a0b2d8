"""Retrieval over a graph of names: HippoRAG's recipe (Gutierrez et al. 2024, arXiv 2405.14831, section 2.3) without a large model.

Passages and the names that they mention are nodes; the title of a passage is a name of it, and is found in other texts as whole words. A
walk starts again and again at the passages that are most like the question and at the names that it mentions; passages are ranked by
how often it is there (personalised PageRank). There the graph is of triples that a language model extracts, here of mentions.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field
from scipy.sparse import csr_array

from hippo_core.methods.base import Count, Query
from hippo_core.methods.rag.rankers import Rag, Sum, SumSettings
from hippo_core.methods.relational.mentions import key_of, mentions
from hippo_core.methods.relational.passages import PassageGraph, title_of
from hippo_core.retrieval.world_index import WorldIndex
from hippo_core.store.trace import Trace

ROUNDS = 50  # of a walk; with damping .5 what is left by then is below 1e-15


class GraphSettings(SumSettings):
    """`seeds`: passages at which the walk starts; `damping`: how often it goes on in place of starting again."""

    seeds: Count = 5
    damping: Annotated[float, Field(gt=0, lt=1)] = 0.5


class NameGraph(Rag):
    """The k best passages by personalised PageRank over passages and names."""

    Settings = GraphSettings

    def scores(self, index: WorldIndex, query: Query) -> np.ndarray:
        names = index.once(("names", query.taught), lambda: NameGraphIndex([index.passages[source] for source in query.taught]))
        similarities = Sum(self.lm, SumSettings(encoder=self.settings.encoder)).scores(index, query)
        start = np.zeros(names.steps.shape[0])
        best = np.argsort(-similarities, kind="stable")[: self.settings.seeds]
        start[best] = np.maximum(similarities[best] - similarities.min(), 1e-9) / len(best)
        start[names.of(query.text)] = start.max()
        return pagerank(names.steps, start / start.sum(), self.settings.damping)[: len(query.taught)]


class NameGraphIndex:
    """The names of passages as nodes behind these: `nodes` by name; `steps`: the walk over N passages and M names, [N + M, N + M]."""

    def __init__(self, passages: Sequence[Trace]) -> None:
        self.nodes: dict[str, int] = {}
        self._titles = [key_of(title_of(passage)) for passage in passages]
        self._graph = PassageGraph.of(passages)
        pairs = set()
        for number, passage in enumerate(passages):
            for name in self._in(passage.text):
                pairs.add((number, self.nodes.setdefault(name, len(passages) + len(self.nodes))))
        self.steps: csr_array = walk(sorted(pairs), len(passages) + len(self.nodes))

    def of(self, text: str) -> list[int]:
        """The nodes of the names in a text."""
        return sorted({self.nodes[name] for name in self._in(text) if name in self.nodes})

    def _in(self, text: str) -> list[str]:
        titled = [self._titles[number] for number in sorted(self._graph.named(text))]
        return [*dict.fromkeys([*(mention.key for mention in mentions(text)), *titled])]


def walk(pairs: Iterable[tuple[int, int]], size: int) -> csr_array:
    """The steps of a walk over these edges in both directions, columns adding up to 1, [size, size]."""
    rows, columns = np.array([*pairs], dtype=np.int64).reshape(-1, 2).T
    both = (np.concatenate([rows, columns]), np.concatenate([columns, rows]))
    steps = csr_array((np.ones(len(both[0])), both), shape=(size, size))
    return csr_array(steps / np.maximum(steps.sum(0), 1.0))


def pagerank(steps: csr_array, start: np.ndarray, damping: float) -> np.ndarray:
    """How often a walk is at each node that starts again at `start` [N] and goes on with probability `damping`, [N]; where no step
    leads on, a walk is lost."""
    rank = start
    for _ in range(ROUNDS):
        rank = (1 - damping) * start + damping * (steps @ rank)
    return rank
