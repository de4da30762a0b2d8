"""Scores by words, or by pieces or meanings of words: BM25 over the terms that a function takes from a text."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hippo_core.retrieval.lexicon import words
from hippo_core.retrieval.world_index import WorldIndex

if TYPE_CHECKING:
    from bm25s import BM25

Terms = Callable[[str], list[str]]  # what a text is made of, as BM25 counts it


def bm25_scores(index: WorldIndex, taught: tuple[str, ...], question: str, terms: Terms = words) -> np.ndarray:
    """BM25 (Lucene's variant, k1 1.5, b .75) of each taught fact; zero for all where no term is shared."""
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
