"""Hopfield completion by Triton: programs stream shares of the rows, each with its own maximum and sums, which are joined at the end."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from hippo_core.errors import LabError

WIDEST, STAGES = 512, 2  # entries of a row, tiles in flight: what the smallest GPUs have shared memory for, 99 KiB a program
CUES = 16  # of a program: the least that a product by tensor cores takes
WAVES = 4  # programs a multiprocessor and group of cues
LOWEST = tl.constexpr(torch.finfo(torch.float32).min)


def step(memory: Tensor, cue: Tensor, beta: float, mask: Tensor | None) -> Tensor:
    """softmax(beta * M z) M for M [N, D], cues z [B, D] and a mask bool [N] that allows at least one row."""
    (rows, dims), cues = memory.shape, len(cue)
    if dims > WIDEST:
        raise LabError(f"impl 'triton' of hopfield takes rows of at most {WIDEST} entries, got {dims}; use impl 'reference'")
    if not cues or not dims:
        return cue.clone()
    padded = max(16, triton.next_power_of_2(dims))
    block = max(16, 8192 // padded)
    at_once = torch.cuda.get_device_properties(cue.device).multi_processor_count if cue.is_cuda else 1
    shares = min(triton.cdiv(rows, block), WAVES * at_once)
    each = triton.cdiv(triton.cdiv(rows, shares), block) * block
    most, weight = cue.new_empty(2, shares, cues).unbind()
    total = cue.new_empty(shares, cues, dims)
    allowed = torch.ones(rows, dtype=torch.bool, device=cue.device) if mask is None else mask
    grid = triton.cdiv(cues, CUES), shares
    launch: Any = _part[grid]
    launch(memory, cue, allowed, most, weight, total, rows, cues, dims, beta, each, CUES, padded, block, num_stages=STAGES)
    share = (most - most.amax(0)).exp()
    return (share[..., None] * total).sum(0) / (share * weight).sum(0)[:, None]


@triton.jit
def _part(
    memory, cue, allowed, most, weight, total, rows, cues, dims, beta, each, CUES: tl.constexpr, DIMS: tl.constexpr, BLOCK: tl.constexpr
):
    """The maximum, the sum of weights and the weighted sum of `each` rows for some cues."""
    number = tl.program_id(0) * CUES + tl.arange(0, CUES)
    share = tl.program_id(1)
    column = tl.arange(0, DIMS)
    own = (number < cues)[:, None] & (column < dims)[None, :]
    z = beta * tl.load(cue + number[:, None] * dims + column[None, :], mask=own, other=0.0)
    largest = tl.full([CUES], LOWEST, tl.float32)
    sums, rest = tl.zeros([CUES], tl.float32), tl.zeros([CUES, DIMS], tl.float32)
    for start in range(share * each, min(rows, (share + 1) * each), BLOCK):
        row = start + tl.arange(0, BLOCK)
        at = row.to(tl.int64)[:, None] * dims + column[None, :]
        tile = tl.load(memory + at, mask=(row < rows)[:, None] & (column < dims)[None, :], other=0.0)
        here = tl.load(allowed + row, mask=row < rows, other=0) != 0
        scores = tl.where(here[None, :], tl.dot(z, tl.trans(tile), input_precision="ieee"), float("-inf"))
        larger = tl.maximum(largest, tl.max(scores, axis=1))
        old, part = tl.exp(largest - larger), tl.exp(scores - larger[:, None])
        sums = sums * old + tl.sum(part, axis=1)
        rest = rest * old[:, None] + tl.dot(part, tile, input_precision="ieee")
        largest = larger
    to = share.to(tl.int64) * cues + number
    tl.store(most + to, largest, mask=number < cues)
    tl.store(weight + to, sums, mask=number < cues)
    tl.store(total + to[:, None] * dims + column[None, :], rest, mask=own)
