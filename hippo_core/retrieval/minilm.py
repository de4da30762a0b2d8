"""Cosines of sentence vectors from all-MiniLM-L6-v2 (models/minilm.py)."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from hippo_core.models import minilm
from hippo_core.retrieval.encoded import kept
from hippo_core.retrieval.world_index import WorldIndex


class Vectors:
    """The vectors of the texts that were asked for last, so that of the next ones only new texts are encoded."""

    def __init__(self) -> None:
        self._known: dict[str, Tensor] = {}

    def of(self, texts: Sequence[str], device: str = "cpu") -> Tensor:
        """The vectors of the texts, `(texts, dim)`."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        vectors = self._known | dict(zip(new, vectors_of(new, device), strict=True))
        self._known = {text: vectors[text] for text in texts}
        return torch.stack([vectors[text] for text in texts]) if texts else vectors_of([], device)

    def give(self, index: WorldIndex) -> None:
        """Let an index take the vectors of its texts from these."""
        index.once("minilm", lambda: self.of([fact.text for fact in index.traces], str(index.lm.device)))


def cosines(index: WorldIndex, taught: tuple[str, ...], question: str) -> np.ndarray:
    """The cosine of each taught fact with the question [facts]. All facts of the world are encoded once."""
    device = str(index.lm.device)
    vectors = index.once("minilm", lambda: vectors_of([fact.text for fact in index.traces], device))
    rows = {fact: row for row, fact in enumerate(index.passages)}
    return (
        vectors[[rows[fact] for fact in taught]] @ index.cue("minilm", question, lambda texts: list(minilm.encode(texts, device)))
    ).numpy()


def vectors_of(texts: Sequence[str], device: str = "cpu") -> Tensor:
    """The vectors of the texts, `(texts, dim)`, read from disk if they are there."""
    return kept(minilm.identity(), texts, lambda: {"vectors": minilm.encode(texts, device)})["vectors"]


def query_tokens(index: WorldIndex, question: str) -> int:
    """How many word pieces are run for a question."""
    return minilm.pieces(question, str(index.lm.device))
