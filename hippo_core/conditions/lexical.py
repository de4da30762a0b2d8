"""Scores by words: BM25."""

import re
from typing import TYPE_CHECKING

import numpy as np

from hippo_core.conditions.index import WorldIndex

if TYPE_CHECKING:
    from bm25s import BM25


def bm25_scores(index: WorldIndex, taught: tuple[str, ...], question: str) -> np.ndarray:
    """BM25 (Lucene's variant, k1 1.5, b .75) of each taught fact; zero for all where no word is shared."""
    ranker = index.once(("bm25", taught), lambda: _bm25([words(index.facts[fact].text) for fact in taught]))
    known = [word for word in words(question) if word in ranker.vocab_dict] if ranker else []
    return ranker.get_scores(known) if known else np.zeros(len(taught))


def words(text: str) -> list[str]:
    """Lower-case words and numbers, an apostrophe kept inside a word; no stemming, no list of stop words."""
    return re.findall(r"\w+(?:'\w+)*", text.lower().replace("\u2019", "'"))


def _bm25(documents: list[list[str]]) -> "BM25 | None":
    from bm25s import BM25

    if not any(documents):
        return None
    ranker = BM25(method="lucene", k1=1.5, b=0.75)
    ranker.index(documents, show_progress=False)
    return ranker
