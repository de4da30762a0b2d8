"""A sparse key: the few active dimensions of a trace in a large space, each with a small integer value.

Values are integers so that every implementation of a comparison finds the same traces.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from hippo_core.errors import LabError

WIDEST = 2**31 - 1  # the most dimensions that an int32 can number


@dataclass(frozen=True, slots=True, eq=False)
class SparseKey:
    """A sparse key with K active dimensions. Its arrays are read-only. LabError where indices or values are no such numbers, or there are
    none."""

    indices: NDArray[np.int32]  # [K], ascending, from 0 to dims - 1
    values: NDArray[np.int8]  # [K], none of them 0
    dims: int  # how many dimensions the space has

    def __post_init__(self) -> None:
        if not 1 <= self.dims <= WIDEST:
            raise LabError(f"a key has from 1 to {WIDEST} dimensions, got {self.dims}")
        indices, values = integers(self.indices, np.int32, "indices"), integers(self.values, np.int8, "values")
        _check(indices, values, self.dims)
        for name, array in (("indices", indices), ("values", values)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def unpadded(cls, indices: ArrayLike, values: ArrayLike, dims: int) -> "SparseKey":
        """The key of a code's row that is padded with indices of -1."""
        winners = np.asarray(indices) != -1
        return cls(np.asarray(indices)[winners], np.asarray(values)[winners], dims)

    @classmethod
    def of_dense(cls, row: Sequence[float]) -> "SparseKey":
        """The key with this dense form. LabError for an entry that is not a whole number."""
        values = np.asarray(row)
        winners = np.flatnonzero(values).astype(np.int32)
        return cls(winners, values[winners], len(values))

    @classmethod
    def union(cls, keys: "Sequence[SparseKey]") -> "SparseKey":
        """The key that has, in each dimension, the largest value of these keys, signs apart; the key itself if there is one."""
        if len(keys) == 1:
            return keys[0]
        rows = np.array([key.dense() for key in keys])
        return cls.of_dense(np.take_along_axis(rows, np.abs(rows).argmax(0)[None], 0)[0].tolist())

    def dense(self) -> list[float]:
        """The values of all dimensions; most of them are 0."""
        row = np.zeros(self.dims)
        row[self.indices] = self.values
        return row.tolist()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SparseKey) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[int, bytes, bytes]:
        return self.dims, self.indices.tobytes(), self.values.tobytes()


def integers(values: ArrayLike, kind: type[np.signedinteger[Any]], name: str) -> NDArray[Any]:
    """A copy of values as one row of an integer type. LabError where they are no row of such numbers."""
    array = np.array(values)
    if array.dtype == kind and array.ndim == 1:
        return array
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise LabError(f"a key's {name} are one row of numbers, got {array.ndim} axes of {array.dtype}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise LabError(f"a key's {name} hold NaN or infinity: what the key was made of is broken; mend the encoder's input")
    limits = np.iinfo(kind)
    if len(array) and ((array != np.floor(array)).any() or array.min() < limits.min or array.max() > limits.max):
        raise LabError(f"a key's {name} are whole numbers from {limits.min} to {limits.max}; quantise them first")
    return array.astype(kind)


def _check(indices: NDArray[np.int32], values: NDArray[np.int8], dims: int) -> None:
    if len(indices) != len(values):
        raise LabError(f"a key has one value an index, got {len(indices)} indices and {len(values)} values")
    if not len(indices):
        raise LabError("a key has no winners: it resembles nothing and could never be recalled; mend the encoder's input")
    if indices[0] < 0 or indices[-1] >= dims or not (indices[1:] > indices[:-1]).all():
        raise LabError(f"a key's indices ascend within 0 ... {dims - 1}, without repeats")
    if not values.all():
        raise LabError("a key's values are not 0; leave out the indices of zeros")


def cosines(left: Sequence[SparseKey], right: Sequence[SparseKey]) -> NDArray[np.float64]:
    """The cosines of all pairs of keys of one space [left, right], float64, rounded to 12 decimals. LabError where the keys have different
    numbers of dimensions."""
    if not left or not right:
        return np.zeros((len(left), len(right)))
    return np.round((_rows(left) @ _rows(right).T).toarray(), 12)


def _rows(keys: Sequence[SparseKey]) -> csr_array:
    """The keys as rows of a matrix, each scaled to length 1."""
    if len({key.dims for key in keys}) > 1:
        raise LabError(f"keys of one space were expected, got {sorted({key.dims for key in keys})} dimensions")
    values = [key.values.astype(np.float64) for key in keys]
    starts = np.cumsum([0, *map(len, values)])
    data = np.concatenate([row / np.linalg.norm(row) for row in values])
    return csr_array((data, np.concatenate([key.indices for key in keys]), starts), shape=(len(keys), keys[0].dims))


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
