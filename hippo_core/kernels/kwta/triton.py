"""k-winners-take-all by Triton: a row is read once and held by one program, which finds the least winning size by bisection."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from hippo_core.kernels.code import Code


def kwta(x: Tensor, largest: Tensor, winners: int) -> Code:
    """The code of `x` float32 [N, D], whose rows' largest |x| are `largest` [N]."""
    rows, dims = x.shape
    indices = torch.full((rows, winners), -1, dtype=torch.int32, device=x.device)
    values = torch.zeros(rows, winners, dtype=torch.int8, device=x.device)
    block = triton.next_power_of_2(dims)
    if rows:  # fusing a product into a sum would round once where the contract rounds twice
        launch: Any = _fill[(rows,)]
        launch(x, largest, indices, values, dims, winners, block, num_warps=min(32, max(4, block // 1024)), enable_fp_fusion=False)
    return Code(indices, values)


@triton.jit
def _fill(x, largest, indices, values, dims, winners, BLOCK: tl.constexpr):
    """Write the code of one row."""
    row = tl.program_id(0).to(tl.int64)
    most = tl.load(largest + row)
    column = tl.arange(0, BLOCK)
    entry = tl.load(x + row * dims + column, mask=column < dims, other=0.0)
    scaled = tl.div_rn(entry, tl.where(most > 0, most, 1.0)) * 127.0
    q = ((scaled + 12582912.0) - 12582912.0).to(tl.int32)  # 1.5 * 2^23: above it float32 has no fractions, so this rounds, half to even
    size = tl.abs(q)
    low, high = 1, 127
    while low < high:
        middle = (low + high + 1) // 2
        if tl.sum((size >= middle).to(tl.int32)) >= winners:
            low = middle
        else:
            high = middle - 1
    spare = winners - tl.sum((size > low).to(tl.int32))
    level = size == low
    won = (size > low) | (level & (tl.cumsum(level.to(tl.int32)) <= spare))
    to = row * winners + tl.cumsum(won.to(tl.int32)) - 1
    tl.store(indices + to, column, mask=won)
    tl.store(values + to, q.to(tl.int8), mask=won)
