"""Reset: damaged vectors become zero. It is told which they are; a real machine would know it of a failed parity check."""

import torch

from hippo_core.models.kv import KV
from hippo_core.protocols.cache.defences.base import Defence, DefenceInput


class Reset(Defence):
    name = "reset"
    uses_oracle_mask = True

    def repair(self, damaged: DefenceInput) -> KV:
        return torch.where(damaged.mask, 0.0, damaged.kv)
