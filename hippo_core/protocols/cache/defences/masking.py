"""Masking: tokens of which a vector is damaged leave the cache, so that no attention looks at them. It is told which they are."""

from hippo_core.models.kv import KV
from hippo_core.protocols.cache.defences.base import Defence, DefenceInput


class Masking(Defence):
    name = "masking"
    uses_oracle_mask = True

    def repair(self, damaged: DefenceInput) -> KV:
        whole = ~damaged.mask.flatten(0, 2).any(0).flatten()
        return damaged.kv[:, :, :, whole]
