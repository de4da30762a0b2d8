"""none: the question alone, the lower bound."""

from hippo_core.protocols.conversation.techniques.base import Technique


class EmptyContext(Technique):
    """Shows nothing."""

    name = "none"
