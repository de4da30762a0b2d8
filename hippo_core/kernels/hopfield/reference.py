"""Hopfield completion in plain torch: chunks of rows, with a running maximum, sum of weights and weighted sum of rows."""

import math

import torch
from torch import Tensor

CHUNK = 1024  # rows


def step(memory: Tensor, cue: Tensor, beta: float, mask: Tensor | None) -> Tensor:
    """softmax(beta * M z) M for M [N, D], cues z [B, D] and a mask bool [N] that allows at least one row."""
    most = torch.full((len(cue), 1), -math.inf, device=cue.device)
    weight, total = torch.zeros_like(most), torch.zeros_like(cue)
    for start in range(0, len(memory), CHUNK):
        rows = memory[start : start + CHUNK]
        scores = beta * cue @ rows.T
        if mask is not None:
            scores = scores.masked_fill(~mask[start : start + CHUNK], -math.inf)
        larger = torch.maximum(most, scores.amax(1, keepdim=True)).clamp(min=torch.finfo(cue.dtype).min)  # -inf - -inf is NaN
        share, old = (scores - larger).exp(), (most - larger).exp()
        weight, total, most = weight * old + share.sum(1, keepdim=True), total * old + share @ rows, larger
    return total / weight
