"""The Wiener filter over whole tokens: each token's keys and values of all layers become what they most likely were, given what the rest
of them says (token_prior.py). It is fitted to clean text in closed form; no fault is shown to it and nobody tells it where one is.

`ByLayer` is its ablation: what one layer's keys and values say of each other.
"""

import torch

from hippo_core.errors import LabError
from hippo_core.models.kv import KV
from hippo_core.protocols.cache.defences.base import Defence, DefenceContext, DefenceInput


class Wiener(Defence):
    name = "wiener"
    by_layer = False

    def __init__(self, setting: DefenceContext) -> None:
        super().__init__(setting)
        if setting.priors is None:
            raise LabError("the Wiener filter needs clean text to be fitted to; give Setting its priors, or leave wiener out")
        self.priors = setting.priors(self.by_layer)

    def repair(self, damaged: DefenceInput) -> KV:
        start, parts = damaged.prefix.shape[3], damaged.kv.chunk(len(self.priors))
        return torch.cat([prior.estimate(part, start).kv for prior, part in zip(self.priors, parts, strict=True)]).to(damaged.kv)


class ByLayer(Wiener):
    name = "wiener_layer"
    by_layer = True
