"""Whose vectors dense retrieval compares, by name: `own`, those of the model that answers, or `minilm`, those of all-MiniLM-L6-v2."""

from types import ModuleType

import numpy as np

from hippo_core.retrieval.world_index import WorldIndex


def dense_scores(index: WorldIndex, taught: tuple[str, ...], question: str, encoder: str = "own") -> np.ndarray:
    """The cosine of each taught passage with the question [N]."""
    return _vectors(encoder).cosines(index, taught, question)


def query_tokens(index: WorldIndex, question: str, encoder: str | None) -> int:
    """How many tokens an encoder runs for the question; none without an encoder."""
    return _vectors(encoder).query_tokens(index, question) if encoder else 0


def _vectors(encoder: str) -> ModuleType:
    """The module of an encoder; imported only when it is asked for, as it needs torch."""
    if encoder == "minilm":
        from hippo_core.retrieval import minilm as vectors
    else:
        from hippo_core.retrieval import model_vectors as vectors
    return vectors
