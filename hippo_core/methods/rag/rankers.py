"""Retrieval-augmented generation: score every taught passage against the question, show the k best in order of telling.

Scores are rounded to six decimals before they are compared, and ties go to the passage told first. Time and tokens are those of a query;
the index is built before.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from hippo_core.methods.base import OFF, Count, Method, MethodSettings, Query, Retrieve, Retrieved
from hippo_core.retrieval.lexicon import grams, words
from hippo_core.retrieval.ranking import latest_first, ranked, standardised
from hippo_core.retrieval.scores import bm25_scores, dense_scores, query_tokens
from hippo_core.retrieval.synonyms import meanings
from hippo_core.retrieval.world_index import WorldIndex
from hippo_core.store.trace import Trace


class RagSettings(MethodSettings):
    """`k`: how many passages are shown. `recency`: how much it counts against a passage that one told later looks like it. `versions`: by
    what else one version of a fact stands before another; read: the model reads the best statements alone (`versions.py`)."""

    k: Count = 3
    recency: Annotated[float, Field(ge=0)] | None = None
    versions: Annotated[Literal["off", "read"], OFF] = "off"

    @property
    def requires(self) -> tuple[str, ...]:
        return ("minilm",) if self.versions == "read" else super().requires


class DenseSettings(RagSettings):
    """`encoder`: whose vectors are compared; own: those of the model that answers, minilm: those of all-MiniLM-L6-v2."""

    encoder: Literal["own", "minilm"] = "own"


@dataclass(frozen=True)
class Ordered:
    """A ranking of the taught passages."""

    positions: Sequence[int]  # among the taught passages, best first
    tokens: float = 0.0  # that a model ran for that, those of the encoder left out
    confidence: float | None = None  # that the best one answers the question, from 0 to 1
    scores: Sequence[float] = ()  # of the positions, perhaps of the first ones alone


class Rag(Method):
    """The base of retrieval: subclasses say `scores`, or the whole `order`."""

    Settings = RagSettings

    def scores(self, index: WorldIndex, query: Query) -> np.ndarray:
        """A number for each taught passage [N], higher for what is more like the question."""
        raise NotImplementedError

    def order(self, index: WorldIndex, query: Query) -> Ordered:
        """The ranking of the taught passages."""
        scores = self.scores(index, query)
        best = latest_first(index, query.taught, query.text, ranked(scores), standardised(scores), self.settings.recency)
        return Ordered(best, scores=scores[best].tolist())

    def prepare(self, index: WorldIndex, query: Query) -> None:
        """Build what is built once for all questions with the same taught passages."""
        self.order(index, query)

    def index_tokens(self, traces: Sequence[Trace]) -> float:
        index, encoder = WorldIndex(self.lm, ()), getattr(self.settings, "encoder", None)
        return float(sum(query_tokens(index, trace.text, encoder) for trace in traces))

    def open(self, traces: Sequence[Trace], questions: Sequence[str] = ()) -> Retrieve:
        index = WorldIndex(self.lm, traces, tuple(questions))

        def retrieve(query: Query) -> Retrieved:
            if not query.taught:
                return Retrieved((), ())
            index.once(("prepared", query.taught), lambda: self.prepare(index, query))  # untimed
            index.cue_ms, begin = 0.0, time.perf_counter()
            order = self.order(index, query)
            ranking = tuple(index.passages[query.taught[position]] for position in order.positions)
            scores, replaced, read_tokens = tuple(order.scores), (), 0.0
            if self.settings.versions == "read":
                from hippo_core.methods.versions import current_first

                newest, replaced, read_tokens = current_first(self.lm, query, ranking, scores, self.settings.decoding)
                ranking, scores = tuple(ranking[rank] for rank in newest), tuple(scores[rank] for rank in newest if rank < len(scores))
            elapsed = (time.perf_counter() - begin) * 1000 + index.cue_ms
            tokens = order.tokens + read_tokens + query_tokens(index, query.text, getattr(self.settings, "encoder", None))
            best = {trace.source for trace in ranking[: self.settings.k]}
            shown = tuple(index.passages[source] for source in query.taught if source in best)
            confidence = order.confidence
            return Retrieved(shown, ranking, scores, recall_ms=elapsed, computed_tokens=tokens, confidence=confidence, replaced=replaced)

        return retrieve


class BM25(Rag):
    """The k best by BM25 over words."""

    units = staticmethod(words)

    def scores(self, index: WorldIndex, query: Query) -> np.ndarray:
        return bm25_scores(index, query.taught, query.text, self.units)


class Grams(BM25):
    """The same over pieces of words: three and four characters in a row."""

    units = staticmethod(grams)


class Synonyms(BM25):
    """The same over meanings, which the suites' own table of synonyms tells: a bound, for it knows what no retrieval may."""

    units = staticmethod(meanings)


class Dense(Rag):
    """The k best by cosine of the encoder's vectors."""

    Settings = DenseSettings

    def scores(self, index: WorldIndex, query: Query) -> np.ndarray:
        return dense_scores(index, query.taught, query.text, self.settings.encoder)


class Hybrid(Rag):
    """The k best by the sum of BM25 over words and of the cosine, each standardised over the taught passages."""

    Settings = DenseSettings
    units = staticmethod(words)

    def scores(self, index: WorldIndex, query: Query) -> np.ndarray:
        lexical = bm25_scores(index, query.taught, query.text, self.units)
        return standardised(lexical) + standardised(dense_scores(index, query.taught, query.text, self.settings.encoder))


class SumSettings(DenseSettings):
    """The encoder is MiniLM unless said."""

    encoder: Literal["own", "minilm"] = "minilm"


class Sum(Hybrid):
    """The same with pieces of words and, unless said, MiniLM: nothing is learned."""

    Settings = SumSettings
    units = staticmethod(grams)


def likest(lm: Any, encoder: str) -> Rag:
    """What ranks statements where a memory of this encoder has no answer of its own."""
    return Sum(lm, SumSettings(encoder="minilm")) if encoder == "minilm" else Grams(lm, RagSettings())
