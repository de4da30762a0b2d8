"""An index of dense vectors by a sparse code that is learnt from them: rows are added and removed, and the nearest are recalled.

A row wins WINS units, a cue `probes` of them. Of the rows that share a unit with the cue the `compared` whose signs differ least from its
own are compared with it, number by number.
"""

from collections.abc import Sequence
from math import log2, sqrt
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hippo_core.errors import LabError
from hippo_core.kernels.sparse_recall.index import grown
from hippo_core.retrieval.neighbours.cells import PAGE, Pages, Units, append_rows, code, compare_all, emptied, search, signs_of
from hippo_core.retrieval.vectors import lengths_of

LEARN, AGAIN = 16_384, 2  # rows from which units are learnt, and again when there are so many times as many
AT_ONCE = 4096  # vectors that are coded together
WINS, SAMPLE = 2, 8  # units that a row wins; rows a unit that it is learnt from


class Nearest(NamedTuple):
    """For each cue the nearest rows, int64 [B, top], -1 where there are fewer, and their cosines float64 [B, top], -inf there."""

    ids: NDArray[np.int64]
    cosines: NDArray[np.float64]


class NeighbourIndex:
    """Vectors int8 [N, width], numbered from 0 as they are added; a removed row keeps its number and is not recalled any more.

    Recalls may run side by side; nothing may run beside `add` and `remove`. Where fewer than LEARN rows may be recalled, all are looked at.
    The add that brings LEARN rows, or AGAIN times as many as the last time, learns the units anew and codes all rows once more.

    Args:
        width: numbers of a vector, of which the direction alone counts.
        probes: units that a cue wins: more find more and take longer.
        compared: rows that are compared with a cue number by number; the better share by signs alone.
        seed: of which rows units are learnt from.
    """

    def __init__(self, width: int, probes: int = 32, compared: int = 256, seed: int = 0) -> None:
        if min(width, probes, compared) < 1:
            raise LabError(f"an index expects width, probes and compared of at least 1, got {width}, {probes} and {compared}")
        self.width, self.probes, self.compared, self.seed = width, probes, compared, seed
        self._rows = self._living = self._learned_from = 0  # rows, those not removed, and how many of these units were learnt from
        self._table, self._lengths, self._alive = np.empty((0, width), np.int8), np.empty(0), np.empty(0, np.bool_)
        self._units = units_of(np.empty((0, width), np.int8))
        self._cells, self._pages, self._used = *emptied(0, width), 0  # `_used`: how many pages

    def __len__(self) -> int:
        """The number of rows that were ever added."""
        return self._rows

    def add(self, vectors: NDArray[np.int8]) -> range:
        """Add vectors [N, width]; returns their rows. LabError for what is no such array."""
        self._check(vectors, "vectors to add")
        first, self._rows = self._rows, self._rows + len(vectors)
        self._table, self._lengths, self._alive = (grown(part, self._rows) for part in (self._table, self._lengths, self._alive))
        added = slice(first, self._rows)
        self._table[added], self._lengths[added], self._alive[added] = vectors, lengths_of(vectors), True
        self._living += len(vectors)
        if self._living >= max(LEARN, AGAIN * self._learned_from):
            self._learn()
        elif self._learned_from:
            self._insert(np.arange(first, self._rows))
        return range(first, self._rows)

    def remove(self, rows: NDArray[np.integer] | Sequence[int]) -> None:
        """Exclude these rows from recall; removing one twice is fine. LabError for a row that was never added, or what is no row."""
        numbers = np.asarray(rows)
        if numbers.size and (numbers.dtype.kind not in "iu" or numbers.min() < 0 or numbers.max() >= self._rows):
            raise LabError(
                f"rows to remove must be whole numbers from 0 to {self._rows - 1}, got {numbers.dtype} {numbers[:3].tolist()} ..."
            )
        numbers = np.unique(numbers.astype(np.int64))
        self._living -= int(self._alive[numbers].sum())
        self._alive[numbers] = False

    def recall(self, cues: NDArray[np.int8], top: int, mask: NDArray[np.bool_] | None = None, exact: bool = False) -> Nearest:
        """The `top` rows nearest to each cue [B, width] by their cosine, of equals the first. `mask` bool [len(self)] says which rows may
        be recalled. `exact`: look at all of these, so that none is missed."""
        self._check(cues, "cues")
        if top < 1:
            raise LabError(f"recall expects top of at least 1, got {top}")
        if mask is not None and (mask.dtype != np.bool_ or mask.shape != (self._rows,)):
            raise LabError(f"the mask must be bool [{self._rows}], one entry a row, got {mask.dtype} {[*mask.shape]}")
        allowed = self._alive[: self._rows] if mask is None else self._alive[: self._rows] & mask
        ids, products = np.full((len(cues), top), -1, np.int64), np.full((len(cues), top), -np.inf)
        if exact or (self._living if mask is None else int(np.count_nonzero(allowed))) < LEARN:
            compare_all(cues, self._table, self._lengths, allowed, ids, products)
        else:
            asked = min(self.probes, len(self._units.table)), self._cells, self._pages
            rows = self._table, self._lengths, allowed
            search(cues, signs_of(cues), self._units, *asked, *rows, max(top, self.compared), ids, products)
        return Nearest(ids, products / lengths_of(cues)[:, None])

    def _learn(self) -> None:
        """Learn units from the rows that are left and put these into new cells."""
        living = np.flatnonzero(self._alive[: self._rows])
        count = 2 ** round(log2(8 * sqrt(len(living))))
        drawn = np.random.default_rng(self.seed).choice(living, min(SAMPLE * count, len(living)), replace=False)
        self._units, self._learned_from = units_of(learn_units(self._table[drawn], count)), len(living)
        self._cells, self._pages, self._used = *emptied(count, self.width), 0
        for start in range(0, len(living), AT_ONCE):
            self._insert(living[start : start + AT_ONCE])

    def _insert(self, rows: NDArray[np.int64]) -> None:
        """Put rows, ascending, into the cells of the units that they win."""
        vectors, won = self._table[rows], np.empty((len(rows), WINS), np.int64)
        signs = signs_of(vectors)
        code(vectors, signs, self._units, won)
        capacity = self._used + WINS * len(rows) // PAGE + len(self._cells.counts) + 1
        self._pages = Pages(*(grown(part, capacity) for part in self._pages))
        self._used = append_rows(rows.astype(np.int32), won, signs, self._cells, self._pages, self._used)

    def _check(self, vectors: NDArray[np.int8], what: str) -> None:
        if vectors.dtype != np.int8 or vectors.ndim != 2 or vectors.shape[1] != self.width:
            raise LabError(f"{what} must be int8 [N, {self.width}], got {vectors.dtype} {[*vectors.shape]}; `vectors.quantised` makes them")


def units_of(table: NDArray[np.int8]) -> Units:
    """Units int8 [U, D] as kernels read them."""
    return Units(table, lengths_of(table), signs_of(table))


def learn_units(vectors: NDArray[np.int8], count: int) -> NDArray[np.int8]:
    """`count` units int8 [U, D] for vectors [N, D] in an order that says nothing; a unit that wins none stays as it was.

    Each becomes the mean direction of the vectors that it wins (spherical k-means: Dhillon and Modha 2001). Sums of whole numbers below
    2^24 are exact in float32 in whatever order, so every machine learns the same units.
    """
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
