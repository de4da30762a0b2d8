"""BM25 over the terms of a text. A function gives the terms: words, character n-grams or meanings of words."""

from collections.abc import Callable
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
