"""What is done against forgetting, a file a method."""

from collections.abc import Mapping

from hippo_core.files import unknown
from hippo_core.protocols.forgetting.learner import Learner
from hippo_core.protocols.forgetting.learners.base import Method, MethodSettings
from hippo_core.protocols.forgetting.learners.forever import Forever
from hippo_core.protocols.forgetting.learners.generative import Generative
from hippo_core.protocols.forgetting.learners.joint import Joint
from hippo_core.protocols.forgetting.learners.lora import LoRA
from hippo_core.protocols.forgetting.learners.lwf import LwF
from hippo_core.protocols.forgetting.learners.quadratic import EWC, L2
from hippo_core.protocols.forgetting.learners.replay import Replay
from hippo_core.protocols.forgetting.learners.scratch import Scratch

METHODS: Mapping[str, type[Method]] = {
    "none": Method,
    "replay": Replay,
    "forever": Forever,
    "generative": Generative,
    "joint": Joint,
    "scratch": Scratch,
    "ewc": EWC,
    "l2": L2,
    "lwf": LwF,
    "lora": LoRA,
}


def make_method(name: str, learner: Learner, settings: MethodSettings) -> Method:
    """The method of that name for a learner; LabError with what is legal otherwise."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name](learner, settings)
