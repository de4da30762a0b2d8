"""What the model read for a question, part by part, with who wrote each part; and who composed the answer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from hippo_core.methods.base import Read, Retrieved
from hippo_core.store.trace import Trace
from hippo_core.text import on_one_line

if TYPE_CHECKING:
    from hippo_core.delivery.types import Delivered

ComposedBy = Literal["model", "program, model copies", "program"]


def left_of(retrieved: Retrieved, delivered: "Delivered") -> tuple[Trace, ...]:
    """The traces whose words, or the method's own words for them, reached the model."""
    return retrieved.shown[len(retrieved.shown) if retrieved.restates and delivered.dropped else delivered.dropped :]


def read_of(question: str, retrieved: Retrieved, delivered: "Delivered", masked: bool) -> tuple[Read, ...]:
    """What the model read of a question's own, in order: the lines before it, and the question as it was asked. `masked`: the model saw no
    line."""
    lines = () if masked else retrieved.delivered[delivered.dropped :]
    asked = Read(retrieved.rephrased, "program") if retrieved.rephrased not in ("", question) else Read(question, "asker")
    return (*(Read(on_one_line(trace.text), "program" if retrieved.restates else "teller") for trace in lines), asked)


def composed_by(read: Sequence[Read], retrieved: Retrieved, delivered: "Delivered") -> ComposedBy:
    """Who composed an answer: a program alone, a program whose words the model copies, or the model that read facts."""
    if delivered.decided or not delivered.generated_tokens:
        return "program"
    by_program = any(part.by == "program" for part in read[:-1])
    return "program, model copies" if by_program and not retrieved.reworded else "model"
