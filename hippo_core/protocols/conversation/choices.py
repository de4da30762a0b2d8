"""What is asked: of each question, under each technique and budget, the lines that are shown, and their prompt."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, TypeVar

from hippo_core.files import in_a_line
from hippo_core.protocols.conversation.budget import FULL, Budget, ContextBudget
from hippo_core.protocols.conversation.dialogue import Dialogue, DialogueQuestion
from hippo_core.protocols.conversation.techniques import load_technique, technique_members
from hippo_core.protocols.conversation.techniques.base import Chosen, TechniqueContext, TurnQuery, timed
from hippo_core.providers.base import Provider
from hippo_core.text import on_one_line

# the specification's instruction, and what lets an answer be compared
INSTRUCTION = (
    "You are a helpful assistant. Answer based on the conversation history provided. "
    'Use as few words as it takes; say "unknown" where the conversation does not tell.'
)
T = TypeVar("T")
RANKED = 10  # ranks that are kept
UNBUDGETED = ("none", "full")  # techniques that show the same under every budget
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SelectedContext:
    """What a technique shows for a question within a budget. `select_ms`, `index_ms`: of choosing, and of reading the dialogue before.
    `error`: why the technique failed, in one line; nothing is shown then."""

    dialogue: Dialogue
    question: DialogueQuestion
    technique: str
    budget: str
    chosen: Chosen
    select_ms: float
    index_ms: float
    error: str | None = None


def choices(
    dialogues: Sequence[Dialogue], techniques: Sequence[str], budgets: Sequence[Budget], setting: TechniqueContext
) -> Iterator[SelectedContext]:
    """What each technique shows for each question within each budget; a technique without a budget once, as of the budget "full".
    `setting.lm` counts the tokens of a budget, whoever answers. LabError, before the first, for an unknown technique."""
    technique_members(techniques)
    count = lru_cache(maxsize=None)(lambda line: len(setting.lm.encode_text(f"{line}\n")))
    for name in techniques:
        technique = load_technique(name, setting)
        for dialogue in dialogues:
            cost = [count(turn.line) for turn in dialogue.turns]
            (choose, broken), index_ms = timed(lambda: _tried(lambda: technique.open(dialogue)))  # noqa: B023 - called at once
            for budget in [Budget(FULL)] if name in UNBUDGETED else budgets:
                context_budget = ContextBudget.of(budget, dialogue, cost, count)
                for question in dialogue.questions:
                    asked = TurnQuery(question.question, question.id, tuple(dialogue.indices(question.evidence)))
                    (chosen, error), ms = timed(lambda: _tried(lambda: choose(asked, context_budget)) if choose else (None, broken))  # noqa: B023
                    yield SelectedContext(dialogue, question, name, budget.name, chosen or Chosen((), ()), ms, index_ms, error)


def _tried(work: Callable[[], T]) -> tuple[T | None, str | None]:
    """What a call returns, or why it failed, in one line. A technique that cannot read a dialogue does not stop the others."""
    try:
        return work(), None
    except Exception as error:
        return None, in_a_line(error)


def calls(chosen: Iterable[SelectedContext], provider: Provider, max_tokens: int, temperature: float) -> list[tuple[Row, str]]:
    """Every call: what is known of it before, with the `lines` that are shown, and its prompt. Lines that the model's limit does not hold
    are not shown. Where a technique failed, or the question alone is too long, `error` says why, and it is not to be asked."""
    planned = []
    for choice in chosen:
        lines, too_long = _tried(lambda: provider.fitting(choice.chosen.lines, choice.question.question, max_tokens))  # noqa: B023
        failed, lines = choice.error or too_long, lines or ()
        dropped = len(choice.chosen.lines) - len(lines)
        text = prompt(lines, choice.question.question, provider.instructed)
        ranking = choice.chosen.ranking
        known = {
            "provider": provider.identity,
            "technique": choice.technique,
            "budget": choice.budget,
            "dialogue": choice.dialogue.id,
            "question": choice.question.id,
            "max_tokens": max_tokens,
            "temperature": temperature if provider.takes_temperature else None,
            "prompt_words": len(text.split()),
            "prompt_sha256": sha256(text.encode()).hexdigest(),
            "dropped": dropped,
            "lines": None if failed else list(lines),
            "places": None if failed else list(choice.chosen.indices[-len(lines) :]) if lines else [],
            "ranking": None if ranking is None else list(ranking[:RANKED]),
            "select_ms": choice.select_ms,
            "index_ms": choice.index_ms,
            "error": failed,
        }
        planned.append((known, text))
    return planned


def prompt(lines: Sequence[str], question: str, instructed: bool) -> str:
    """The specification's prompt: instruction, history and question, with blank lines between. `instructed`: the provider brings an
    instruction of its own, and history and question suffice."""
    shown = map(on_one_line, lines)
    return "\n".join([*shown, question]) if instructed else "\n\n".join([INSTRUCTION, *shown, f"User: {question}"])
