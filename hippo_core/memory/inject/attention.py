"""Attention of a question's tokens over recalled traces: plain torch, differentiable."""

import torch
from torch import Tensor


def trace_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """softmax(q k' / sqrt(d)) v over the tokens of `mask`, and the logarithm of the softmax's denominator.

    q [B, H, T, d]; k, v [B, G, S, d] of G key-value heads, each shared by H / G neighbouring query heads; mask [B, S] bool, one for
    all tokens of a row. Returns out [B, H, T, d] in q's dtype and lse [B, H, T] in nats, float32, in which all is computed. Where
    a row's mask is empty, out is 0 and lse is -inf.
    """
    batch, heads, tokens, size = q.shape
    asked = (q.float() * size**-0.5).reshape(batch, k.shape[1], -1, size)
    unseen = ~mask[:, None, None]
    scores = (asked @ k.float().transpose(2, 3)).masked_fill(unseen, float("-inf"))
    highest = scores.detach().amax(-1, keepdim=True).clamp(min=torch.finfo(torch.float32).min)
    weights = (scores - highest).exp()
    total = weights.sum(-1, keepdim=True)
    out = weights @ v.float() / total.clamp(min=torch.finfo(torch.float32).tiny)
    lse = highest + total.log()
    return out.reshape(q.shape).to(q.dtype), lse.reshape(batch, heads, tokens)
