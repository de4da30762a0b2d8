"""Postings: for each dimension the rows that have it, in blocks of rows; numba.

New rows go to the last block as *chains*, one a dimension, each posting naming the one before it: a row costs as many writes as it has
entries. A chain is slow to follow, for its postings lie apart, so `settle` copies a block's chains into sorted *runs*.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hippo_core.kernels.compiled import compiled


class Runs(NamedTuple):
    """Of block b and dimension d the postings from bases[b] + starts[b, d] to bases[b] + starts[b, d + 1].

    `bases` int64 [blocks + 1], `starts` int32 [blocks, dims + 1], `postings` int32 [P]: in the upper 16 bits the row, counted from the
    block's first, in the lower ones the weight.
    """

    bases: NDArray
    starts: NDArray
    postings: NDArray


class Chains(NamedTuple):
    """Of the last block and dimension d the link heads[d], then the one that it names, and so on until -1.

    `heads` int32 [dims], `dims` int32 [P], `links` int64 [P]: in the upper 32 bits the link before it, in the lower ones the posting.
    Following a chain misses the cache once a posting.
    """

    heads: NDArray
    dims: NDArray
    links: NDArray


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
