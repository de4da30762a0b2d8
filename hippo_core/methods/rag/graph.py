"""Retrieval over a graph of names: HippoRAG's recipe (Gutierrez et al. 2024, arXiv 2405.14831, section 2.3) without a large model.

Passages and the names that they mention are nodes. A walk starts again and again at the passages that are most like the question and at
the names that it mentions; passages are ranked by how often it is there (personalised PageRank). There the graph is of triples that a
language model extracts, here of mentions.
"""

from typing import Annotated

import numpy as np
from pydantic import Field
from scipy.sparse import csr_array

from hippo_core.methods.base import Count, Query
from hippo_core.methods.rag.rankers import Rag, Sum, SumSettings
from hippo_core.methods.relational.mentions import mentions
from hippo_core.retrieval.world_index import WorldIndex

ROUNDS = 50  # of the walk; with damping .5 what is left by then is below 1e-15


class GraphSettings(SumSettings):
    """`seeds`: passages at which the walk starts; `damping`: how often it goes on in place of starting again."""

    seeds: Count = 5
    damping: Annotated[float, Field(gt=0, lt=1)] = 0.5


class Graph(Rag):
    """The k best passages by personalised PageRank over passages and names."""

    Settings = GraphSettings

    def scores(self, index: WorldIndex, query: Query) -> np.ndarray:
        walk, names = index.once(("graph", query.taught), lambda: walk_of([index.passages[source].text for source in query.taught]))
        alike = Sum(self.lm, SumSettings(encoder=self.settings.encoder)).scores(index, query)
        start = np.zeros(walk.shape[0])
        best = np.argsort(-alike, kind="stable")[: self.settings.seeds]
        start[best] = np.maximum(alike[best] - alike.min(), 1e-9) / len(best)
        asked = [names[mention.key] for mention in mentions(query.text) if mention.key in names]
        start[asked] = start.max()
        start /= start.sum()
        rank = start
        for _ in range(ROUNDS):
            rank = (1 - self.settings.damping) * start + self.settings.damping * (walk @ rank)
        return rank[: len(query.taught)]


def walk_of(texts: list[str]) -> tuple[csr_array, dict[str, int]]:
    """The steps of a walk over passages [N] and names [M], columns adding up to 1, [N + M, N + M]; and the node of each name."""
    names: dict[str, int] = {}
    pairs = {(number, names.setdefault(one.key, len(texts) + len(names))) for number, text in enumerate(texts) for one in mentions(text)}
    size = len(texts) + len(names)
    rows = [node for pair in pairs for node in pair]
    columns = [node for passage, name in pairs for node in (name, passage)]
    steps = csr_array((np.ones(len(rows)), (rows, columns)), shape=(size, size))
    return csr_array(steps / np.maximum(steps.sum(0), 1.0)), names
