"""none: the question alone, the lower bound."""

from hippo_core.conversation.techniques.base import Technique


class Nothing(Technique):
    """Shows nothing."""
