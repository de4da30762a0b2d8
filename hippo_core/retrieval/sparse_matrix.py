"""Texts as rows of a sparse integer code, and what a cue's code has in common with them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.integer]


@dataclass(frozen=True)
class SparseMatrix:
    """N codes in a space of `dims`: `indices` int32 [N, K], padded with -1, and `values` int16 [N, K].

    `unit`: the length of every row, where rows are parts of longer ones (None: as long as their values make them).
    """

    indices: NDArray[np.int32]
    values: NDArray[np.int16]
    dims: int
    unit: float | None = None

    def one(self, row: int) -> "SparseMatrix":
        """One of them, by itself."""
        return SparseMatrix(self.indices[row : row + 1], self.values[row : row + 1], self.dims, self.unit)

    def some(self, rows: NDArray[np.int64]) -> "SparseMatrix":
        """These rows."""
        return SparseMatrix(self.indices[rows], self.values[rows], self.dims, self.unit)

    @cached_property
    def norms(self) -> NDArray[np.float64]:
        """The length of each row, float64 [N]; 1 for a row of nothing, whose products are 0 anyway."""
        return lengths(self.values) if self.unit is None else np.full(len(self.values), self.unit)

    def cosines(self, rows: NDArray[np.int64], cue: "SparseMatrix") -> NDArray[np.float64]:
        """The cosine of each of `rows` with the one code of `cue`, which may hold more than this space does."""
        dots = (self._laid(cue)[self.indices[rows]] * self.values[rows]).sum(1)
        return dots / (self.norms[rows] * cue.norms[0])

    def covered(self, rows: NDArray[np.int64], cue: "SparseMatrix") -> NDArray[np.float64]:
        """How much of the one code of `cue`, a share of its squared length, lies where each of `rows` has anything: what else a row says
        does not make it less, as it does a cosine."""
        there = np.where(self.values[rows] > 0, self._laid(cue)[self.indices[rows]] ** 2, 0).sum(1)
        return there / cue.norms[0] ** 2

    def _laid(self, cue: "SparseMatrix") -> NDArray[np.int64]:
        """The cue with all dimensions of this space, and 0 in one more place, that of padding."""
        table = np.zeros(self.dims + 1, dtype=np.int64)
        table[cue.indices[0][cue.indices[0] >= 0]] = cue.values[0][cue.indices[0] >= 0]
        return table


def lengths(values: Ints) -> NDArray[np.float64]:
    """Euclidean lengths of rows of whole numbers; 1 where all are 0."""
    roots = np.sqrt((values.astype(np.int64) ** 2).sum(1).astype(np.float64))
    return np.where(roots > 0, roots, 1.0)
