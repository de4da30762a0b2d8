"""Late interaction of word pieces: each piece of a cue looks for the piece of a text that is most like it, and the text counts their mean.

    score = sum over p of w_p max over t of cos(A c_p, A s_t)  /  sum over p of w_p  +  WHOLE cos(c, s)

c_p and s_t [384] are MiniLM's last states, A [D, 384] a fitted projection, w a fitted weight of each piece of a cue (Khattab and Zaharia
2020, arXiv 2004.12832, section 3.2, with another encoder); c and s are MiniLM's vectors of the whole cue and text.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus

from hippo_core.models import artifacts
from hippo_core.models.artifacts import Owner
from hippo_core.models.spec import validated
from hippo_core.retrieval.channels import best
from hippo_core.retrieval.lexicon import words
from hippo_core.retrieval.vectors import cosines, lengths_of, quantised

TEXT_WEIGHT = 0.1  # of 0 to .25 what helped most on validation questions of four kinds
CHUNK = 65_536  # pieces that are compared at a time
SIZES = (2, 3)  # characters of the n-grams by which spellings are compared


class PieceSettings(BaseModel):
    """The shape of a projection: `hidden` numbers of a piece become `width`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hidden: Annotated[int, Field(ge=1)]
    width: Annotated[int, Field(ge=1)] = 128


class PieceHead(nn.Module):
    """The projection, and the weight of each piece of a cue."""

    def __init__(self, settings: PieceSettings) -> None:
        super().__init__()
        self.settings = settings
        self.project = nn.Linear(settings.hidden, settings.width, bias=False)
        self.weight = nn.Linear(settings.hidden, 1)

    def forward(self, states: Tensor) -> Tensor:
        """States [T, hidden] as rows of length 1 [T, width]."""
        return normalize(self.project(states), dim=-1)

    def weights(self, states: Tensor) -> Tensor:
        """How much each piece of a cue counts, more than 0, [T]."""
        return softplus(self.weight(normalize(states, dim=-1)))[:, 0]


def matched(cue: Tensor, table: Tensor, owner: Tensor, count: int) -> Tensor:
    """For each piece of a cue [P, width] the highest cosine with a piece of each of `count` texts, [P, count]; -1 for a text without a
    piece. `table` [T, width] has the pieces of all texts, `owner` [T] the number of the text of each; rows have length 1."""
    cosines = cue @ table.T
    return cosines.new_full((len(cue), count), -1.0).scatter_reduce(1, owner.expand(len(cue), -1), cosines, "amax")


def load_pieces(owner: Owner, part: str) -> PieceHead:
    """Load a fitted projection. LabError where there is none, it is damaged, or it belongs to other weights."""
    return artifacts.load_part(owner, part, lambda values: PieceHead(validated(PieceSettings, values, f"{part}.json")))


@dataclass(frozen=True, eq=False)
class PieceIndex:
    """The pieces of a text."""

    table: NDArray[np.int8]  # int8 [T, W]
    weights: NDArray[np.float32]  # how much each counts in a cue [T]
    words: tuple[str, ...]  # the word that each is of
    text_vector: NDArray[np.int8]  # MiniLM's vector of the text, int8 [D]


@torch.inference_mode()
def pieces_of(head: PieceHead, states: Tensor, words_of: Sequence[str], text_vector: NDArray[np.int8]) -> PieceIndex:
    """The pieces of a text whose states [T, hidden] are known, the word that each is of, and the text's vector."""
    return PieceIndex(quantised(head(states).numpy()), head.weights(states).numpy(), tuple(words_of), text_vector)


class PieceChannel:
    """The pieces of sentences [S], with their words and vectors, of which trace n has those from starts[n] on.

    A piece of a cue finds the piece most like it, or the word spelt most like its own. Each counts by its weight and by how few sentences
    have its word, and the whole text for a little.
    """

    def __init__(
        self, tables: Sequence[NDArray[np.int8]], texts: Sequence[str], vectors: NDArray[np.int8], starts: NDArray[np.int64]
    ) -> None:
        self.starts, self.count = starts, len(tables)
        counts = np.array([len(table) for table in tables], dtype=np.int64)
        self._filled = np.flatnonzero(counts)  # a sentence may have no piece
        self._first = (np.cumsum(counts) - counts)[self._filled]
        self._table = np.concatenate([*tables, np.zeros((0, tables[0].shape[1] if tables else 1), np.int8)])
        self._lengths = lengths_of(self._table)
        self._spelling = Spelling([words(text) for text in texts])
        self._vectors, self._sizes = vectors, lengths_of(vectors)

    def scores(self, cue: PieceIndex) -> NDArray[np.float64]:
        """How well each trace matches the cue, float64 [N], from -1 - TEXT_WEIGHT to 1 + TEXT_WEIGHT."""
        similarities = np.maximum(self._cosines(cue.table), self._spelling.similarities(cue.words))
        weight = cue.weights * np.array([self._spelling.rarity(word) for word in cue.words], np.float64)
        sentences = weight @ similarities / weight.sum() if len(weight) else np.zeros(self.count)
        return best(sentences + TEXT_WEIGHT * cosines(self._vectors, self._sizes, cue.text_vector), self.starts)

    def _cosines(self, cue: NDArray[np.int8]) -> NDArray[np.float64]:
        """For each piece of a cue [P, W] its highest cosine with a piece of each sentence, [P, S]. Integer products are exact."""
        rows = cue.astype(np.float32)
        dots = np.empty((len(cue), len(self._table)), np.float32)
        for start in range(0, len(self._table), CHUNK):
            dots[:, start : start + CHUNK] = rows @ self._table[start : start + CHUNK].astype(np.float32).T
        cosines = dots / self._lengths / lengths_of(cue)[:, None]
        best_cosines = np.full((len(cue), self.count), -1.0)
        if len(self._filled):
            best_cosines[:, self._filled] = np.maximum.reduceat(cosines, self._first, axis=1)
        return best_cosines


class Spelling:
    """The words of sentences, by their letters."""

    def __init__(self, words_of_pieces: Sequence[Sequence[str]]) -> None:
        own = [tuple(dict.fromkeys(words)) for words in words_of_pieces]
        self._counts = Counter(word for words in own for word in words)
        self.count, self._number = len(own), {word: number for number, word in enumerate(self._counts)}
        self._sentences = np.repeat(np.arange(len(own)), [len(words) for words in own])
        self._words = np.array([self._number[word] for words in own for word in words], dtype=np.int64)
        self._sizes = np.array([len(letters(word)) for word in self._counts], dtype=np.int64)

    @cached_property
    def _having(self) -> dict[str, NDArray[np.int64]]:
        having = defaultdict(list)
        for word, number in self._number.items():
            for gram in letters(word):
                having[gram].append(number)
        return {gram: np.array(numbers) for gram, numbers in having.items()}

    def rarity(self, word: str) -> float:
        """How few sentences have a word, as in `lexicon`; a word of none counts most."""
        count = self._counts.get(word, 0)
        return float(np.log1p((self.count - count + 0.5) / (count + 0.5)))

    def similarities(self, cue: Sequence[str]) -> NDArray[np.float64]:
        """For each word the highest share of letters in common (Dice's) with a word of each sentence, [P, S]; -1 for no word."""
        scores = np.full((len(cue), self.count), -1.0)
        made: dict[str, NDArray[np.float64]] = {}
        for row, word in enumerate(cue):
            if word and word not in made:
                made[word] = self._shared(word)
            if word:
                scores[row] = made[word]
        return scores

    def _shared(self, word: str) -> NDArray[np.float64]:
        own = letters(word)
        common = np.zeros(len(self._number))
        for gram in own:
            common[self._having.get(gram, [])] += 1
        best = np.zeros(self.count)
        np.maximum.at(best, self._sentences, (2 * common / (len(own) + self._sizes))[self._words])
        return best


def letters(word: str) -> frozenset[str]:
    """The n-grams of a word's letters, its borders among them."""
    bordered = f"<{word}>"
    return frozenset(bordered[start : start + size] for size in SIZES for start in range(len(bordered) - size + 1))
