"""k-winners-take-all in plain torch: quantise, sort by size, keep the first K."""

import torch
from torch import Tensor

from hippo_core.kernels.code import Code


def kwta(x: Tensor, largest: Tensor, winners: int) -> Code:
    """The code of `x` float32 [N, D], whose rows' largest |x| are `largest` [N]."""
    rows, dims = x.shape
    scale = torch.where(largest > 0, largest, 1)[:, None]
    q = torch.round(x / scale * 127).to(torch.int8)
    order = torch.sort(q.abs(), dim=1, descending=True, stable=True).indices[:, :winners]
    order = torch.where(q.gather(1, order) != 0, order, dims).sort(1).values  # losers behind all others
    won = order < dims
    order = torch.where(won, order, 0)
    code = torch.full((rows, winners), -1, dtype=torch.int32, device=x.device), q.new_zeros(rows, winners)
    code[0][:, : order.shape[1]] = torch.where(won, order, -1)
    code[1][:, : order.shape[1]] = torch.where(won, q.gather(1, order), 0)
    return Code(*code)
