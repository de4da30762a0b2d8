"""What a technique is to the phases: of a dialogue and a question, the lines that are shown."""

from collections.abc import Callable, Sequence

from hippo_core.conversation.dialogue import Dialogue, Question
from hippo_core.files import unknown

Technique = Callable[[Dialogue, Question], Sequence[str]]
INSTRUCTION = "Answer the question from the conversation, in as few words as it takes. Say \"unknown\" where it does not tell."


def full(dialogue: Dialogue, question: Question) -> Sequence[str]:
    """Every turn."""
    return [turn.line for turn in dialogue.turns]


def none(dialogue: Dialogue, question: Question) -> Sequence[str]:
    """No turn: what a model knows without the dialogue."""
    return []


TECHNIQUES: dict[str, Technique] = {"full": full, "none": none}


def technique(name: str) -> Technique:
    """The technique of a name; LabError that lists them for another."""
    if name not in TECHNIQUES:
        raise unknown("technique", name, TECHNIQUES)
    return TECHNIQUES[name]


def prompt(lines: Sequence[str], question: str, instructed: bool) -> str:
    """The prompt of a question. `instructed`: the provider brings an instruction of its own."""
    if instructed:
        return "\n".join([*lines, question])
    return "\n\n".join(part for part in (INSTRUCTION, "\n".join(lines), f"Question: {question}") if part)
