"""What is compared: our sparse index, numpy's products, faiss' flat index and hnswlib, each behind the same three functions."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from hippo_core.kernels.code import Code
from hippo_core.kernels.kwta import kwta
from hippo_core.kernels.sparse_recall.index import SparseIndex
from hippo_core.retrieval.neighbours.index import NeighbourIndex

TOP, LINKS, BUILDING, SEARCHING = 10, 32, 200, 64  # hnswlib's M, efConstruction, efSearch
CHUNK = 16  # cues of which numpy holds all scores at a time


@dataclass(frozen=True)
class Method:
    """A filled index: ids [B, TOP] of the best rows for the cues from `first` to `end`, by so many threads, which are set before."""

    name: str
    ids: Callable[[int, int, int], NDArray]
    set_threads: Callable[[int], object] = threadpool_limits


def ours(index: SparseIndex, cues: Code) -> Method:
    alone = [Code(*parts) for parts in zip(cues.indices.split(1), cues.values.split(1), strict=True)]  # as the coder hands them over

    def ids(first: int, end: int, _: int) -> NDArray:
        cue = alone[first] if end == first + 1 else Code(cues.indices[first:end], cues.values[first:end])
        return index.recall(cue, TOP).ids.numpy()

    return Method("ours", ids)


def by_numpy(rows: NDArray, cues: NDArray) -> Method:
    """All scores by a matrix product, the best by argpartition, then in order."""
    top = min(TOP, len(rows))

    def best(some: NDArray) -> NDArray:
        scores = some @ rows.T
        top_rows = np.argpartition(scores, len(rows) - top, axis=1)[:, -top:]
        return np.take_along_axis(top_rows, np.argsort(-np.take_along_axis(scores, top_rows, 1), axis=1), 1)

    def ids(first: int, end: int, _: int) -> NDArray:
        return np.concatenate([best(cues[start : min(start + CHUNK, end)]) for start in range(first, end, CHUNK)])

    return Method("numpy", ids)


def by_faiss(rows: NDArray, cues: NDArray) -> Method:
    import faiss

    index = faiss.IndexFlatIP(rows.shape[1])
    index.add(rows)

    def ids(first: int, end: int, _: int) -> NDArray:
        return index.search(cues[first:end], TOP)[1]

    return Method("faiss", ids, faiss.omp_set_num_threads)


def by_hnswlib(rows: NDArray, cues: NDArray) -> Method:
    index = hnsw(rows)
    index.set_ef(SEARCHING)

    def ids(first: int, end: int, threads: int) -> NDArray:
        return index.knn_query(cues[first:end], TOP, num_threads=threads)[0].astype(np.int64)

    return Method("hnswlib", ids)


def hnsw(rows: NDArray, threads: int = 2):
    """hnswlib's index of unit vectors, built by so many threads."""
    import hnswlib

    index = hnswlib.Index(space="ip", dim=rows.shape[1])
    index.init_index(len(rows), ef_construction=BUILDING, M=LINKS, random_seed=1)
    index.add_items(rows, num_threads=threads)
    return index


class Peer(NamedTuple):
    """A rival: how its effort is set, how rows are removed, and the microseconds that it took to put one in, learning included."""

    method: Method
    set_effort: Callable[[int], object]
    remove: Callable[[NDArray[np.int64]], object]
    insert: float


def neighbour_index(rows: NDArray[np.int8], cues: NDArray[np.int8]) -> tuple[NeighbourIndex, Method, float]:
    """Our index of neighbours, filled 1,000 rows at a time, as a side, and microseconds a row."""
    index = NeighbourIndex(rows.shape[1])
    begin = time.perf_counter()
    for start in range(0, len(rows), 1000):
        index.add(rows[start : start + 1000])
    method = Method("ours", lambda first, end, _: index.recall(cues[first:end], TOP).ids)
    return index, method, since(begin, rows)


def since(begin: float, rows: NDArray) -> float:
    """Microseconds a row since a moment."""
    return 1e6 * (time.perf_counter() - begin) / len(rows)


def ivf_peer(rows: NDArray[np.float32], cues: NDArray[np.float32], lists: int) -> Peer:
    """faiss' inverted file, effort: the lists that are looked into."""
    import faiss

    faiss.omp_set_num_threads(1)
    begin = time.perf_counter()
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(rows.shape[1]), rows.shape[1], lists, faiss.METRIC_INNER_PRODUCT)
    index.train(rows[: 39 * lists])
    index.add(rows)
    method = Method("IVF", lambda first, end, _: index.search(cues[first:end], TOP)[1], faiss.omp_set_num_threads)
    return Peer(method, lambda effort: setattr(index, "nprobe", effort), index.remove_ids, since(begin, rows))


def hnsw_peer(rows: NDArray[np.float32], cues: NDArray[np.float32]) -> Peer:
    """hnswlib, effort: efSearch."""
    begin = time.perf_counter()
    index = hnsw(rows, threads=1)
    method = Method("hnswlib", lambda first, end, threads: index.knn_query(cues[first:end], TOP, num_threads=threads)[0].astype(np.int64))
    return Peer(method, index.set_ef, lambda removed: [index.mark_deleted(row) for row in removed], since(begin, rows))


def filled(codes: Code, dims: int, at_once: int) -> SparseIndex:
    """Our index, given so many rows at a time."""
    index = SparseIndex(dims)
    for start in range(0, len(codes.indices), at_once):
        index.add(Code(codes.indices[start : start + at_once], codes.values[start : start + at_once]))
    return index


@cache
def expansion(width: int, dims: int) -> torch.Tensor:
    """The fixed random matrix [width, dims] that codes are made with."""
    return torch.randn(width, dims, generator=torch.Generator().manual_seed(7))


def expanded(rows: NDArray, winners: int, dims: int) -> Code:
    """The codes of unit vectors: a fixed random expansion, then k winners."""
    matrix = expansion(rows.shape[1], dims)
    parts = [kwta(torch.from_numpy(rows[start : start + 4096]) @ matrix, winners) for start in range(0, len(rows), 4096)]
    return Code(*(torch.cat(part) for part in zip(*parts, strict=True)))
