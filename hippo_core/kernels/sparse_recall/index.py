"""An inverted index over sparse codes: rows are added, one by one or many at once, and recalled exactly.

Why not a table of the cue that every row looks into: that reads the whole store, the postings only what a cue shares with it. For 1,000
rows of 32 entries in 8,192 dimensions, the worst case for postings, a cue took 1 us against 73 us.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hippo_core.errors import LabError
from hippo_core.kernels.code import WEIGHTS, Code, check_code
from hippo_core.kernels.sparse_recall import Recalled, check_recall
from hippo_core.kernels.sparse_recall.walk import Chains, Runs, add_up, chain, settle, walk

BLOCK = 65_536  # rows: as many as 16 bits can number; their sums stay in the cache of a core
FEW = 512  # rows of a block that are worth settling


class SparseIndex:
    """Codes over `dims` dimensions with values of `dtype`, int8 or int16; rows are numbered from 0 as they are added, for good.

    Recalls change nothing and may run side by side; nothing may run beside `add`.
    """

    def __init__(self, dims: int, dtype: torch.dtype = torch.int8) -> None:
        if dims < 1 or dtype not in WEIGHTS:
            raise LabError(f"an index expects at least 1 dimension and int8 or int16 values, got {dims} and {dtype}")
        self.dims, self.dtype = dims, dtype
        self._every, self._rows = np.empty(0, np.bool_), 0  # the mask that allows every row
        self._runs = Runs(np.zeros(1, np.int64), np.empty((0, dims + 1), np.int32), np.empty(0, np.int32))
        self._chains = Chains(np.full(dims, -1, np.int32), np.empty(0, np.int32), np.empty(0, np.int64))
        self._links = self._settled = 0  # links in use; rows of the last block that are in runs
        self._largest = 0  # sum of a row's |values|

    def __len__(self) -> int:
        """The number of rows."""
        return self._rows

    def add(self, codes: Code) -> range:
        """Add codes [N, K], whatever K; returns their rows. LabError for another dtype of values or a dimension that is not there."""
        check_code(codes, "codes to add")
        indices, values = codes.indices.contiguous().numpy(), codes.values.contiguous().numpy()
        if codes.values.dtype != self.dtype or (indices.size and indices.max() >= self.dims):
            actual = f"{codes.values.dtype} and dimension {indices.max(initial=-1)}"
            raise LabError(
                f"this index takes {self.dtype} values of dimensions below {self.dims}, got {actual}; was it made by another encoder?"
            )
        first, start = self._rows, 0
        while start < len(indices):
            end = min(len(indices), start + BLOCK - self._rows % BLOCK)
            self._append(indices[start:end], values[start:end])
            start = end
        return range(first, self._rows)

    def recall(self, cue: Code, top: int, mask: Tensor | None = None) -> Recalled:
        """As `sparse_recall` of these rows: ids and scores int64 [B, top]. `mask` bool [len(self)] is True where a row may be recalled.

        What a cue has in dimensions that the index does not have counts for nothing.
        """
        check_recall(cue, top, mask, self._rows)
        allowed = self._every[: self._rows] if mask is None else mask.contiguous().numpy()
        indices, values = cue.indices.contiguous().numpy(), cue.values.contiguous().numpy()
        ids, scores = np.empty((2, len(indices), top), np.int64)
        sums = np.zeros(min(BLOCK, self._rows), np.int32 if fits(values, self._largest) else np.int64)
        walk(indices, values, self._runs, self._chains, allowed, sums, BLOCK, ids, scores)
        return Recalled(torch.from_numpy(ids), torch.from_numpy(scores))

    def scores(self, cue: Code, covered: bool = False) -> NDArray[np.int64]:
        """The score of every row for each cue, int64 [B, len(self)]. `covered`: in place of the sum of products the sum of the cue's
        squares in dimensions in which the row is above 0. LabError for codes that are none."""
        check_recall(cue, 1, None, self._rows)
        scores = np.zeros((len(cue.indices), self._rows), np.int64)
        if self._rows:
            code = cue.indices.contiguous().numpy(), cue.values.contiguous().numpy()
            add_up(*code, self._runs, self._chains, BLOCK, covered, scores)
        return scores

    def _append(self, indices: NDArray, values: NDArray) -> None:
        """Chain rows that fit into the last block, and settle it when as many are chained as settled, or it is full."""
        offset = self._rows % BLOCK
        if not offset:
            self._open_block()
        self._chains = Chains(self._chains.heads, *(grown(part, self._links + indices.size) for part in self._chains[1:]))
        self._links, largest = chain(indices, values, offset, self._chains, self._links)
        self._every = grown(self._every, self._rows + len(indices))
        self._every[self._rows : self._rows + len(indices)] = True
        self._rows, self._largest = self._rows + len(indices), max(self._largest, largest)
        rows = offset + len(indices)
        if rows == BLOCK or rows - self._settled >= max(FEW, self._settled):
            self._settle(rows)

    def _open_block(self) -> None:
        bases, starts, postings = self._runs
        starts = grown(starts, len(bases))
        starts[len(bases) - 1] = 0
        self._runs, self._settled = Runs(np.append(bases, bases[-1]), starts, postings), 0

    def _settle(self, rows: int) -> None:
        """Turn the chains of the last block, which holds so many rows, into runs."""
        bases, starts, postings = self._runs
        block = len(bases) - 2
        old = postings[bases[block] : bases[block + 1]].copy()
        self._runs = Runs(bases, starts, grown(postings, bases[-1] + self._links))
        bases[-1] = bases[block] + settle(starts[block].copy(), old, self._chains, self._links, self._runs, block)
        self._links, self._settled = 0, rows


def grown(array: NDArray, size: int) -> NDArray:
    """The array if it has `size` entries, else a copy in one of twice that size."""
    if len(array) >= size:
        return array
    larger = np.empty((2 * size, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def fits(values: NDArray, largest: int) -> bool:
    """Whether no sum of products of cues [B, K'] with rows whose |values| add up to at most `largest` leaves int32."""
    most = values.shape[1] << 8 * values.itemsize - 1
    if most * largest >= 2**31 and values.size:  # the cues may be smaller than their type allows
        most = int(np.abs(values.astype(np.int64)).sum(1).max())
    return most * largest < 2**31
