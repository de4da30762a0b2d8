"""Sentences, and sparse codes of a text's words or of the character n-grams of its words.

A term weighs idf * (1 + log count), with the idf of BM25 (Robertson and Zaragoza 2009, section 3.1). A text's row is scaled to length 1 and
rounded to integer multiples of 1 / SCALE.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hippo_core.retrieval.sparse_key import SparseMatrix
from hippo_core.text import words

SCALE = 4095  # integer steps per unit; products of two rows fit easily into 32 bits
SIZES = (3, 4)  # characters per n-gram
# Behind a full stop, a question mark or an exclamation mark, closing quotes and brackets with it, before what begins a sentence.
BORDER = re.compile(r"(?<=[.!?])(?P<closing>[\"'”’)\]]*)\s+(?=[\"'“‘(\[]*[A-Z0-9])")


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order; the whole text where it has one or none."""
    starts = [0, *(match.end() for match in BORDER.finditer(text))]
    parts = [text[start:end].strip() for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    return [part for part in parts if part] or [text]


def grams(text: str) -> list[str]:
    """All character 3-grams and 4-grams of each word. Word borders count as characters: the first of "lamp" is "<la"."""
    bordered = [f"<{word}>" for word in words(text)]
    return [word[start : start + size] for word in bordered for size in SIZES for start in range(len(word) - size + 1)]


@dataclass
class Lexicon:
    """The terms of a set of texts with their idf. Each term is a dimension, in order of first occurrence."""

    terms: Callable[[str], list[str]]
    idf: dict[str, float] = field(default_factory=dict)
    unseen: float = 0.0  # the idf of a term that no text contains
    columns: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: Sequence[str], terms: Callable[[str], list[str]]) -> "Lexicon":
        """The lexicon of these texts."""
        counts = Counter(term for text in texts for term in dict.fromkeys(terms(text)))
        total = len(texts)
        idf = {term: math.log(1 + (total - count + 0.5) / (count + 0.5)) for term, count in counts.items()}
        return cls(terms, idf, math.log(1 + (total + 0.5) / 0.5), {term: column for column, term in enumerate(counts)})

    def rows(self, texts: Sequence[str]) -> SparseMatrix:
        """The texts as rows of a sparse code. A term outside the lexicon has no dimension, but counts for the row's length."""
        coded = [self._coded(text) for text in texts]
        return SparseMatrix.of(coded, len(self.columns), float(SCALE))

    def _coded(self, text: str) -> tuple[list[int], list[int]]:
        """The dimensions of the known terms of a text, ascending, and their integer values."""
        counts = Counter(self.terms(text))
        weights = {term: self.idf.get(term, self.unseen) * (1 + math.log(count)) for term, count in counts.items()}
        length = math.sqrt(math.fsum(weight * weight for weight in weights.values()))
        known = {self.columns[term]: round(SCALE * weight / length) for term, weight in weights.items() if term in self.columns}
        columns = sorted(column for column, value in known.items() if value)
        return columns, [known[column] for column in columns]
