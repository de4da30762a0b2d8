"""Retrieval whose weights are fitted as the memory's are: words, pieces of words and MiniLM, and the same with a re-ranking.

These are fitted by the same command (`make memory-weights`), on the same cues and features. They lack the learned key, the store, and the
completion behind stored keys and values: `FittedRerank` reads its candidates as text. Without recency; the memory's rule needs the key.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hippo_core.methods.base import Count, Query
from hippo_core.methods.rag.rankers import Ordered, Rag, RagSettings
from hippo_core.retrieval.ranking import latest_first, ranked
from hippo_core.retrieval.world_index import WorldIndex
from hippo_core.store.trace import Trace

if TYPE_CHECKING:
    from hippo_core.retrieval.confidence import Confidence
    from hippo_core.retrieval.fusion import Channel
    from hippo_core.retrieval.recall import Recall, Recaller
    from hippo_core.retrieval.text_encoder import TextEncoder

CHANNELS: tuple["Channel", ...] = ("words", "grams", "minilm")


class FittedSettings(RagSettings):
    """`candidates`: passages of each channel that are looked at, and the best of them that are re-ranked where they are."""

    candidates: Count = 20

    @property
    def requires(self) -> tuple[str, ...]:
        return ("minilm",)


class FittedRag(Rag):
    """The k best by the fitted sum of what words, pieces of words and MiniLM say."""

    Settings = FittedSettings
    weights = ("{model}/key.*", "{model}/recall.*")

    def order(self, index: WorldIndex, query: Query) -> Ordered:
        recall = self._recall(index, query)
        positions = self._positions(index, query, recall.traces, np.array(recall.scores))
        return Ordered(positions, recall.computed_tokens, recall.confidence, in_order_of(query, positions, recall.traces, recall.scores))

    def _recall(self, index: WorldIndex, query: Query) -> "Recall":
        from hippo_core.retrieval.text_encoder import each

        recaller = index.once("recaller", lambda: self._recaller(index))
        codes = index.cue("codes", query.text, lambda texts: each(self.encoder, texts))
        return recaller.recall(query.text, frozenset(query.taught), codes)

    def _recaller(self, index: WorldIndex) -> "Recaller":
        from hippo_core.retrieval.recall import RecallConfig, Recaller
        from hippo_core.retrieval.text_encoder import with_payloads
        from hippo_core.retrieval.trace_index import TraceIndex

        numbered = [replace(trace, id=number) for number, trace in enumerate(index.traces, start=1)]
        most = len(self.channels) * self.settings.candidates
        encoder = self.encoder
        trace_index = TraceIndex(with_payloads(encoder, numbered), self.channels, encoder)
        config = RecallConfig("off", self.settings.candidates, most, 1.0, 1, self.fusion_weights, confidence=self.confidence)
        return Recaller(trace_index, config)

    @cached_property
    def encoder(self) -> "TextEncoder":
        """What cues and passages are encoded by."""
        from hippo_core.retrieval.text_encoder import VectorEncoder

        return VectorEncoder(str(self.lm.device))

    def index_tokens(self, traces: Sequence[Trace]) -> float:
        from hippo_core.retrieval.text_encoder import cost

        return cost(self.encoder, [trace.text for trace in traces])

    @property
    def fusion_weights(self) -> Mapping[str, Mapping[str, float]] | None:
        """The fitted weights of its channels; None: their standardised sum."""
        from hippo_core.retrieval.fusion import name_of

        return self._made["weights"][name_of(self.channels)]

    @property
    def confidence(self) -> "Confidence | None":
        """The confidence in its best passage; None where none was fitted."""
        return None

    @property
    def channels(self) -> "Sequence[Channel]":
        """What is added up."""
        return CHANNELS

    @cached_property
    def _made(self) -> Mapping[str, Any]:
        """What was fitted, its weights by channels among it."""
        from hippo_core.models import artifacts

        return artifacts.read_part(self.lm, "recall")

    def _positions(self, index: WorldIndex, query: Query, traces: Sequence[Trace], scores: np.ndarray) -> list[int]:
        """Positions among the taught passages, best first: these by their scores [C], behind them the others as they were told."""
        where = {source: position for position, source in enumerate(query.taught)}
        every = np.full(len(query.taught), -np.inf)
        every[[where[trace.source] for trace in traces]] = scores
        return latest_first(index, query.taught, query.text, ranked(every), every, self.settings.recency)


def in_order_of(query: Query, positions: Sequence[int], traces: Sequence[Trace], scores: Iterable[float]) -> list[float]:
    """The scores of the first positions among the taught passages, which are those of `traces`."""
    known = {trace.source: float(score) for trace, score in zip(traces, scores, strict=True)}
    return [known[query.taught[position]] for position in positions[: len(traces)]]


class FittedRerank(FittedRag):
    """The best of those by the fitted sum of the same and of the question's log-likelihood after each passage as text (rerank.py)."""

    def order(self, index: WorldIndex, query: Query) -> Ordered:
        from hippo_core.retrieval.fusion import fused, name_of
        from hippo_core.retrieval.question_likelihood import after_text

        recall = self._recall(index, query)
        best = recall.traces[: self.settings.candidates]
        judged = after_text(self.lm, [trace.text for trace in best], query.text, self.settings.decoding)
        features = {name: values[: len(best)] for name, values in (recall.features or {}).items()}
        scores = fused(
            features | {"predictive": np.array([judgement.nats for judgement in judged])},
            self._made["weights"][name_of(CHANNELS)]["predictive"],
        )
        first = self._positions(index, query, best, scores)[: len(best)]
        rest = self._positions(index, query, recall.traces, np.array(recall.scores))
        tokens = recall.computed_tokens + sum(judgement.computed_tokens for judgement in judged)
        return Ordered(
            [*first, *(position for position in rest if position not in {*first})], tokens, scores=in_order_of(query, first, best, scores)
        )
