"""Sparse recall beside numpy's product and argpartition, faiss' flat index and hnswlib: times as ratios of one run, and what is found.

python benchmarks/memory/recall.py [ROWS ...]        (1000 10000 100000 1000000; after `make peers`; HNSW=100000 is the most it gets)

Rows are unit vectors of 256 in families of 32 (cosine about .7 within one), cues are rows with noise (cosine .8). Ours stores their codes:
a fixed random expansion to 8,192, of which WINNERS (32) win. Making a cue's code is timed apart: the others need none.
recall@10 is a share of two lists of ten: those of exact search among the codes, and those of exact search among the vectors.
The last line is faiss' time divided by ours, the least over all sizes, and at the largest.
"""

import importlib.util
import os
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np
import torch
from numpy.typing import NDArray

from hippo_core.kernels.code import Code
from hippo_core.kernels.sparse_recall import sparse_recall

WIDTH, DIMS, FAMILY, CUES, BUDGET, ROUNDS = 256, 8192, 32, 256, 0.3, 3
SIZES = (1_000, 10_000, 100_000, 1_000_000)
WINNERS, HNSW = int(os.environ.get("WINNERS", "32")), int(os.environ.get("HNSW", "100000"))
PEERS = ("faiss", "hnswlib", "threadpoolctl")
CHECKED, TOP = 4_000_000, 10  # rows times cues that the reference looks through; rows recalled


def vectors(count: int) -> tuple[NDArray, NDArray]:
    """Rows and cues, float32 [N, 256] and [CUES, 256]."""
    random = np.random.default_rng(11)
    centres = unit(random.standard_normal((-(-count // FAMILY), WIDTH), dtype=np.float32))
    rows = centres.repeat(FAMILY, axis=0)[:count]
    rows = unit(rows + unit(random.standard_normal(rows.shape, dtype=np.float32)) * np.float32(0.65))
    chosen = rows[random.integers(0, count, CUES)]
    return rows, unit(chosen + unit(random.standard_normal(chosen.shape, dtype=np.float32)) * np.float32(0.75))


def unit(rows: NDArray) -> NDArray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def singly(method, count: int, threads: int) -> Callable[[], None]:
    """A call that asks for so many cues one by one."""

    def ask() -> None:
        for number in range(count):
            method.ids(number, number + 1, threads)

    return ask


def ask_all(methods: Sequence, threads: int) -> dict[str, dict[str, float]]:
    """Microseconds a cue, one by one and all at once, of each side: the median of rounds in which they take turns."""
    for method in methods:
        method.set_threads(threads)
    counts = {method.name: int(min(CUES, max(3, BUDGET / max(1e-6, seconds(singly(method, 2, threads)) / 2)))) for method in methods}
    times = {kind: {method.name: [] for method in methods} for kind in ("one", "batch")}
    for _ in range(ROUNDS):
        for method in methods:
            method.set_threads(threads)
            times["one"][method.name].append(seconds(singly(method, counts[method.name], threads)) / counts[method.name])
            times["batch"][method.name].append(seconds(lambda method=method: method.ids(0, CUES, threads)) / CUES)
    return {kind: {name: 1e6 * median(each) for name, each in by_method.items()} for kind, by_method in times.items()}


def shared(ids: NDArray, due: NDArray) -> float:
    """The mean share of what is due that was found; -1 stands for nobody."""
    return float(np.mean([len(set(a) & set(b) - {-1}) / max(1, len(set(b) - {-1})) for a, b in zip(ids, due, strict=True)]))


def inserts(rows: NDArray, codes: Code) -> None:
    """Print what it costs to keep a row, in one thread. hnswlib becomes slower with size: its first rows are shown, at its best."""
    from sides import filled, hnsw

    few = min(len(rows), 20_000)
    begun = Code(codes.indices[:few], codes.values[:few])
    peer = seconds(lambda: hnsw(rows[:few], threads=1)) / few
    times = {
        f"hnswlib, {few:,} at once": peer,
        "ours, 1,000 at a time": seconds(lambda: filled(codes, DIMS, 1000)) / len(rows),
        "ours, one at a time": seconds(lambda: filled(begun, DIMS, 1)) / few,
    }
    for name, each in times.items():
        print(f"  insert  {name:26} {1e6 * each:9.2f} us a row   hnswlib / this {peer / each:8.1f}", flush=True)
    if len(rows) > HNSW:
        least = peer * len(rows) / 60
        print(f"  hnswlib is left out beyond HNSW={HNSW} rows: to build it would take at least {least:.0f} minutes of one thread")


def findings(methods: Sequence, rows: NDArray, codes: Code, asked: Code) -> None:
    """Print recall@10 of each side against exact search among the codes and among the vectors."""
    count = max(1, min(CUES, CHECKED // len(rows)))
    few = Code(asked.indices[:count], asked.values[:count])
    among_codes = sparse_recall(codes, few, TOP, impl="reference").ids.numpy()
    among_vectors = methods[1].ids(0, CUES, 1)
    for method in methods:
        ids = method.ids(0, CUES, 1)
        line = f"{shared(ids[:count], among_codes):.3f} of the codes' ({count} cues), {shared(ids, among_vectors):.3f} of the vectors'"
        print(f"  recall@{TOP}  {method.name:8} {line}", flush=True)


def compare(count: int) -> float:
    """Print a size's figures; returns the least of faiss' times divided by ours."""
    from sides import by_faiss, by_hnswlib, by_numpy, expanded, filled, ours

    rows, cues = vectors(count)
    codes, asked = expanded(rows, WINNERS, DIMS), expanded(cues, WINNERS, DIMS)
    print(f"{count:,} rows, {WINNERS} winners of {DIMS:,}", flush=True)
    inserts(rows, codes)
    methods = [ours(filled(codes, DIMS, 1000), asked), by_numpy(rows, cues), by_faiss(rows, cues)]
    methods += [by_hnswlib(rows, cues)] if count <= HNSW else []
    findings(methods, rows, codes, asked)
    ratios = []
    for kind, times in ask_all(methods, 1).items():
        ratios.append(times["faiss"] / times["ours"])
        line = ", ".join(f"{name} {each:.0f}" for name, each in times.items())
        over = ", ".join(f"{name} {each / times['ours']:.1f}" for name, each in times.items() if name != "ours")
        print(f"  recall  {kind:5}: {line} us a cue; divided by ours: {over}", flush=True)
    return min(ratios)


def compile_all() -> None:
    """Compile what is timed."""
    from sides import expanded, filled, ours

    codes = expanded(vectors(2000)[0], WINNERS, DIMS)
    ours(filled(codes, DIMS, 1000), codes).ids(0, 9, 1)


def coding() -> None:
    """Print what the code of a cue costs, which only ours needs, in one thread."""
    from sides import expanded

    torch.set_num_threads(1)
    cues = vectors(CUES)[1]
    times = {
        count: median(seconds(lambda count=count: expanded(cues[:count], WINNERS, DIMS)) / count for _ in range(ROUNDS))
        for count in (1, CUES)
    }
    print(f"a cue's code: {1e6 * times[1]:.0f} us alone, {1e6 * times[CUES]:.0f} us in a batch of {CUES}", flush=True)
    torch.set_num_threads(2)


def without_peers() -> bool:
    """Whether what is compared with is missing, which is said."""
    missing = [name for name in PEERS if importlib.util.find_spec(name) is None]
    if missing:
        print(f"{', '.join(missing)} not installed, so nothing is compared with: make peers")
    return bool(missing)


def main(sizes: Sequence[int] = SIZES) -> None:
    """Compare all sizes."""
    if without_peers():
        return
    compile_all()
    coding()
    results = {count: compare(count) for count in sizes}
    worst = min(results, key=lambda count: results[count])
    print(
        f"faiss / ours time ratio at least {results[worst]:.1f} (at {worst:,} rows); at {max(results):,} rows {results[max(results)]:.1f}"
    )


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or SIZES)
