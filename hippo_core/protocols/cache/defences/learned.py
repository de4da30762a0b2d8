"""The learned repair (repair.py), on every vector, with nobody telling where the damage is."""

import torch

from hippo_core.errors import LabError
from hippo_core.models.kv import KV
from hippo_core.protocols.cache.defences.base import Defence, DefenceContext, DefenceInput
from hippo_core.protocols.cache.repair import load_repair


class Learned(Defence):
    name = "learned"

    def __init__(self, setting: DefenceContext) -> None:
        super().__init__(setting)
        if setting.checkpoint is None:
            raise LabError("learned needs a trained repair: hippo run cache step=train, or leave learned out")
        self.operator = load_repair(setting.checkpoint, setting.clean, setting.lm.spec.name)

    @torch.inference_mode()
    def repair(self, damaged: DefenceInput) -> KV:
        return self.operator(damaged.kv)
