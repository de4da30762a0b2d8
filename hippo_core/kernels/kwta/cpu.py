"""k-winners-take-all by numba: the least winning size is found by bisection over the 127 sizes there are, then one pass collects.

A sort of D entries costs more than seven counts of them, which run over bytes in cache, dozens at a time.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hippo_core.kernels.code import Code
from hippo_core.kernels.compiled import compiled

PART = 64  # entries looked at together


def kwta(x: Tensor, largest: Tensor, winners: int) -> Code:
    """The code of `x` float32 [N, D], whose rows' largest |x| are `largest` [N]."""
    indices = torch.full((len(x), winners), -1, dtype=torch.int32)
    values = torch.zeros(len(x), winners, dtype=torch.int8)
    _fill(x.numpy(), largest.numpy(), indices.numpy(), values.numpy())
    return Code(indices, values)


@compiled
def _fill(x: NDArray, largest: NDArray, indices: NDArray, values: NDArray) -> None:
    """Write the code of every row."""
    sizes = np.empty(x.shape[1], np.int8)
    for row in range(x.shape[0]):
        if largest[row] > 0:
            _quantise(x[row], largest[row], sizes)
            _collect(x[row], sizes, _least(sizes, indices.shape[1]), indices[row], values[row])


@compiled
def _quantise(row: NDArray, largest: np.float32, sizes: NDArray) -> None:
    """|q| of every entry."""
    for column in range(row.size):
        sizes[column] = np.int8(abs(np.rint(row[column] / largest * np.float32(127))))


@compiled
def _least(sizes: NDArray, winners: int) -> int:
    """The largest size that at least `winners` entries reach, 1 where none is: whoever is larger wins, of those of this size the first."""
    low, high = 1, 127
    while low < high:
        middle = (low + high + 1) // 2
        if _reach(sizes, np.int8(middle)) >= winners:
            low = middle
        else:
            high = middle - 1
    return low


@compiled
def _reach(sizes: NDArray, size: np.int8) -> int:
    """How many entries are at least this large; counted in bytes, as far as those reach, since more of them are added at once."""
    count = 0
    for start in range(0, sizes.size, PART):
        few = np.int8(0)
        for other in sizes[start : start + PART]:
            few = np.int8(few + np.int8(other >= size))
        count += int(few)
    return count


@compiled
def _collect(row: NDArray, sizes: NDArray, least: int, indices: NDArray, values: NDArray) -> None:
    """Write the winners in the order of their indices."""
    spare = indices.size - _reach(sizes, np.int8(least + 1)) if least < 127 else indices.size  # places for the smallest of them
    used = 0
    for start in range(0, row.size, PART):
        if _reach(sizes[start : start + PART], np.int8(least)):
            for column in range(start, min(start + PART, row.size)):
                size = sizes[column]
                if size > least or (size == least and spare > 0):
                    spare -= size == least
                    indices[used], values[used] = column, size if row[column] > 0 else -size
                    used += 1
