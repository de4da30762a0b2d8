"""Cells: of each unit the rows that won it, in pages, each row with the signs of its numbers; numba.

A page holds up to PAGE rows of one unit and names the page before it. How many signs differ (Charikar 2002, section 3) says who is near;
of these the numbers are compared.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hippo_core.kernels.compiled import compiled

PAGE = 64
SHARE, LEAST = 16, 128  # units compared by their numbers: so many times those that win, and at least so many


class Pages(NamedTuple):
    """`rows` int32 [P, PAGE], the `signs` uint64 [P, PAGE, W] of each, and the page `before` int32 [P], -1 for none."""

    rows: NDArray
    signs: NDArray
    before: NDArray


class Units(NamedTuple):
    """A `table` int8 [U, D], its `lengths` [U], and the `signs` uint64 [U, W]."""

    table: NDArray
    lengths: NDArray
    signs: NDArray


class Cells(NamedTuple):
    """Of each unit the `last` page int32 [U], -1 for none, and how many rows it has, `counts` int32 [U]."""

    last: NDArray
    counts: NDArray


def signs_of(vectors: NDArray[np.int8]) -> NDArray[np.uint64]:
    """The signs of vectors [N, D], 64 to a number, uint64 [N, W]; 1 stands for more than 0."""
    width = -(-vectors.shape[1] // 64) * 8
    packed = np.zeros((len(vectors), width), np.uint8)
    bits = np.packbits(vectors > 0, axis=1)
    packed[:, : bits.shape[1]] = bits
    return packed.view(np.uint64)


def emptied(units: int, width: int) -> tuple[Cells, Pages]:
    """Cells of so many units with no rows, and no pages, for vectors of so many numbers."""
    cells = Cells(np.full(units, -1, np.int32), np.zeros(units, np.int32))
    return cells, Pages(np.empty((0, PAGE), np.int32), np.empty((0, PAGE, -(-width // 64)), np.uint64), np.empty(0, np.int32))


@compiled
def append_rows(rows: NDArray, won: NDArray, signs: NDArray, cells: Cells, pages: Pages, used: int) -> int:
    """Append rows int32 [N] to the cells of the units that they won, int64 [N, K]; returns how many pages are used then."""
    for number in range(won.shape[0]):
        for unit in won[number]:
            slot = cells.counts[unit] % PAGE
            if slot == 0:
                pages.before[used] = cells.last[unit]
                cells.last[unit] = used
                used += 1
            page = cells.last[unit]
            pages.rows[page, slot] = rows[number]
            pages.signs[page, slot] = signs[number]
            cells.counts[unit] += 1
    return used


@compiled
def near(units: NDArray, signs: NDArray, cells: Cells, pages: Pages, allowed: NDArray, count: int) -> NDArray:
    """Rows in the cells of these units [K] whose signs differ least from `signs` uint64 [W], at least `count` where there are so many. They
    come in no order, and twice where two cells have them. `allowed` bool [N] says which may be found."""
    total = 0
    for unit in units:
        total += cells.counts[unit]
    rows, differing = np.empty(total, np.int32), np.empty(total, np.int16)
    histogram = np.zeros(64 * signs.size + 1, np.int64)
    seen = 0
    for unit in units:
        page, filled = cells.last[unit], (cells.counts[unit] - 1) % PAGE + 1
        while page >= 0:
            for slot in range(filled):
                rows[seen], differing[seen] = pages.rows[page, slot], differ(pages.signs[page, slot], signs)
                histogram[differing[seen]] += 1
                seen += 1
            page, filled = pages.before[page], PAGE
    candidates, kept, most = np.empty(0, np.int32), 0, -1
    while kept < count and most + 1 < histogram.size:
        most = least(histogram, count if most < 0 else 2 * candidates.size)
        candidates, kept = np.empty(histogram[: most + 1].sum(), np.int32), 0
        for number in range(total):
            if differing[number] <= most and allowed[rows[number]]:
                candidates[kept] = rows[number]
                kept += 1
    return candidates[:kept]


@compiled
def least(histogram: NDArray, count: int) -> int:
    """Up to how many differing signs so many rows have, or all where there are fewer."""
    most, within = -1, 0
    while within < count and most + 1 < histogram.size:
        most += 1
        within += histogram[most]
    return most


@compiled
def differ(signs: NDArray, other: NDArray) -> int:
    """How many signs differ, uint64 [W] and [W]."""
    total = 0
    for word in range(other.size):
        total += count_bits(signs[word] ^ other[word])
    return int(total)


@compiled
def count_bits(word: np.uint64) -> np.int64:
    """How many bits of 64 are set."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def best(table: NDArray, lengths: NDArray, rows: NDArray, cue: NDArray, ids: NDArray, scores: NDArray) -> None:
    """Put the best of `rows` into `ids` and `scores` [top], best first, of equals the lower row first; free places have -1 and -inf. A
    score is the product of a cue int16 [D] with a row of `table` int8 [N, D] over its length."""
    for row in rows:
        total = np.int32(0)
        for dim in range(cue.size):
            total += np.int32(table[row, dim]) * np.int32(cue[dim])
        score = float(total / lengths[row])
        if score > scores[-1] or (score == scores[-1] and row < ids[-1]):
            insert(row, score, ids, scores)


@compiled
def insert(row: int, score: float, ids: NDArray, scores: NDArray) -> None:
    """Insert a row that is better than the last at its rank, unless it is there already."""
    target = ids.size - 1
    while target > 0 and (scores[target - 1] < score or (scores[target - 1] == score and ids[target - 1] > row)):
        target -= 1
    if target > 0 and ids[target - 1] == row:
        return
    for slot in range(ids.size - 1, target, -1):
        ids[slot], scores[slot] = ids[slot - 1], scores[slot - 1]
    ids[target], scores[target] = row, score


@compiled
def code(vectors: NDArray, signs: NDArray, units: Units, won: NDArray) -> None:
    """Fill `won` int64 [N, K] with the K units that point most as vectors int8 [N, D] do, best first, of those whose signs differ least."""
    count, every = max(SHARE * won.shape[1], LEAST), units.signs.shape[0]
    differing, weights = np.empty(every, np.int16), np.empty(won.shape[1], np.float64)
    for row in range(vectors.shape[0]):
        histogram = np.zeros(64 * units.signs.shape[1] + 1, np.int64)
        for unit in range(every):
            differing[unit] = differ(units.signs[unit], signs[row])
            histogram[differing[unit]] += 1
        near_by = np.flatnonzero(differing <= least(histogram, count))
        won[row], weights[:] = -1, -np.inf
        best(units.table, units.lengths, near_by, vectors[row].astype(np.int16), won[row], weights)


@compiled
def search(
    cues: NDArray,
    signs: NDArray,
    units: Units,
    probes: int,
    cells: Cells,
    pages: Pages,
    table: NDArray,
    lengths: NDArray,
    allowed: NDArray,
    count: int,
    ids: NDArray,
    scores: NDArray,
) -> None:
    """Fill `ids` and `scores` [B, top] for cues int8 [B, D]: the best of the `count` nearest by signs in the cells of the `probes` units
    that a cue wins."""
    won = np.empty((1, probes), np.int64)
    for cue in range(cues.shape[0]):
        code(cues[cue : cue + 1], signs[cue : cue + 1], units, won)
        best(table, lengths, near(won[0], signs[cue], cells, pages, allowed, count), cues[cue].astype(np.int16), ids[cue], scores[cue])


@compiled
def compare_all(cues: NDArray, table: NDArray, lengths: NDArray, allowed: NDArray, ids: NDArray, scores: NDArray) -> None:
    """Fill `ids` and `scores` [B, top] for cues int8 [B, D]: the best of all rows that are `allowed`."""
    rows = np.flatnonzero(allowed)
    for cue in range(cues.shape[0]):
        best(table, lengths, rows, cues[cue].astype(np.int16), ids[cue], scores[cue])
