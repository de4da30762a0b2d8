"""A recency rule for retrieval: a fact that looks like an earlier version of one told later is put behind.

A ranking by likeness alone cannot tell the last mention of something from the mentions before it. Of the best facts each is compared with
those of them that were told later, by the encoder's own vectors; nothing but the order of telling is added to what retrieval knows.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hippo_core.conditions.types import Request

if TYPE_CHECKING:
    from torch import Tensor

AMONG = 20  # facts that are compared with each other, as many as a re-ranking looks at
ALIKE = 4  # power of a cosine, so that only what is nearly the same counts


def superseded(vectors: "Tensor", places: list[int]) -> np.ndarray:
    """For each of these places the highest cosine, to the fourth, with one of them that was told later; 0 where none was.

    Args:
        vectors: unit vectors of all taught facts in order of telling [N, D].
        places: which of them are compared [C].
    """
    some = vectors[places]
    later = np.array(places)[None] > np.array(places)[:, None]
    return np.where(later, (some @ some.T).clamp(min=0).numpy().astype(np.float64), 0.0).max(1, initial=0.0) ** ALIKE


def latest_first(request: Request, order: list[int], scores: np.ndarray, vectors: Callable[[], "Tensor"]) -> list[int]:
    """The places `order`, best first, with the best `AMONG` ordered anew: by their `scores`, standardised [N], less `recency` for each
    unit of `superseded`. As it was where the preset has no such rule."""
    if not request.recency:
        return order
    best = sorted(order[:AMONG])
    kept = scores[best] - request.recency * superseded(vectors(), best)
    return [*(best[place] for place in np.argsort(-np.round(kept, 6), kind="stable")), *order[AMONG:]]
