"""A question as a delivery is asked it: with what was retrieved for it, and how far "unknown" is held back."""

from hippo_core.delivery.types import Question
from hippo_core.methods.base import Method, Retrieved
from hippo_core.models.abstention import ALWAYS, NEVER


def penalty_of(method: Method, retrieved: Retrieved) -> float | None:
    """How far "unknown" is held back in an answer: as a method says that decides and knows, else as the model's spec says (None). Where
    either decides and a program wrote the answer into what the model reads, the model has nothing to judge by."""
    decides = method.settings.abstention
    if retrieved.confidence is not None and retrieved.confidence < method.settings.unknown_below:
        return ALWAYS
    if decides == "model" or retrieved.confidence is None:
        return None
    copies = decides == "either" and retrieved.restates and not retrieved.reworded
    if retrieved.confidence >= 0.5 or copies:
        return NEVER
    return ALWAYS if decides == "method" else None


def asked_of(method: Method, question: str, retrieved: Retrieved) -> Question:
    """What a delivery is asked: a question with what was retrieved for it."""
    return Question(retrieved.rephrased or question, retrieved.delivered, penalty_of(method, retrieved), retrieved.together)
