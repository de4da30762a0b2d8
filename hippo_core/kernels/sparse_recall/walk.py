"""The walk through postings: a cue adds its products to the rows of a block, then the best of them are kept; numba."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hippo_core.kernels.compiled import compiled


class Runs(NamedTuple):
    """Of block b and dimension d the postings from bases[b] + starts[b, d] to bases[b] + starts[b, d + 1]."""

    bases: NDArray  # int64 [blocks + 1]
    starts: NDArray  # int32 [blocks, dims + 1]
    postings: NDArray  # int32 [P]: in the upper 16 bits the row, counted from the block's first, in the lower ones the weight


class Chains(NamedTuple):
    """Of the last block and dimension d the link heads[d], then the one that it names, and so on until -1. Following a chain misses the
    cache once a posting."""

    heads: NDArray  # int32 [dims]
    dims: NDArray  # int32 [P]
    links: NDArray  # int64 [P]: in the upper 32 bits the link before it, in the lower ones the posting


@compiled
def chain(indices: NDArray, values: NDArray, first: int, chains: Chains, used: int) -> tuple[int, int]:
    """Put codes [N, K] behind the `used` links, as the block's rows `first`, `first` + 1, ...

    Returns how many links there are and the largest sum of a row's |values|.
    """
    largest = 0
    for number in range(indices.shape[0]):
        mass = 0
        for column in range(indices.shape[1]):
            dim, weight = indices[number, column], np.int64(values[number, column])
            if dim >= 0:
                chains.dims[used] = dim
                chains.links[used] = np.int64(chains.heads[dim]) << 32 | (first + number) << 16 | (weight & 0xFFFF)
                chains.heads[dim] = used
                mass += abs(weight)
                used += 1
        largest = max(largest, mass)
    return used, int(largest)


@compiled
def settle(old_starts: NDArray, old: NDArray, chains: Chains, used: int, runs: Runs, block: int) -> int:
    """Write a block's runs: of each dimension its old run, then what is chained, `used` links; the chains are empty then.

    Returns how many postings the runs have. The links are read in order and sorted by counting: no chain is followed.
    """
    starts, postings = runs.starts[block], runs.postings[runs.bases[block] :]
    counts = np.diff(old_starts)
    for link in range(used):
        counts[chains.dims[link]] += 1
    starts[0] = 0
    starts[1:] = np.cumsum(counts)
    free = starts[:-1].copy()
    for dim in range(free.size):
        for number in range(old_starts[dim], old_starts[dim + 1]):
            postings[free[dim]] = old[number]
            free[dim] += 1
    for link in range(used):
        dim = chains.dims[link]
        postings[free[dim]] = np.int32(chains.links[link] & 0xFFFFFFFF)
        free[dim] += 1
    chains.heads[:] = -1
    return starts[-1]


PART = 256  # rows looked at together: most parts hold nobody good enough, which their maximum tells


@compiled
def walk(
    indices: NDArray,
    values: NDArray,
    runs: Runs,
    chains: Chains,
    mask: NDArray,
    sums: NDArray,
    size: int,
    ids: NDArray,
    scores: NDArray,
) -> None:
    """Fill `ids` and `scores` int64 [B, top] with the best rows for cues [B, K'].

    Blocks have `size` rows; a row counts where `mask` bool [N] is true. `sums` [size] is 0 and is 0 again at the end.
    """
    ids[:], scores[:] = -1, 0
    for block in range(-(-mask.size // size)):
        first = block * size
        postings = runs.postings[runs.bases[block] : runs.bases[block + 1]]
        for cue in range(indices.shape[0]):
            for column in range(indices.shape[1]):
                dim, factor = indices[cue, column], values[cue, column]
                if dim >= 0 and dim < chains.heads.size:
                    _follow_run(postings[runs.starts[block, dim] : runs.starts[block, dim + 1]], factor, sums)
                    if first + size >= mask.size:
                        _follow_chain(int(chains.heads[dim]), chains, factor, sums)
            _keep(sums[: min(size, mask.size - first)], first, mask, ids[cue], scores[cue])


@compiled
def add_up(indices: NDArray, values: NDArray, runs: Runs, chains: Chains, size: int, covered: bool, scores: NDArray) -> None:
    """Fill `scores` int64 [B, N], which are 0, with the score of every row for cues [B, K']. `covered`: a row's value counts as 1 where it
    is above 0, and what the cue has there is squared."""
    rows = scores.shape[1]
    blocks = -(-rows // size)
    for cue in range(indices.shape[0]):
        for block in range(blocks):
            first = block * size
            postings = runs.postings[runs.bases[block] : runs.bases[block + 1]]
            sums = scores[cue, first : first + size]
            for column in range(indices.shape[1]):
                dim, factor = indices[cue, column], int(values[cue, column])
                if dim >= 0 and dim < chains.heads.size:
                    run = postings[runs.starts[block, dim] : runs.starts[block, dim + 1]]
                    number = int(chains.heads[dim]) if first + size >= rows else -1
                    if covered:
                        _mark_run(run, factor * factor, sums)
                        _mark_chain(number, chains, factor * factor, sums)
                    else:
                        _follow_run(run, factor, sums)
                        _follow_chain(number, chains, factor, sums)


@compiled
def _follow_run(postings: NDArray, factor: int, sums: NDArray) -> None:
    for posting in postings:
        sums[posting >> 16 & 0xFFFF] += factor * np.int16(posting)


@compiled
def _follow_chain(number: int, chains: Chains, factor: int, sums: NDArray) -> None:
    while number >= 0:
        link = chains.links[number]
        sums[link >> 16 & 0xFFFF] += factor * np.int16(link)
        number = link >> 32


@compiled
def _mark_run(postings: NDArray, squared: int, sums: NDArray) -> None:
    for posting in postings:
        if np.int16(posting) > 0:
            sums[posting >> 16 & 0xFFFF] += squared


@compiled
def _mark_chain(number: int, chains: Chains, squared: int, sums: NDArray) -> None:
    while number >= 0:
        link = chains.links[number]
        if np.int16(link) > 0:
            sums[link >> 16 & 0xFFFF] += squared
        number = link >> 32


@compiled
def _keep(sums: NDArray, first: int, mask: NDArray, ids: NDArray, scores: NDArray) -> None:
    """Put the sums that are among the best into `ids` and `scores` [top], sorted, and leave zeros. Rows come in ascending order."""
    for start in range(0, sums.size, PART):
        part = sums[start : start + PART]
        if _largest(part) > scores[-1]:
            for offset in range(part.size):
                row = first + start + offset
                if part[offset] > scores[-1] and mask[row]:
                    _insert(row, part[offset], ids, scores)
        part[:] = 0


@compiled
def _largest(part: NDArray) -> int:
    largest = part[0]
    for index in range(part.size):
        largest = max(largest, part[index])
    return largest


@compiled
def _insert(row: int, score: int, ids: NDArray, scores: NDArray) -> None:
    """Put a row behind all of its score or better; the last one falls out. Free places have score 0."""
    low, high = 0, ids.size - 1
    while low < high:
        middle = (low + high) // 2
        if scores[middle] >= score:
            low = middle + 1
        else:
            high = middle
    for slot in range(ids.size - 1, low, -1):
        ids[slot], scores[slot] = ids[slot - 1], scores[slot - 1]
    ids[low], scores[low] = row, score
