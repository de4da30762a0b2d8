"""RMS outlier rejection: a vector whose root mean square lies over three standard deviations from clean ones' becomes their mean."""

import torch

from hippo_core.cache.corruption import rms
from hippo_core.cache.defences.base import Damaged, Defence
from hippo_core.models.kv import KV


class RMSOutlier(Defence):
    def repair(self, damaged: Damaged) -> KV:
        clean = self.setting.clean
        away = (rms(damaged.kv) - clean.length).abs().nan_to_num(nan=torch.inf)
        return torch.where(away > 3 * clean.length_spread, clean.mean, damaged.kv)
