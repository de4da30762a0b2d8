"""A cell of the conversation experiment: dialogues, answers, scores, rows. What each phase made lies in the record."""

from hippo_core.files import write_text
from hippo_core.protocols.base.cell import RunningCell
from hippo_core.protocols.conversation.budget import budget_name
from hippo_core.protocols.conversation.dialogue import Dialogue, read, reworded
from hippo_core.protocols.conversation.generator import generate
from hippo_core.protocols.conversation.lines import write_lines
from hippo_core.protocols.conversation.phases import ANSWER_TOKENS, RAW, SCORED, evaluate, execute
from hippo_core.protocols.conversation.table import table_of
from hippo_core.protocols.conversation.techniques.base import TechniqueContext
from hippo_core.providers.local import LocalProvider
from hippo_core.results.frames import Frame
from hippo_core.text import OWN_ANSWER_TOKENS

DIALOGUES = "dialogues.jsonl"


def dialogues_of(cell: RunningCell) -> tuple[Dialogue, ...]:
    """The dialogues of a cell: those of its path, or drawn; kept in the record. LabError with file and line for one that is wrong."""
    parameters = cell.parameters
    dialogues = (
        read(parameters.dialogues)[: parameters.count]
        if parameters.dialogues
        else generate(parameters.count, parameters.seed, parameters.split, parameters.lengths)
    )
    if words := reworded(dialogues):
        print(words)
    lines = (dialogue.model_dump_json(exclude_defaults=True) + "\n" for dialogue in dialogues)
    write_text(cell.record / DIALOGUES, "".join(lines))
    return dialogues


def converse(cell: RunningCell) -> Frame:
    """Execute, evaluate and aggregate."""
    parameters, dialogues, lm = cell.parameters, dialogues_of(cell), cell.language_model
    budgets = [budget_name(budget) for budget in parameters.budgets]
    max_tokens = OWN_ANSWER_TOKENS if parameters.dialogues else ANSWER_TOKENS
    raw = execute(
        dialogues, parameters.techniques, budgets, TechniqueContext(lm, parameters.seed), LocalProvider(lm), max_tokens=max_tokens
    )
    write_lines(cell.record / RAW, raw)
    scored = evaluate(raw, dialogues)
    write_lines(cell.record / SCORED, scored)
    return table_of(scored)
