"""selective: the turns likest the question, by words, by an encoder, or by the model's key.

    score(turn) = (1 - w) likeness(turn, question) + w recency(turn),    best first

likeness is scaled to the dialogue's best (0 to 1); recency is the turn's position, from 0 (first) to 1 (last). The specification names
the settings (scorer, recency weight, threshold, top k) and no formula; this is ours. What scores below the threshold is not shown; k is
what fits the budget, unless `top_k` says less.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from hippo_core.protocols.conversation.dialogue import Turn
from hippo_core.protocols.conversation.techniques.base import Rank, Retriever, RetrieverSettings, Share
from hippo_core.retrieval.ranking import ranked
from hippo_core.retrieval.scores import bm25_scores, dense_scores
from hippo_core.retrieval.world_index import WorldIndex
from hippo_core.store.trace import Trace

Scores = Callable[[str], np.ndarray]  # a question -> how like each passage is
WINNERS = 64  # units of a key, as the episodic memory's


class SelectiveSettings(RetrieverSettings):
    """The weight w of recency, and the score from which a passage is shown."""

    recency: Share = 0.0
    threshold: Share = 0.0


class Selective(Retriever):
    """Ranks passages by likeness and recency."""

    settings = SelectiveSettings()

    def scores(self, passages: Sequence[str]) -> Scores:
        """A function that says how like a question each passage is."""
        raise NotImplementedError

    def rank(self, passages: Sequence[str], turns: Sequence[Sequence[Turn]]) -> Rank:
        scores = self.scores(passages)
        age = np.linspace(0, 1, len(passages)) if len(passages) > 1 else np.ones(1)
        weight, least = self.settings.recency, self.settings.threshold

        def rank(question: str) -> Sequence[int]:
            values = (1 - weight) * scaled(scores(question)) + weight * age
            return [index for index in ranked(values) if values[index] >= least]

        return rank


class TurnBM25(Selective):
    """By words."""

    name = "bm25"

    def scores(self, passages: Sequence[str]) -> Scores:
        index, taught = indexed(self.setting.lm, passages)
        return lambda question: bm25_scores(index, taught, question)


class Embedding(Selective):
    """By MiniLM's cosine where it is on the disk, else by that of the model's own states."""

    name = "embedding"

    def scores(self, passages: Sequence[str]) -> Scores:
        from hippo_core.methods.encoded import default_encoder

        index, taught = indexed(self.setting.lm, passages)
        encoder = default_encoder()
        return lambda question: dense_scores(index, taught, question, encoder)


class KeyRanking(Selective):
    """By the cosine of the sparse key that was fitted on the model's early states."""

    name = "key"

    def scores(self, passages: Sequence[str]) -> Scores:
        from hippo_core.retrieval.text_encoder import with_payloads
        from hippo_core.retrieval.trace_index import TraceIndex

        encoder = _key_encoder(self.setting.lm)
        traces = [replace(trace, id=number) for number, trace in enumerate(indexed(self.setting.lm, passages)[0].traces, start=1)]
        index = TraceIndex(with_payloads(encoder, traces), ("key",), encoder)
        return lambda question: index.likeness(index.cue(question))["key"]


def scaled(scores: np.ndarray) -> np.ndarray:
    """Likenesses [N] as parts of the best one, those below 0 as 0; zeros where none is above 0."""
    above = np.maximum(scores.astype(np.float64), 0.0)
    return above / above.max() if above.max() > 0 else above


def indexed(lm: Any, passages: Sequence[str]) -> tuple[WorldIndex, tuple[str, ...]]:
    """The passages as traces in an index, and their names in order."""
    taught = tuple(map(str, range(len(passages))))
    return WorldIndex(lm, [Trace("dialogue", name, text, time=int(name)) for name, text in zip(taught, passages, strict=True)]), taught


@lru_cache(maxsize=2)
def _key_encoder(lm: Any) -> Any:
    from hippo_core.methods.episodic.components import load_key_model
    from hippo_core.retrieval.text_encoder import KeyEncoder

    model = load_key_model(lm)
    return KeyEncoder(model, model.head.settings.units, WINNERS)
