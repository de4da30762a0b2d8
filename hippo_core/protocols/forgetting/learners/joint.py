"""All tasks so far at once: what a model could know if nothing were ever over. The upper bound."""

from hippo_core.protocols.forgetting.learners.base import ContinualLearner


class Joint(ContinualLearner):
    """Every phase learns all tasks up to its own, in equal parts."""

    name = "joint"

    def tasks(self, phase: int) -> list[int]:
        return list(range(phase + 1))
