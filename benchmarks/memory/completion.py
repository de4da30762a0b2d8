"""Hopfield completion beside the dense softmax in numpy, on the same rows and cues, in turn; the last line is the least ratio.

python benchmarks/memory/completion.py [ROWS ...]        (100 1000 10000 100000)
"""

import sys
import time
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np
import torch
from numpy.typing import NDArray

from hippo_core.kernels.hopfield import hopfield

WIDTH, BETA, ROUNDS, BUDGET = 256, 8.0, 5, 0.2
SIZES, BATCHES = (100, 1_000, 10_000, 100_000), (1, 8, 64)


def dense(memory: NDArray, cue: NDArray) -> NDArray:
    """softmax(beta * M z) M with all weights at once."""
    scores = BETA * (cue @ memory.T)
    scores -= scores.max(1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(1, keepdims=True)
    return scores @ memory


def seconds(call: Callable[[], object], times: int) -> float:
    """How long a call takes, the mean of so many."""
    begin = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - begin) / times


def compare(rows: int, cues: int) -> float:
    """Print both sides' times; returns numpy's divided by ours."""
    random = np.random.default_rng(5)
    memory = random.standard_normal((rows, WIDTH), dtype=np.float32)
    memory /= np.linalg.norm(memory, axis=1, keepdims=True)
    cue = memory[random.integers(0, rows, cues)] + np.float32(0.03) * random.standard_normal((cues, WIDTH), dtype=np.float32)
    stored, asked = torch.from_numpy(memory), torch.from_numpy(cue)
    sides = {"ours": lambda: hopfield(stored, asked, BETA).numpy(), "numpy": lambda: dense(memory, cue)}
    apart = float(np.abs(sides["ours"]() - sides["numpy"]()).max())
    times = max(1, min(100, int(BUDGET / seconds(sides["numpy"], 1))))
    spent = {name: median(seconds(call, times) for _ in range(ROUNDS)) for name, call in sides.items()}
    ratio = spent["numpy"] / spent["ours"]
    told = ", ".join(f"{name} {1e6 * each:.0f} us" for name, each in spent.items())
    print(f"{rows:9,} rows, {cues:2} cues: {told}, numpy / ours {ratio:.2f}; at most {apart:.1e} apart", flush=True)
    return ratio


def main(sizes: Sequence[int] = SIZES) -> None:
    """Compare all sizes, in one thread."""
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    with threadpool_limits(1):
        ratios = [compare(rows, cues) for rows in sizes for cues in BATCHES]
    print(f"numpy / ours time ratio of completion at least {min(ratios):.2f}, median {median(ratios):.2f}")


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or SIZES)
