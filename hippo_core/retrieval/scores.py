"""Scores of the taught passages for a question: BM25 over the terms of a text, and cosines of vectors.

A function gives the terms: words, character n-grams or meanings of words. Vectors are those of an encoder by name: `own` is the model that
answers, `minilm` is all-MiniLM-L6-v2.
"""

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from hippo_core.retrieval.lexicon import words
from hippo_core.retrieval.world_index import WorldIndex

if TYPE_CHECKING:
    from bm25s import BM25

Terms = Callable[[str], list[str]]  # the terms of a text, as BM25 counts them


def bm25_scores(index: WorldIndex, taught: tuple[str, ...], question: str, terms: Terms = words) -> np.ndarray:
    """BM25 scores of the taught facts for a question [facts] (Lucene's variant, k1 1.5, b .75); all 0 if no term is shared."""
    ranker = index.once(("bm25", terms, taught), lambda: _bm25([terms(index.passages[fact].text) for fact in taught]))
    known = [term for term in terms(question) if term in ranker.vocab_dict] if ranker else []
    return ranker.get_scores(known) if known else np.zeros(len(taught))


def _bm25(documents: list[list[str]]) -> "BM25 | None":
    from bm25s import BM25

    if not any(documents):
        return None
    ranker = BM25(method="lucene", k1=1.5, b=0.75)
    ranker.index(documents, show_progress=False)
    return ranker


def dense_scores(index: WorldIndex, taught: tuple[str, ...], question: str, encoder: str = "own") -> np.ndarray:
    """The cosine of each taught passage with the question [passages]."""
    return _vectors(encoder).cosines(index, taught, question)


def query_tokens(index: WorldIndex, question: str, encoder: str | None) -> int:
    """How many tokens an encoder runs for the question; 0 without an encoder."""
    return _vectors(encoder).query_tokens(index, question) if encoder else 0


def _vectors(encoder: str) -> ModuleType:
    """The module of an encoder. It is imported only when it is needed, because it imports torch."""
    if encoder == "minilm":
        from hippo_core.retrieval import minilm as vectors
    else:
        from hippo_core.retrieval import model_vectors as vectors
    return vectors
