"""Trace attention in plain torch: all scores at once, keys and values repeated for each head of a group."""

import torch
from torch import Tensor


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """`out` [B, H, T, d] and `lse` [B, H, T] of queries [B, H, T, d] over keys [B, G, S, d], S of at least 1."""
    wide = torch.promote_types(q.dtype, torch.float32)
    k, v = (part.repeat_interleave(q.shape[1] // k.shape[1], dim=1).to(wide) for part in (k, v))
    seen = mask.any(1)[:, None, None]  # [B, 1, 1]
    shown = (mask | ~mask.any(1, keepdim=True))[:, None, None]  # where nothing may be seen: everything, and nothing of it is used
    scores = (scale * q.to(wide) @ k.transpose(-1, -2)).masked_fill(~shown, -torch.inf)
    lse = scores.logsumexp(-1)
    out = (scores - lse[..., None]).exp() @ v
    return out.where(seen[..., None], 0).to(q.dtype), lse.where(seen, -torch.inf)
