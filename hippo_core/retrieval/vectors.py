"""Vectors of texts as whole numbers from -127 to 127, and their cosines, in integer arithmetic until lengths are divided out."""

import numpy as np
from numpy.typing import NDArray

from hippo_core.kernels.compiled import compiled

LARGEST = 127


def quantised(vectors: NDArray[np.floating]) -> NDArray[np.int8]:
    """Vectors [N, D] as int8 [N, D]; a vector of nothing stays one."""
    largest = np.abs(vectors).max(-1, keepdims=True, initial=0.0)
    return np.rint(vectors * (LARGEST / np.where(largest > 0, largest, 1.0))).astype(np.int8)


def cosines(vectors: NDArray[np.int8], lengths: NDArray[np.float64], cue: NDArray[np.int8]) -> NDArray[np.float64]:
    """The cosine of each vector [N, D] with a cue's [D], float64 [N]. `lengths` [N]: those of the vectors, as `lengths_of` gives them."""
    dots = np.empty(len(vectors), np.int32)
    dot(np.ascontiguousarray(vectors), cue.astype(np.int16), dots)
    return dots / (lengths * lengths_of(cue[None])[0])


def lengths_of(vectors: NDArray[np.int8]) -> NDArray[np.float64]:
    """The length of each vector, float64 [N]; 1 for a vector of nothing."""
    squares = np.einsum("nd,nd->n", vectors, vectors, dtype=np.int64)
    return np.where(squares > 0, np.sqrt(squares.astype(np.float64)), 1.0)


@compiled
def dot(vectors: NDArray, cue: NDArray, dots: NDArray) -> None:
    """Fill `dots` int32 [N] with the products of vectors int8 [N, D] and a cue int16 [D]."""
    for row in range(vectors.shape[0]):
        total = np.int32(0)
        for dim in range(vectors.shape[1]):
            total += np.int32(vectors[row, dim]) * np.int32(cue[dim])
        dots[row] = total
