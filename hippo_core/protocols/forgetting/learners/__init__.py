"""What is done against forgetting, a file a method."""

from hippo_core.discovery import member
from hippo_core.protocols.forgetting.learner import Learner
from hippo_core.protocols.forgetting.learners.base import ContinualLearner, LearnerSettings


def make_method(name: str, learner: Learner, settings: LearnerSettings) -> ContinualLearner:
    """The method of that name for a learner; LabError with what is legal otherwise."""
    return member(__name__, name, "method")(learner, settings)
