"""Traces a second that a store makes durable, one by one and 256 at a time, beside a plain file that is appended to and synced as often.

python benchmarks/memory/writes.py [FOLDER]

FOLDER decides which disk is measured (default: a temporary folder). The last line of each batch size is the ratio of the two sides,
medians of rounds taken in turn; the plain file is what the disk allows, as it has neither tables nor a journal.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from hippo_core.retrieval.payload import Payload, PayloadCodec
from hippo_core.retrieval.sparse_key import SparseKey
from hippo_core.store import Identity, TraceStore
from hippo_core.store.trace import Trace

DIMS, WINNERS, TOKENS, ROUNDS = 8192, 64, 16, 5
COUNTS = {1: 300, 256: 8192}  # traces written in a round, by the size of a batch
IDENTITY = Identity("benchmark", "0" * 64, "hei_nw", PayloadCodec("random", DIMS, WINNERS))


def traces(count: int, seed: int = 0) -> list[Trace]:
    """Made-up traces of the usual size: a sentence of 16 tokens, a key of 64 winners in 8,192 dimensions."""
    random = np.random.default_rng(seed)
    keys = random.integers(0, DIMS // WINNERS, (count, WINNERS)) + np.arange(WINNERS) * (DIMS // WINNERS)
    signs = random.choice([-1, 1], (count, WINNERS)) * random.integers(1, 128, (count, WINNERS))
    words = [f"On day {number} somebody put a thing of some colour in a place far away." for number in range(count)]
    return [
        Trace("w1", f"f{number}", words[number], time=number, payload=Payload(tuple(range(TOKENS)), (SparseKey(*key, DIMS),)))
        for number, key in enumerate(zip(keys, signs, strict=True))
    ]


def durable_writes(folder: Path, batch: int, count: int) -> float:
    """Traces a second that a new store in `folder` takes in batches of this size; every batch is on the disk when the next one begins."""
    made = traces(count)
    with tempfile.TemporaryDirectory(dir=folder) as path, TraceStore.create(path, "writes", IDENTITY) as store:
        begin = time.perf_counter()
        for start in range(0, count, batch):
            store.append(made[start : start + batch])
        return count / (time.perf_counter() - begin)


def synced_appends(folder: Path, batch: int, count: int, size: int = 700) -> float:
    """The same number of records of about a trace's bytes appended to a plain file, synced after each batch."""
    with tempfile.TemporaryFile(dir=folder) as file:
        begin = time.perf_counter()
        for start in range(0, count, batch):
            file.write(bytes(size) * min(batch, count - start))
            file.flush()
            os.fsync(file.fileno())
        return count / (time.perf_counter() - begin)


def main(folder: Path) -> None:
    """Both sides in turn."""
    writers: dict[str, Callable[[Path, int, int], float]] = {"store": durable_writes, "plain file": synced_appends}
    for batch, count in COUNTS.items():
        times: dict[str, list[float]] = {name: [] for name in writers}
        for _ in range(ROUNDS):
            for name, measure in writers.items():
                times[name].append(measure(folder, batch, count))
        for name, rates in times.items():
            print(f"{name:10} batches of {batch:3}: {median(rates):9,.0f} traces/s ({min(rates):,.0f} to {max(rates):,.0f})")
        print(f"durable writes in batches of {batch}: store / plain file {median(times['store']) / median(times['plain file']):.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.gettempdir()))
