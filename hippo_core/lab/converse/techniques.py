"""What the phases ask: of each question, under each technique and budget, the lines that are shown, and the prompt that they make."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hippo_core.conversation.dialogue import Dialogue, Question
from hippo_core.files import unknown

INSTRUCTION = 'Answer the question from the conversation, in as few words as it takes. Say "unknown" where it does not tell.'
TECHNIQUES = ("full", "none")


@dataclass(frozen=True, slots=True)
class Choice:
    """The lines that a technique shows within a budget ("full": no limit) for a question."""

    dialogue: Dialogue
    question: Question
    technique: str
    budget: str
    lines: tuple[str, ...]


def choices(dialogues: Sequence[Dialogue], techniques: Sequence[str]) -> Iterator[Choice]:
    """What each technique shows: full, every turn; none, no turn. LabError for an unknown technique, before anything is asked."""
    if wrong := [name for name in techniques if name not in TECHNIQUES]:
        raise unknown("technique", wrong[0], TECHNIQUES)
    for dialogue in dialogues:
        lines = tuple(turn.line for turn in dialogue.turns)
        for question in dialogue.questions:
            for name in techniques:
                yield Choice(dialogue, question, name, "full", lines if name == "full" else ())


def prompt(choice: Choice, instructed: bool) -> str:
    """The prompt of a question. `instructed`: the provider brings an instruction of its own."""
    if instructed:
        return "\n".join([*choice.lines, choice.question.question])
    parts = (INSTRUCTION, "\n".join(choice.lines), f"Question: {choice.question.question}")
    return "\n\n".join(part for part in parts if part)
