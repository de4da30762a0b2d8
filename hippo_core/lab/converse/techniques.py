"""What the phases ask: of each question, under each technique and budget, the lines that are shown, and the prompt that they make."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hippo_core.conversation.budget import Budget
from hippo_core.conversation.dialogue import Dialogue, Question
from hippo_core.conversation.phases import choices as choose
from hippo_core.conversation.techniques import require
from hippo_core.conversation.techniques.base import Setting
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec

INSTRUCTION = 'Answer the question from the conversation, in as few words as it takes. Say "unknown" where it does not tell.'


@dataclass(frozen=True, slots=True)
class Choice:
    """The lines that a technique shows within a budget for a question."""

    dialogue: Dialogue
    question: Question
    technique: str
    budget: str
    lines: tuple[str, ...]


def choices(
    dialogues: Sequence[Dialogue],
    techniques: Sequence[str],
    budgets: Sequence[str] = ("turns",),
    model: str = "hippo-tiny",
    seed: int = 1337,
) -> Iterator[Choice]:
    """What each technique shows within each budget: "turns", "full" or a number of tokens, which `model` counts. LabError, before anything
    is asked, for an unknown technique or budget."""
    require(techniques)
    rooms = [Budget.of(int(one) if one.isdecimal() else one) for one in budgets]
    known = {(dialogue.id, question.id): (dialogue, question) for dialogue in dialogues for question in dialogue.questions}
    setting = Setting(load(load_spec(model)), seed)
    return (
        Choice(*known[row["dialogue"], row["question"]], row["technique"], row["budget"], tuple(row["lines"]))
        for row in choose(dialogues, techniques, rooms, setting)
    )


def prompt(lines: Sequence[str], question: str, instructed: bool) -> str:
    """The prompt of a question. `instructed`: the provider brings an instruction of its own."""
    if instructed:
        return "\n".join([*lines, question])
    return "\n\n".join(part for part in (INSTRUCTION, "\n".join(lines), f"Question: {question}") if part)
