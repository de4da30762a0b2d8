"""Smoothing: each vector is mixed with the smoothed one before it, y_t = .7 x_t + .3 y_(t-1), as CacheMedic++ (2026) has it; there where
the damage is told, here everywhere."""

import torch

from hippo_core.models.kv import KV
from hippo_core.protocols.cache.defences.base import Defence, DefenceInput

MIXED = 0.3


class Smoothing(Defence):
    name = "smoothing"

    def repair(self, damaged: DefenceInput) -> KV:
        smooth = [damaged.kv[:, :, :, 0]]
        for token in range(1, damaged.kv.shape[3]):
            smooth.append((1 - MIXED) * damaged.kv[:, :, :, token] + MIXED * smooth[-1])
        return torch.stack(smooth, 3)
