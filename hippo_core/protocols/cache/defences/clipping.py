"""Clipping: features are clamped to the range that clean text has, and vectors that are longer than clean ones are shortened."""

import torch

from hippo_core.models.kv import KV
from hippo_core.protocols.cache.corruption import rms
from hippo_core.protocols.cache.defences.base import Defence, DefenceInput


class Clipping(Defence):
    name = "clipping"

    def repair(self, damaged: DefenceInput) -> KV:
        clean = self.setting.clean
        x = torch.where(damaged.kv.isnan(), clean.mean, damaged.kv)
        x = torch.maximum(torch.minimum(x, clean.high), clean.low)
        longest = clean.length + 3 * clean.length_spread
        return x * (longest / rms(x).clamp(min=1e-9)).clamp(max=1)
