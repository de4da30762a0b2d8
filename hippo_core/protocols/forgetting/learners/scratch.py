"""Each task from the initial weights: what it takes to learn it without a past. A reference for transfer, and nothing is kept."""

from hippo_core.protocols.forgetting.learners.base import ContinualLearner
from hippo_core.protocols.forgetting.transformer import initial


class Scratch(ContinualLearner):
    """Every phase begins with the weights of the very beginning."""

    name = "scratch"

    def begin(self, phase: int) -> None:
        learner = self.learner
        learner.learn([initial(learner.shape, seed) for seed in learner.seeds])
