"""Sparse recall by Triton: programs stream shares of the store, row by row, and look each entry up in a table of the cue.

Each keeps its best rows in registers; a tile of rows is searched only when its best beats the worst of them, which soon is rare. A second
pass joins what the programs kept. The programs of one share and all cues run side by side, so the share is read once.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from hippo_core.errors import LabError
from hippo_core.kernels.code import Code

TILE = 8192  # entries of the store that a program holds at a time
WAVES = 4  # programs a multiprocessor and cue
NONE = tl.constexpr(-(2**62))  # a key below all others
FULL = tl.constexpr(2**62)  # a key above all others
ROWS = tl.constexpr(2**32 - 1)


def recall(store: Code, cue: Code, top: int, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Ids and scores int64 [B, top] of the best rows that the mask bool [N] allows."""
    cues, (rows, width) = len(cue.indices), store.indices.shape
    ids = torch.full((cues, top), -1, dtype=torch.int64, device=mask.device)
    scores = torch.zeros_like(ids)
    if not (cues and rows and width and cue.indices.shape[1]):
        return ids, scores
    table, slots = _table(store, cue), max(16, int(triton.next_power_of_2(top)))
    padded = triton.next_power_of_2(width)
    block = max(16, TILE // padded)
    at_once = torch.cuda.get_device_properties(mask.device).multi_processor_count if mask.is_cuda else 1
    shares = min(triton.cdiv(rows, block), WAVES * at_once)
    each = triton.cdiv(triton.cdiv(rows, shares), block) * block
    best = torch.empty(cues, shares, slots, dtype=torch.int64, device=mask.device)
    indices, values = store.indices.contiguous(), store.values.contiguous()
    stream: Any = _stream[(cues, shares)]
    stream(indices, values, mask, table, best, rows, width, table.shape[1], each, top, padded, block, slots)
    join: Any = _join[(cues,)]
    join(best, ids, scores, shares * slots, top, slots, 1024)
    return ids, scores


def _table(store: Code, cue: Code) -> Tensor:
    """The cues as rows over all of their dimensions, int16 where that holds them, else int32. LabError where a score may not fit int32."""
    weights = torch.where(cue.indices >= 0, cue.values, 0).to(torch.int32)
    table = weights.new_zeros(len(weights), int(cue.indices.max().clamp(min=0)) + 1)
    table.scatter_add_(1, cue.indices.clamp(min=0).long(), weights)
    if store.values.dtype != torch.int8 or cue.values.dtype != torch.int8:
        most = int(store.values.long().abs().sum(1).max()) * int(table.abs().max())
        if most >= 2**31:
            raise LabError(f"impl 'triton' keeps scores below 2^31, these codes may reach {most}; scale the values down or use impl 'cpu'")
        return table
    return table.to(torch.int16) if 128 * weights.shape[1] < 2**15 else table


@triton.jit
def _admit(kept, keys):
    """`kept` with its worst replaced by better ones of `keys`. Keys are unique."""
    worst, largest = tl.min(kept), tl.max(keys)
    while largest > worst:
        kept = tl.where(kept == worst, largest, kept)
        keys = tl.where(keys == largest, NONE, keys)
        worst, largest = tl.min(kept), tl.max(keys)
    return kept


@triton.jit
def _empty(top, TOP: tl.constexpr):
    """`top` free places, worse than any row and unlike one another; the rest are never free."""
    slot = tl.arange(0, TOP).to(tl.int64)
    return tl.where(slot < top, -1 - slot, FULL)


@triton.jit
def _stream(indices, values, mask, table, best, rows, width, dims, each, top, WIDTH: tl.constexpr, BLOCK: tl.constexpr, TOP: tl.constexpr):
    """The best of `each` rows for one cue, as keys: the score above 32 bits that count down with the row."""
    cue, share = tl.program_id(0), tl.program_id(1)
    kept = _empty(top, TOP)
    column = tl.arange(0, WIDTH)
    for start in range(share * each, min(rows, (share + 1) * each), BLOCK):
        row = start + tl.arange(0, BLOCK)
        at = row.to(tl.int64)[:, None] * width + column[None, :]
        inside = (row < rows)[:, None] & (column < width)[None, :]
        dim = tl.load(indices + at, mask=inside, other=-1)
        weight = tl.load(values + at, mask=inside, other=0).to(tl.int32)
        factor = tl.load(table + cue.to(tl.int64) * dims + dim, mask=(dim >= 0) & (dim < dims), other=0).to(tl.int32)
        score = tl.sum(weight * factor, axis=1)
        allowed = tl.load(mask + row, mask=row < rows, other=0) != 0
        keys = tl.where((score > 0) & allowed, (score.to(tl.int64) << 32) + (ROWS - row.to(tl.int64)), NONE)
        kept = _admit(kept, keys)
    to = (cue.to(tl.int64) * tl.num_programs(1) + share) * TOP + tl.arange(0, TOP)
    tl.store(best + to, tl.where(kept == FULL, NONE, kept))


@triton.jit
def _join(best, ids, scores, count, top, TOP: tl.constexpr, BLOCK: tl.constexpr):
    """The best of all that the shares kept for one cue, sorted."""
    cue = tl.program_id(0).to(tl.int64)
    kept = _empty(top, TOP)
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        keys = tl.load(best + cue * count + at, mask=at < count, other=-1)
        kept = _admit(kept, tl.where(keys > 0, keys, NONE))
    kept = tl.sort(tl.where(kept == FULL, NONE, kept), descending=True)
    slot = tl.arange(0, TOP)
    tl.store(ids + cue * top + slot, tl.where(kept > 0, ROWS - (kept & ROWS), -1), mask=slot < top)
    tl.store(scores + cue * top + slot, tl.where(kept > 0, kept >> 32, 0), mask=slot < top)
