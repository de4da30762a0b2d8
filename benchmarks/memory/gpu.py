"""Triton's kernels on a GPU: bytes of the store a second as a share of what a copy on the same GPU reaches in the same run.

python benchmarks/memory/gpu.py [ROWS]        (4000000)

A copy reads and writes, so its bytes count twice. Recall must read indices and values of all rows, completion the rows: less than that it
cannot read, so the share says how far it is from the best. Ids are checked against the reference's before anything is timed.
"""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from statistics import median

import torch

from hippo_core.kernels.code import Code
from hippo_core.kernels.hopfield import hopfield
from hippo_core.kernels.kwta import kwta
from hippo_core.kernels.sparse_recall import sparse_recall

WIDTH, DIMS, WINNERS, TOP, ROUNDS, CHECKED = 256, 8192, 32, 10, 20, 20_000
GOAL = 0.7


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes on the GPU: the median of rounds, after three that are not counted."""
    spent = []
    for number in range(ROUNDS + 3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        end.synchronize()
        spent += [begin.elapsed_time(end) / 1000] if number >= 3 else []
    return median(spent)


def codes(rows: int) -> Code:
    """Random codes of WINNERS of DIMS on the GPU."""
    random = torch.Generator("cuda").manual_seed(3)
    step = DIMS // WINNERS
    places = torch.randint(0, step, (rows, WINNERS), generator=random, device="cuda", dtype=torch.int32)
    indices = places + step * torch.arange(WINNERS, device="cuda", dtype=torch.int32)
    return Code(indices, torch.randint(-127, 128, indices.shape, generator=random, device="cuda", dtype=torch.int8))


def check(store: Code, cue: Code) -> None:
    """The same ids as the reference for the first rows."""
    few = Code(store.indices[:CHECKED], store.values[:CHECKED])
    found, due = (sparse_recall(few, cue, TOP, impl=impl) for impl in ("triton", "reference"))
    assert torch.equal(found.ids, due.ids), "Triton recalls other rows than the reference"
    assert torch.equal(found.scores, due.scores), "Triton finds other scores than the reference"


def copying() -> float:
    """Bytes a second that a copy moves."""
    source = torch.empty(2**28, dtype=torch.float32, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.nbytes / seconds(lambda: target.copy_(source))


def tell(what: str, spent: float, nbytes: int, copy: float) -> float:
    """Print a kernel's time and its share of the copy's bandwidth, which is returned."""
    print(f"{what}: {1e6 * spent:.0f} us, {nbytes / spent / copy:.2f} of the copy's bandwidth")
    return nbytes / spent / copy


def recall(rows: int, copy: float) -> float:
    """The share for a single cue."""
    store = codes(rows)
    allowed = torch.ones(rows, dtype=torch.bool, device="cuda")
    nbytes = store.indices.nbytes + store.values.nbytes + allowed.nbytes
    check(store, Code(store.indices[:4], store.values[:4]))
    shares = []
    for cues in (1, 16):
        cue = Code(store.indices[:cues], store.values[:cues])
        spent = seconds(lambda cue=cue: sparse_recall(store, cue, TOP, allowed, "triton"))
        shares.append(tell(f"recall of {rows:,} rows, {cues} cues", spent, nbytes, copy))
    return shares[0]


def others(rows: int, copy: float) -> None:
    """Completion and k-WTA."""
    memory = torch.randn(rows, WIDTH, device="cuda")
    for cues in (1, 16):
        spent = seconds(lambda cues=cues: hopfield(memory, memory[:cues], 0.1, impl="triton"))
        tell(f"completion over {rows:,} rows, {cues} cues", spent, memory.nbytes, copy)
    x = torch.randn(4096, DIMS, device="cuda")
    tell(f"k-WTA of {len(x):,} rows of {DIMS:,}", seconds(lambda: kwta(x, WINNERS, "triton")), x.nbytes, copy)


def main(rows: int = 4_000_000) -> None:
    """Measure, where there is a GPU."""
    if not torch.cuda.is_available() or find_spec("triton") is None:
        print("No GPU, or triton is not installed: nothing of Triton's kernels is measured.")
        return
    copy = copying()
    print(f"{torch.cuda.get_device_name()}: a copy moves {copy / 1e9:.0f} GB/s")
    share = recall(rows, copy)
    others(rows // 4, copy)
    print(f"recall by Triton / copy bandwidth ratio {share:.2f}, goal {GOAL}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
