"""Defences of a few lines that keep nothing beside the cache: what is told where the damage is, what filters, what reads the text again."""

from math import ceil

import torch
from torch import Tensor
from torch.nn.functional import pad

from hippo_core.models.kv import KV, encode
from hippo_core.protocols.cache.corruption import rms
from hippo_core.protocols.cache.defences.base import Defence, DefenceContext, DefenceInput

MIXED = 0.3  # the share of the smoothed vector before


class NoDefence(Defence):
    """The damaged cache is read as it is."""

    name = "none"


class Reset(Defence):
    """Damaged vectors become zero. It is told which they are; a real machine would know it of a failed parity check."""

    name = "reset"
    uses_oracle_mask = True

    def repair(self, damaged: DefenceInput) -> KV:
        return torch.where(damaged.mask, 0.0, damaged.kv)


class Masking(Defence):
    """Tokens of which a vector is damaged leave the cache. It is told which they are."""

    name = "masking"
    uses_oracle_mask = True

    def repair(self, damaged: DefenceInput) -> KV:
        undamaged = ~damaged.mask.flatten(0, 2).any(0).flatten()
        return damaged.kv[:, :, :, undamaged]


class Smoothing(Defence):
    """y_t = .7 x_t + .3 y_(t-1), as CacheMedic++ (2026) has it; there where the damage is told, here everywhere."""

    name = "smoothing"

    def repair(self, damaged: DefenceInput) -> KV:
        smooth = [damaged.kv[:, :, :, 0]]
        for token in range(1, damaged.kv.shape[3]):
            smooth.append((1 - MIXED) * damaged.kv[:, :, :, token] + MIXED * smooth[-1])
        return torch.stack(smooth, 3)


class Median(Defence):
    """Of each feature that lies outside the clean range the median over its token and the two neighbours."""

    name = "median"

    def repair(self, damaged: DefenceInput) -> KV:
        clean, x = self.setting.clean, damaged.kv
        known = torch.where(x.isnan(), clean.mean, x)
        around = pad(known.flatten(0, 2), (0, 0, 1, 1), mode="replicate").view(*x.shape[:3], -1, x.shape[4])
        before, after = around[:, :, :, :-2], around[:, :, :, 2:]
        middle = torch.maximum(torch.minimum(before, after), torch.minimum(torch.maximum(before, after), known))
        outside = (known < clean.low) | (known > clean.high) | x.isnan()
        return torch.where(outside, middle, x)


class Clipping(Defence):
    """Features are clamped to the range of clean text, and vectors that are longer than clean ones are shortened."""

    name = "clipping"

    def repair(self, damaged: DefenceInput) -> KV:
        clean = self.setting.clean
        x = torch.where(damaged.kv.isnan(), clean.mean, damaged.kv)
        x = torch.maximum(torch.minimum(x, clean.high), clean.low)
        longest = clean.length + 3 * clean.length_spread
        return x * (longest / rms(x).clamp(min=1e-9)).clamp(max=1)


class DetectClear(Defence):
    """A vector that is stranger than 99 in 100 of clean text becomes zero."""

    name = "detect_clear"

    def repair(self, damaged: DefenceInput) -> KV:
        strange = self.setting.clean.anomaly_score(damaged.kv) > self.setting.clean.threshold
        return torch.where(strange, 0.0, damaged.kv)

    def suspicion(self, damaged: DefenceInput, repaired: KV) -> Tensor:
        return self.setting.clean.anomaly_score(damaged.kv) / self.setting.clean.threshold


class RMSOutlier(Defence):
    """A vector whose root mean square lies over three standard deviations from clean ones' becomes their mean."""

    name = "rms_outlier"

    def repair(self, damaged: DefenceInput) -> KV:
        return torch.where(self.suspicion(damaged, damaged.kv) > 3, self.setting.clean.mean, damaged.kv)

    def suspicion(self, damaged: DefenceInput, repaired: KV) -> Tensor:
        clean = self.setting.clean
        return ((rms(damaged.kv) - clean.length).abs() / clean.length_spread).nan_to_num(nan=torch.inf)


class Recompute(Defence):
    """The model runs the text again: the ceiling. With a `budget` it runs the first tokens alone, and the rest stays as it is."""

    name = "recompute"

    def __init__(self, setting: DefenceContext) -> None:
        super().__init__(setting)
        self.reads = setting.budget < 1

    def repair(self, damaged: DefenceInput) -> KV:
        count = ceil(self.setting.budget * len(damaged.tokens))
        again = encode(self.setting.lm, [list(damaged.tokens[:count])], damaged.prefix)[0]
        return torch.cat([again, damaged.kv[:, :, :, count:]], 3)
