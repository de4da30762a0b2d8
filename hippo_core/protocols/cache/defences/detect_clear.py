"""Detect and clear: a vector that is stranger than 99 in 100 of clean text (`Clean.strangeness`) becomes zero."""

import torch
from torch import Tensor

from hippo_core.models.kv import KV
from hippo_core.protocols.cache.defences.base import Defence, DefenceInput


class DetectClear(Defence):
    name = "detect_clear"

    def repair(self, damaged: DefenceInput) -> KV:
        strange = self.setting.clean.strangeness(damaged.kv) > self.setting.clean.threshold
        return torch.where(strange, 0.0, damaged.kv)

    def suspicion(self, damaged: DefenceInput, repaired: KV) -> Tensor:
        return self.setting.clean.strangeness(damaged.kv) / self.setting.clean.threshold
