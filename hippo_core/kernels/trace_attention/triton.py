"""Trace attention by Triton: one program for some queries of a head, over all trace tokens in tiles. It has no gradients."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from hippo_core.errors import LabError

QUERIES, TOKENS = 16, 32  # of a tile
WIDEST, STAGES = 256, 2  # width of a head, tiles in flight: what the smallest GPUs have shared memory for, 99 KiB a program
LOWEST = tl.constexpr(torch.finfo(torch.float32).min)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """`out` [B, H, T, d] and `lse` float32 [B, H, T] of queries [B, H, T, d] over keys [B, G, S, d], S of at least 1."""
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        raise LabError("impl 'triton' of trace_attention has no gradients; use impl 'reference' or 'cpu', or torch.no_grad()")
    if q.dtype == torch.float64 or q.shape[3] > WIDEST:
        actual = f"{q.dtype} of width {q.shape[3]}"
        raise LabError(
            f"impl 'triton' of trace_attention takes 16 or 32 bits and heads of {WIDEST} at most, got {actual}; use impl 'reference'"
        )
    batch, heads, queries, dims = q.shape
    q, k, v, mask = q.contiguous(), k.contiguous(), v.contiguous(), mask.contiguous()
    out, lse = torch.empty_like(q), torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    grid = triton.cdiv(queries, QUERIES), heads, batch
    if q.numel():
        groups, tokens = k.shape[1:3]
        padded = max(16, triton.next_power_of_2(dims))
        launch: Any = _attend[grid]
        launch(q, k, v, mask, out, lse, scale, heads // groups, queries, tokens, dims, QUERIES, TOKENS, padded, num_stages=STAGES)
    return out, lse


@triton.jit
def _attend(q, k, v, mask, out, lse, scale, group, queries, tokens, dims, QUERIES: tl.constexpr, TOKENS: tl.constexpr, DIMS: tl.constexpr):
    """Queries of one head, of which `together` share keys."""
    head = tl.program_id(2).to(tl.int64) * tl.num_programs(1) + tl.program_id(1)  # over the batch: H is a multiple of `together`
    query, column, token = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES), tl.arange(0, DIMS), tl.arange(0, TOKENS)
    at = (head * queries + query)[:, None] * dims + column[None, :]
    own = (query < queries)[:, None] & (column < dims)[None, :]
    q_tile = tl.load(q + at, mask=own, other=0.0)
    largest = tl.full([QUERIES], LOWEST, tl.float32)
    sums, rest = tl.zeros([QUERIES], tl.float32), tl.zeros([QUERIES, DIMS], tl.float32)
    for start in range(0, tokens, TOKENS):
        there = start + token < tokens
        seen = tl.load(mask + tl.program_id(2).to(tl.int64) * tokens + start + token, mask=there, other=0) != 0
        to = (head // group * tokens + start + token)[:, None] * dims + column[None, :]
        inside = there[:, None] & (column < dims)[None, :]
        keys, v_tile = tl.load(k + to, mask=inside, other=0.0), tl.load(v + to, mask=inside, other=0.0)
        scores = tl.where(seen[None, :], scale * tl.dot(q_tile, tl.trans(keys), input_precision="ieee"), float("-inf"))
        larger = tl.maximum(largest, tl.max(scores, axis=1))
        old, part = tl.exp(largest - larger), tl.exp(scores - larger[:, None])
        sums = sums * old + tl.sum(part, axis=1)
        rest = rest * old[:, None] + tl.dot(part.to(v_tile.dtype), v_tile, input_precision="ieee")
        largest = larger
    some = sums > 0
    tl.store(out + at, tl.where(some[:, None], rest / tl.where(some, sums, 1.0)[:, None], 0.0).to(q_tile.dtype), mask=own)
    tl.store(lse + head * queries + query, tl.where(some, largest + tl.log(sums), float("-inf")), mask=query < queries)
