"""Scores by words, or by pieces or meanings of words: BM25 over the terms that a function takes from a text."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hippo_core.conditions.index import WorldIndex

if TYPE_CHECKING:
    from bm25s import BM25

Terms = Callable[[str], list[str]]  # what a text is made of, as BM25 counts it
GRAMS = (3, 4)  # characters


def words(text: str) -> list[str]:
    """Lower-case words and numbers, an apostrophe kept inside a word; no stemming, no list of stop words."""
    return re.findall(r"\w+(?:'\w+)*", text.lower().replace("\u2019", "'"))


def grams(text: str) -> list[str]:
    """Every three and every four characters in a row of each word, whose borders count as characters: "lamp" begins with "<la"."""
    bordered = [f"<{word}>" for word in words(text)]
    return [word[start : start + size] for word in bordered for size in GRAMS for start in range(len(word) - size + 1)]


def bm25_scores(index: WorldIndex, taught: tuple[str, ...], question: str, terms: Terms = words) -> np.ndarray:
    """BM25 (Lucene's variant, k1 1.5, b .75) of each taught fact; zero for all where no term is shared."""
    ranker = index.once(("bm25", terms, taught), lambda: _bm25([terms(index.facts[fact].text) for fact in taught]))
    known = [term for term in terms(question) if term in ranker.vocab_dict] if ranker else []
    return ranker.get_scores(known) if known else np.zeros(len(taught))


def _bm25(documents: list[list[str]]) -> "BM25 | None":
    from bm25s import BM25

    if not any(documents):
        return None
    ranker = BM25(method="lucene", k1=1.5, b=0.75)
    ranker.index(documents, show_progress=False)
    return ranker
