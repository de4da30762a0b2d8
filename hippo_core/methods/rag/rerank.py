"""Retrieval in two steps: candidates by words, pieces of words and vectors together, re-ranked by the model that answers.

A candidate's second score is the log-likelihood of the question given that one fact as context (UPR: Sachan et al. 2022, arXiv
2204.07496, with the lab's own prompt in place of the paper's "Please write a question based on this passage"; the paper
takes the mean over the question's tokens, which orders the same as the sum, for all candidates share the question). Nothing is trained.
"""

import math
import time
from typing import TYPE_CHECKING

import numpy as np

from hippo_core.methods.rag.rankers import dense_scores, query_tokens, ranked, standardised
from hippo_core.methods.types import Choice, Request
from hippo_core.retrieval.bm25 import bm25_scores
from hippo_core.retrieval.lexicon import grams
from hippo_core.retrieval.recency import latest_first

if TYPE_CHECKING:
    from hippo_core.models.score import Likelihood


def rag_rerank(request: Request) -> Choice:
    """The k best of the `candidates` best by the question's log-likelihood given each; behind them the others as they were ranked."""
    taught = request.item.taught
    if not taught:
        return Choice((), (), math.nan)

    def first_ranking() -> list[int]:
        return ranked(_first_scores(request))

    known = (rag_rerank, request.encoder, bool(request.recency), taught)
    request.index.once(known, lambda: latest_first(request, first_ranking(), np.zeros(len(taught))))  # builds the index, untimed
    begin = time.perf_counter()
    first = first_ranking()
    candidates = sorted(first[: request.candidates])
    judged = question_likelihoods(request, candidates)
    nats = np.full(len(taught), -np.inf)
    nats[candidates] = standardised(np.array([one.nats for one in judged]))
    best = latest_first(request, ranked(nats)[: len(candidates)], nats)
    ranking = tuple(taught[place] for place in [*best, *first[len(best) :]])
    elapsed = (time.perf_counter() - begin) * 1000
    computed = query_tokens(request) + sum(one.computed_tokens for one in judged)
    return Choice(request.among_taught(set(ranking[: request.k])), ranking, elapsed, computed)


def question_likelihoods(request: Request, places: list[int]) -> "list[Likelihood]":
    """The question's log-likelihood after each of these taught facts, alone in the prompt that the model would be asked with."""
    from hippo_core.models.prompt import split
    from hippo_core.models.score import token_likelihood

    lm, question, taught = request.index.lm, request.item.question, request.taught
    pieces = split(lm, [taught[place].text for place in places], question, request.decoding)
    return token_likelihood(lm, [([*pieces.prefix, *block], pieces.tail[: pieces.asked]) for block in pieces.blocks], len(places))


def _first_scores(request: Request) -> np.ndarray:
    """The sum of the z-scores of BM25 over words, over pieces of words, and cosine."""
    index, taught, question = request.index, request.item.taught, request.item.question
    lexical = [bm25_scores(index, taught, question), bm25_scores(index, taught, question, grams)]
    return np.sum([standardised(scores) for scores in [*lexical, dense_scores(index, taught, question, request.encoder)]], axis=0)
