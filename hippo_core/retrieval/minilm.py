"""Cosines of the sentence vectors that all-MiniLM-L6-v2 (models/minilm.py) makes of texts."""

import numpy as np

from hippo_core.models import minilm
from hippo_core.retrieval.world_index import WorldIndex


def cosines(index: WorldIndex, taught: tuple[str, ...], question: str) -> np.ndarray:
    """The cosine of each taught fact with the question. All facts of the world are encoded once, on the device of its model."""
    device = str(index.lm.device)
    vectors = index.once("minilm", lambda: minilm.encode([fact.text for fact in index.traces], device))
    rows = {fact: row for row, fact in enumerate(index.passages)}
    return (vectors[[rows[fact] for fact in taught]] @ minilm.encode([question], device)[0]).numpy()


def query_tokens(index: WorldIndex, question: str) -> int:
    """How many word pieces are run for a question."""
    return minilm.pieces(question, str(index.lm.device))
