"""Recompute: the model runs the text again, as if there were no cache. The ceiling, at the cost of all its tokens."""

from hippo_core.cache.defences.base import Damaged, Defence
from hippo_core.models.kv import KV, encode


class Recompute(Defence):
    reads = False

    def repair(self, damaged: Damaged) -> KV:
        return encode(self.setting.lm, [list(damaged.tokens)], damaged.prefix)[0]
