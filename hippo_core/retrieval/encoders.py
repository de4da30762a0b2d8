"""The encoders of dense retrieval by name: `own` is the model that answers, `minilm` is all-MiniLM-L6-v2."""

from types import ModuleType

import numpy as np

from hippo_core.retrieval.world_index import WorldIndex


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
