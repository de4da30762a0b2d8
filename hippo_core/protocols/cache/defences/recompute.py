"""Recompute: the model runs the text again, as if there were no cache. The ceiling, at the cost of all its tokens.

With a `budget` the first tokens alone are run, as large a share of all: a token's keys and values follow from the tokens before it, so that
these are exact whatever happened to the rest; the rest stays as it is.
"""

from math import ceil

import torch

from hippo_core.models.kv import KV, encode
from hippo_core.protocols.cache.defences.base import Defence, DefenceContext, DefenceInput


class Recompute(Defence):
    name = "recompute"

    def __init__(self, setting: DefenceContext) -> None:
        super().__init__(setting)
        self.reads = setting.budget < 1

    def repair(self, damaged: DefenceInput) -> KV:
        count = ceil(self.setting.budget * len(damaged.tokens))
        again = encode(self.setting.lm, [list(damaged.tokens[:count])], damaged.prefix)[0]
        return torch.cat([again, damaged.kv[:, :, :, count:]], 3)
