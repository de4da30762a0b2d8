"""RMS outlier rejection: a vector whose root mean square lies over three standard deviations from clean ones' becomes their mean."""

import torch
from torch import Tensor

from hippo_core.models.kv import KV
from hippo_core.protocols.cache.corruption import rms
from hippo_core.protocols.cache.defences.base import Defence, DefenceInput


class RMSOutlier(Defence):
    name = "rms_outlier"

    def repair(self, damaged: DefenceInput) -> KV:
        return torch.where(self.suspicion(damaged, damaged.kv) > 3, self.setting.clean.mean, damaged.kv)

    def suspicion(self, damaged: DefenceInput, repaired: KV) -> Tensor:
        clean = self.setting.clean
        return ((rms(damaged.kv) - clean.length).abs() / clean.length_spread).nan_to_num(nan=torch.inf)
