"""Texts as rows of a sparse integer code, and their similarity to a cue's code."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.integer]


@dataclass(frozen=True)
class SparseMatrix:
    """Sparse codes as rows."""

    indices: NDArray[np.int32]  # [rows, K], padded with -1
    values: NDArray[np.int16]  # [rows, K]
    dims: int
    unit: float | None = None  # the length of every row, if rows are parts of longer ones; None: that of its values

    @classmethod
    def of(cls, rows: Sequence[tuple[Sequence[int] | Ints, Sequence[int] | Ints]], dims: int, unit: float | None = None) -> Self:
        """The matrix of rows, each the indices and the values of a code."""
        width = max(1, max((len(indices) for indices, _ in rows), default=1))
        padded_indices = np.full((len(rows), width), -1, dtype=np.int32)
        padded_values = np.zeros((len(rows), width), dtype=np.int16)
        for row, (indices, values) in enumerate(rows):
            padded_indices[row, : len(indices)], padded_values[row, : len(values)] = indices, values
        return cls(padded_indices, padded_values, dims, unit)

    def row_at(self, row: int) -> "SparseMatrix":
        """The matrix of this row alone."""
        return SparseMatrix(self.indices[row : row + 1], self.values[row : row + 1], self.dims, self.unit)

    def some(self, rows: NDArray[np.int64]) -> "SparseMatrix":
        """These rows."""
        return SparseMatrix(self.indices[rows], self.values[rows], self.dims, self.unit)

    @cached_property
    def norms(self) -> NDArray[np.float64]:
        """The length of each row, `(rows,)`, float64; 1 for an empty row, whose products are 0 anyway."""
        return lengths(self.values) if self.unit is None else np.full(len(self.values), self.unit)

    def cosines(self, rows: NDArray[np.int64], cue: "SparseMatrix") -> NDArray[np.float64]:
        """The cosine of each of `rows` with the one code of `cue` [rows]. The cue's length may count terms that this space lacks."""
        dots = (self._laid(cue)[self.indices[rows]] * self.values[rows]).sum(1)
        return dots / (self.norms[rows] * cue.norms[0])

    def covered(self, rows: NDArray[np.int64], cue: "SparseMatrix") -> NDArray[np.float64]:
        """The share of the cue's squared length in dimensions where a row has a positive value, float64 [rows]."""
        there = np.where(self.values[rows] > 0, self._laid(cue)[self.indices[rows]] ** 2, 0).sum(1)
        return there / cue.norms[0] ** 2

    def _laid(self, cue: "SparseMatrix") -> NDArray[np.int64]:
        """The cue as a dense row over this space, with one more dimension of 0 for padding."""
        table = np.zeros(self.dims + 1, dtype=np.int64)
        table[cue.indices[0][cue.indices[0] >= 0]] = cue.values[0][cue.indices[0] >= 0]
        return table


def lengths(values: Ints) -> NDArray[np.float64]:
    """The Euclidean length of each row of integers, `(rows,)`, float64; 1 for a row of zeros."""
    roots = np.sqrt((values.astype(np.int64) ** 2).sum(1).astype(np.float64))
    return np.where(roots > 0, roots, 1.0)
