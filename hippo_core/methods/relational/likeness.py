"""The similarity of words and of texts: by spelling, and with an encoder by meaning."""

from collections.abc import Sequence

import numpy as np

from hippo_core.retrieval.lexicon import grams

FAR = 0.5  # cosine of two words that have nothing to do with each other


def spelling(word: str, other: str) -> float:
    """The Dice coefficient of the words' character n-grams."""
    if word == other:
        return 1.0
    a, b = set(grams(word)), set(grams(other))
    return 2 * len(a & b) / (len(a) + len(b)) if a and b else 0.0


class TextSimilarity:
    """By spelling alone."""

    def words(self, asked: Sequence[str], known: Sequence[str]) -> np.ndarray:
        """The similarity of each asked word to each known one, 0 to 1, [Q, W]."""
        return np.array([[spelling(word, other) for other in known] for word in asked]).reshape(len(asked), len(known))

    def texts(self, asked: Sequence[str], known: Sequence[str]) -> np.ndarray:
        """The similarity of each asked text to each known one, up to 1, [Q, N]."""
        return self.words(asked, known)


class Meaning(TextSimilarity):
    """By MiniLM's cosine; of words, where it counts from `FAR` on, the larger one of that and the spelling. Vectors are kept."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self._vectors: dict[str, np.ndarray] = {}

    def words(self, asked: Sequence[str], known: Sequence[str]) -> np.ndarray:
        return np.maximum(super().words(asked, known), np.clip((self.texts(asked, known) - FAR) / (1 - FAR), 0, 1))

    def texts(self, asked: Sequence[str], known: Sequence[str]) -> np.ndarray:
        if not (asked and known):
            return np.zeros((len(asked), len(known)))
        return self._encoded(asked) @ self._encoded(known).T

    def _encoded(self, texts: Sequence[str]) -> np.ndarray:
        from hippo_core.models import minilm

        if new := [text for text in dict.fromkeys(texts) if text not in self._vectors]:
            self._vectors.update(zip(new, minilm.encode(new, self.device).cpu().numpy(), strict=True))
        return np.stack([self._vectors[text] for text in texts])
