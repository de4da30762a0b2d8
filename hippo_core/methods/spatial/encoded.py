"""MiniLM's vectors of words and sentences, kept for the process."""

from collections.abc import Callable, Sequence

import numpy as np

Encode = Callable[[Sequence[str]], np.ndarray]  # unit vectors of texts, [N, D]
_vectors: dict[str, np.ndarray] = {}


def minilm_kept(texts: Sequence[str]) -> np.ndarray:
    """The unit vectors of texts [N, D]; each is encoded once a process."""
    from hippo_core.models import minilm

    if new := [text for text in dict.fromkeys(texts) if text not in _vectors]:
        _vectors.update(zip(new, minilm.encode(new).numpy(), strict=True))
    return np.stack([_vectors[text] for text in texts])
