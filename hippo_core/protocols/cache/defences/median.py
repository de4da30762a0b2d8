"""Median filter: of each feature the median over a token and its two neighbours, where it lies outside the clean range."""

import torch
from torch.nn.functional import pad

from hippo_core.models.kv import KV
from hippo_core.protocols.cache.defences.base import Defence, DefenceInput


class Median(Defence):
    name = "median"

    def repair(self, damaged: DefenceInput) -> KV:
        clean, x = self.setting.clean, damaged.kv
        known = torch.where(x.isnan(), clean.mean, x)
        around = pad(known.flatten(0, 2), (0, 0, 1, 1), mode="replicate").view(*x.shape[:3], -1, x.shape[4])
        before, after = around[:, :, :, :-2], around[:, :, :, 2:]
        middle = torch.maximum(torch.minimum(before, after), torch.minimum(torch.maximum(before, after), known))
        outside = (known < clean.low) | (known > clean.high) | x.isnan()
        return torch.where(outside, middle, x)
