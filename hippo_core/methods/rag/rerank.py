"""Retrieval in two steps: candidates by words, pieces of words and vectors together, re-ranked by the model that answers.

A candidate's second score is the log-likelihood of the question given that one passage as context (UPR: Sachan et al. 2022, arXiv
2204.07496, with the lab's own prompt in place of the paper's "Please write a question based on this passage"; the paper
takes the mean over the question's tokens, which orders the same as the sum, for all candidates share the question). Nothing is trained.
"""

import numpy as np

from hippo_core.methods.base import Count, Query
from hippo_core.methods.rag.rankers import DenseSettings, Ordered, Rag
from hippo_core.retrieval.lexicon import grams
from hippo_core.retrieval.ranking import latest_first, ranked, standardised
from hippo_core.retrieval.scores import bm25_scores, dense_scores
from hippo_core.retrieval.world_index import WorldIndex


class RerankSettings(DenseSettings):
    """`candidates`: how many passages are re-ranked."""

    candidates: Count = 20


class Rerank(Rag):
    """The k best of the `candidates` best by the question's log-likelihood given each; behind them the others as they were ranked."""

    Settings = RerankSettings

    def prepare(self, index: WorldIndex, query: Query) -> None:
        """See `Rag`; the likelihoods need no index."""
        latest_first(index, query.taught, query.text, self._first(index, query), np.zeros(len(query.taught)), self.settings.recency)

    def order(self, index: WorldIndex, query: Query) -> Ordered:
        from hippo_core.retrieval.question_likelihood import after_text

        first = self._first(index, query)
        candidates = sorted(first[: self.settings.candidates])
        texts = [index.passages[query.taught[position]].text for position in candidates]
        judged = after_text(self.lm, texts, query.text, self.settings.decoding)
        nats = np.full(len(query.taught), -np.inf)
        nats[candidates] = standardised(np.array([judgement.nats for judgement in judged]))
        best = latest_first(index, query.taught, query.text, ranked(nats)[: len(candidates)], nats, self.settings.recency)
        likelihoods = dict(zip(candidates, (judgement.nats for judgement in judged), strict=True))
        tokens = sum(judgement.computed_tokens for judgement in judged)
        return Ordered([*best, *first[len(best) :]], tokens, scores=[likelihoods[position] for position in best])

    def _first(self, index: WorldIndex, query: Query) -> list[int]:
        lexical = [bm25_scores(index, query.taught, query.text), bm25_scores(index, query.taught, query.text, grams)]
        dense = dense_scores(index, query.taught, query.text, self.settings.encoder)
        return ranked(np.sum([standardised(scores) for scores in [*lexical, dense]], axis=0))
