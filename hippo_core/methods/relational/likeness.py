"""How alike two words are: by their spelling, and where there is an encoder by what they mean."""

from collections.abc import Callable, Sequence

import numpy as np

from hippo_core.retrieval.lexicon import grams

Likeness = Callable[[Sequence[str], Sequence[str]], np.ndarray]  # words [Q] and words [W] -> 0 to 1, [Q, W]
FAR = 0.5  # cosine of two words that have nothing to do with each other


def spelling(one: str, other: str) -> float:
    """The Dice coefficient of the words' character n-grams."""
    if one == other:
        return 1.0
    a, b = set(grams(one)), set(grams(other))
    return 2 * len(a & b) / (len(a) + len(b)) if a and b else 0.0


def by_spelling(asked: Sequence[str], known: Sequence[str]) -> np.ndarray:
    """See `Likeness`."""
    return np.array([[spelling(one, other) for other in known] for one in asked]).reshape(len(asked), len(known))


def by_meaning(device: str = "cpu") -> Likeness:
    """The larger one of spelling and MiniLM's cosine, which counts from `FAR` on. Vectors of words are kept."""
    from hippo_core.models import minilm

    vectors: dict[str, np.ndarray] = {}

    def encoded(texts: Sequence[str]) -> np.ndarray:
        if new := [text for text in dict.fromkeys(texts) if text not in vectors]:
            vectors.update(zip(new, minilm.encode(new, device).cpu().numpy(), strict=True))
        return np.stack([vectors[text] for text in texts])

    def alike(asked: Sequence[str], known: Sequence[str]) -> np.ndarray:
        if not (asked and known):
            return np.zeros((len(asked), len(known)))
        cosines = encoded(asked) @ encoded(known).T
        return np.maximum(by_spelling(asked, known), np.clip((cosines - FAR) / (1 - FAR), 0, 1))

    return alike
