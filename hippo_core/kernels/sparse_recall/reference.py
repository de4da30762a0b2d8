"""Sparse recall in plain torch: each cue becomes a table over all dimensions, each stored row sums what it finds there."""

import torch
from torch import Tensor

from hippo_core.kernels.code import Code


def recall(store: Code, cue: Code, top: int, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Ids and scores int64 [B, top] of the best rows that the mask bool [N] allows."""
    cues, rows = len(cue.indices), len(store.indices)
    dims = max([0, *(int(part.indices.max()) for part in (store, cue) if part.indices.numel())]) + 1
    scores = torch.zeros(cues, rows, dtype=torch.int64, device=mask.device)
    for number in range(cues):
        table = torch.zeros(dims, dtype=torch.int64, device=mask.device)
        table.index_add_(0, cue.indices[number].clamp(min=0), _weights(cue)[number])
        scores[number] = (table[store.indices.clamp(min=0)] * _weights(store)).sum(1)
    scores, order = torch.where(mask, scores, 0).sort(dim=1, descending=True, stable=True)
    ids = torch.full((cues, top), -1, dtype=torch.int64, device=mask.device)
    best = torch.zeros_like(ids)
    count = min(top, rows)
    ids[:, :count] = torch.where(scores > 0, order, -1)[:, :count]
    best[:, :count] = scores.clamp(min=0)[:, :count]
    return ids, best


def _weights(code: Code) -> Tensor:
    """The values as int64, 0 where the index is padding."""
    return torch.where(code.indices >= 0, code.values, 0).long()
