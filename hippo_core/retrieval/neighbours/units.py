"""Units learnt from vectors: each becomes the mean direction of the vectors that it wins (spherical k-means: Dhillon and Modha 2001).

Sums of whole numbers below 2^24 are exact in float32 in whatever order, so every machine learns the same units.
"""

import numpy as np
import torch
from numpy.typing import NDArray

AT_ONCE = 4096  # vectors that are coded together


def learn_units(vectors: NDArray[np.int8], count: int) -> NDArray[np.int8]:
    """`count` units int8 [U, D] for vectors [N, D] in an order that says nothing, N at least U; a unit that wins none stays as it was."""
    units = vectors[:count].copy()
    won = nearest_unit(vectors, units)
    order = np.argsort(won, kind="stable")
    winners, starts = np.unique(won[order], return_index=True)
    units[winners] = scaled(np.add.reduceat(vectors[order].astype(np.int64), starts, axis=0))
    return units


def scaled(sums: NDArray[np.int64]) -> NDArray[np.int8]:
    """Sums [U, D] as directions of which the largest number is 127."""
    largest = np.maximum(np.abs(sums).max(1, keepdims=True), 1)
    return np.rint(sums * (127 / largest)).astype(np.int8)


def nearest_unit(vectors: NDArray[np.int8], units: NDArray[np.int8]) -> NDArray[np.int64]:
    """The unit that each vector wins."""
    table = torch.from_numpy(units).float()
    lengths = table.square().sum(1).sqrt().clamp(min=1)
    parts = (torch.from_numpy(vectors[start : start + AT_ONCE]).float() for start in range(0, len(vectors), AT_ONCE))
    return torch.cat([((part @ table.T) / lengths).argmax(1) for part in parts]).numpy()
