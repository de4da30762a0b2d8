"""One recall by one thread or by several, which share out the cues, or the store's blocks where there is one cue."""

from functools import partial
from itertools import pairwise
from threading import Thread
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hippo_core.kernels.sparse_recall.walk import Chains, Runs, walk

WORTH = 500_000  # rows times cues beyond which another thread pays for its start


class Store(NamedTuple):
    """Postings of N rows in blocks of `size`, which rows are there, `alive` bool [N], and the largest sum of a row's |values|."""

    runs: Runs
    chains: Chains
    alive: NDArray
    size: int
    largest: int


def search(store: Store, indices: NDArray, values: NDArray, mask: NDArray, top: int, threads: int) -> tuple[NDArray, NDArray]:
    """Ids and scores int64 [B, top] for cues int32 [B, K'] and values [B, K'], by at most so many threads."""
    cues, rows = len(indices), len(store.alive)
    blocks = -(-rows // store.size)
    if threads < 2 or cues * rows <= WORTH:
        return _find(store, mask, top, indices, values, (0, blocks))
    find = partial(_find, store, mask, top)
    if cues > 1:
        results = at_once(find, [(indices[a:b], values[a:b], (0, blocks)) for a, b in parts(cues, threads)])
        return np.concatenate([ids for ids, _ in results]), np.concatenate([scores for _, scores in results])
    return merged(at_once(find, [(indices, values, between) for between in parts(blocks, threads)]), top)


def _find(store: Store, mask: NDArray, top: int, indices: NDArray, values: NDArray, blocks: tuple[int, int]) -> tuple[NDArray, NDArray]:
    runs, chains, alive, size, largest = store
    ids, scores = np.empty((2, len(indices), top), np.int64)
    sums = np.zeros(min(size, len(alive)), np.int32 if fits(values, largest) else np.int64)
    walk(indices, values, blocks, runs, chains, alive, mask, sums, size, ids, scores)
    return ids, scores


def fits(values: NDArray, largest: int) -> bool:
    """Whether no sum of products of cues [B, K'] with rows whose |values| add up to at most `largest` leaves int32."""
    most = values.shape[1] << 8 * values.itemsize - 1
    if most * largest >= 2**31 and values.size:  # the cues may be smaller than their type allows
        most = int(np.abs(values.astype(np.int64)).sum(1).max())
    return most * largest < 2**31


def parts(count: int, threads: int) -> list[tuple[int, int]]:
    """`count` things in order as (first, end) for each of the threads, none of them without work."""
    bounds = [count * number // min(threads, count) for number in range(min(threads, count) + 1)]
    return list(pairwise(bounds))


def at_once(find: partial, jobs: list[tuple]) -> list[tuple[NDArray, NDArray]]:
    """What `find` returns for each job: the first is done here, the others by threads of their own."""
    results: list = [None] * len(jobs)

    def do(number: int) -> None:
        results[number] = find(*jobs[number])

    others = [Thread(target=do, args=(number,)) for number in range(1, len(jobs))]
    for other in others:
        other.start()
    do(0)
    for other in others:
        other.join()
    return results


def merged(results: list[tuple[NDArray, NDArray]], top: int) -> tuple[NDArray, NDArray]:
    """The best of several finds for the same cues; each one's rows stand behind those of the one before it."""
    ids, scores = (np.concatenate([part[which] for part in results], axis=1) for which in (0, 1))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    return np.take_along_axis(ids, order, 1), np.take_along_axis(scores, order, 1)
