"""Conditions that retrieve: score every taught fact against the question, show the k best in order of telling.

The order of telling, not of score, so that "the last mention wins" can still be read off the prompt. Scores are rounded to six
decimals before they are compared, and ties go to the fact told first, so that a ranking does not hang on rounding. The time is that
of a query; the facts' index is built before. So are the tokens: those that a model or an encoder runs for the query. A preset with
`recency` puts earlier versions behind the last one (recency.py).
"""

import math
import time
from collections.abc import Callable
from types import ModuleType

import numpy as np

from hippo_core.methods.types import Choice, Encoder, Request
from hippo_core.retrieval.bm25 import bm25_scores
from hippo_core.retrieval.lexicon import grams
from hippo_core.retrieval.recency import latest_first
from hippo_core.retrieval.synonyms import meanings
from hippo_core.retrieval.world_index import WorldIndex

Scorer = Callable[..., np.ndarray]  # index, taught facts, question, and what else it must be told -> a score for each fact


def rag_bm25(request: Request) -> Choice:
    """The k best by BM25 over words."""
    return _retrieve(request, bm25_scores)


def rag_grams(request: Request) -> Choice:
    """The k best by BM25 over pieces of words: three and four characters in a row."""
    return _retrieve(request, bm25_scores, grams)


def rag_synonyms(request: Request) -> Choice:
    """The k best by BM25 over meanings, which the suites' own table of synonyms tells: a bound, for it knows what no retrieval may."""
    return _retrieve(request, bm25_scores, meanings)


def rag_dense(request: Request) -> Choice:
    """The k best by cosine of the encoder's vectors."""
    return _retrieve(request, dense_scores, request.encoder)


def rag_hybrid(request: Request) -> Choice:
    """The k best by the sum of both, each standardised over the taught facts."""
    return _retrieve(request, hybrid_scores, request.encoder)


def dense_scores(index: WorldIndex, taught: tuple[str, ...], question: str, encoder: Encoder | None = "own") -> np.ndarray:
    """Cosine in an encoder's space: the model's own, or MiniLM's."""
    return _space(encoder).cosines(index, taught, question)


def hybrid_scores(index: WorldIndex, taught: tuple[str, ...], question: str, encoder: Encoder | None = "own") -> np.ndarray:
    """The sum of the z-scores of BM25 and cosine."""
    return standardised(bm25_scores(index, taught, question)) + standardised(dense_scores(index, taught, question, encoder))


def standardised(scores: np.ndarray) -> np.ndarray:
    """z-scores in float64; zeros where all scores are the same."""
    scores = scores.astype(np.float64)
    spread = scores.std()
    return (scores - scores.mean()) / spread if spread > 1e-9 else np.zeros(len(scores))


def query_tokens(request: Request) -> int:
    """How many tokens the encoder runs for the question; none where the preset has no encoder."""
    return _space(request.encoder).query_tokens(request.index, request.item.question) if request.encoder else 0


def ranked(scores: np.ndarray) -> list[int]:
    """Places from the highest score to the lowest; of equals the first."""
    return np.argsort(-np.round(scores.astype(np.float64), 6), kind="stable").tolist()


def _space(encoder: Encoder | None) -> ModuleType:
    """The module of an encoder; imported only when it is asked for, as it needs torch."""
    if encoder == "minilm":
        from hippo_core.retrieval import minilm_vectors as space
    else:
        from hippo_core.retrieval import model_vectors as space
    return space


def _retrieve(request: Request, scorer: Scorer, *told: object) -> Choice:
    item, taught = request.item, request.item.taught
    if not taught:
        return Choice((), (), math.nan)

    def places() -> list[int]:
        scores = scorer(request.index, taught, item.question, *told)
        return latest_first(request, ranked(scores), standardised(scores))

    request.index.once((scorer, told, bool(request.recency), taught), places)  # builds the index, untimed
    begin = time.perf_counter()
    order = places()
    ranking = tuple(taught[place] for place in order)
    elapsed = (time.perf_counter() - begin) * 1000
    return Choice(request.among_taught(set(ranking[: request.k])), ranking, elapsed, query_tokens(request))
