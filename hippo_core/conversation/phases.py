"""The three phases, each of which can be run again alone: execute (answers, raw.jsonl), evaluate (scores, scored.jsonl), aggregate (rows).

A line of raw.jsonl is an answer to a question about a dialogue under a technique and a budget, with the lines that were shown; a line of
scored.jsonl the same with its scores.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from hippo_core.conversation.budget import FULL, Budget, Room
from hippo_core.conversation.dialogue import Dialogue, Question
from hippo_core.conversation.executor import Executor, LocalModel, plain_prompt
from hippo_core.conversation.scores import scored
from hippo_core.conversation.techniques import load_technique
from hippo_core.conversation.techniques.base import Asked, Chosen, Setting, timed
from hippo_core.files import LabError, write_text

RAW, SCORED = "raw.jsonl", "scored.jsonl"
RANKED = 10  # places of a ranking that are kept
UNBUDGETED = ("none", "full")  # techniques that show the same under every budget
Row = dict[str, Any]


def choices(dialogues: Sequence[Dialogue], techniques: Sequence[str], budgets: Sequence[Budget], setting: Setting) -> Iterator[Row]:
    """What each technique shows for each question within each budget; a technique without a budget once, as of the budget "full"."""
    lm = setting.lm
    count = lru_cache(maxsize=None)(lambda line: len(lm.encode(f"{line}\n")))
    for name in techniques:
        technique = load_technique(name, setting)
        for dialogue in dialogues:
            cost = [count(turn.line) for turn in dialogue.turns]
            choose, index_ms = timed(lambda: technique.open(dialogue))  # noqa: B023 - called at once
            for budget in [Budget(FULL)] if name in UNBUDGETED else budgets:
                room = Room.of(budget, dialogue, cost, count)
                for question in dialogue.questions:
                    asked = Asked(question.question, question.id, tuple(dialogue.places(question.evidence)))
                    chosen, ms = timed(lambda: choose(asked, room))  # noqa: B023
                    yield _row(dialogue, question, name, budget, chosen) | {"select_ms": ms, "index_ms": index_ms}


def _row(dialogue: Dialogue, question: Question, name: str, budget: Budget, chosen: Chosen) -> Row:
    return {
        "dialogue": dialogue.id,
        "question": question.id,
        "technique": name,
        "budget": budget.name,
        "lines": list(chosen.lines),
        "places": list(chosen.places),
        "ranking": None if chosen.ranking is None else list(chosen.ranking[:RANKED]),
    }


def execute(
    dialogues: Sequence[Dialogue],
    techniques: Sequence[str],
    budgets: Sequence[Budget],
    setting: Setting,
    executor: Executor,
    say: Callable[[str], object] = print,
) -> list[Row]:
    """The raw rows: what was shown, and the answer to it. `setting.lm` counts the tokens of a budget, whoever answers."""
    texts = {(dialogue.id, question.id): question.question for dialogue in dialogues for question in dialogue.questions}
    rows: list[Row] = []
    for name in techniques:
        own, ms = timed(lambda: list(choices(dialogues, [name], budgets, setting)))  # noqa: B023
        prompts = []
        for row in own:
            prompt, dropped = _prompt(executor, row["lines"], texts[row["dialogue"], row["question"]])
            if dropped:  # what the model's limit does not hold was not shown
                row["lines"], row["places"] = row["lines"][dropped:], row["places"][dropped:]
            prompts.append(prompt)
        answers, answer_ms = timed(lambda: _answers(executor, prompts))  # noqa: B023
        for row, answer in zip(own, answers, strict=True):
            row |= {"response": answer.text, "tokens_in": answer.tokens_in, "tokens_out": answer.tokens_out}
            row |= {"seconds": answer.seconds, "error": answer.error}
        rows += own
        say(f"{name}: {len(own)} answers; choosing {ms / 1e3:.1f} s, answering {answer_ms / 1e3:.1f} s")
    return rows


def _prompt(executor: Executor, lines: Sequence[str], question: str) -> tuple[str, int]:
    return executor.prompt(lines, question) if isinstance(executor, LocalModel) else (plain_prompt(lines, question), 0)


def _answers(executor: Executor, prompts: Sequence[str]) -> list[Any]:
    return executor.answers(prompts) if isinstance(executor, LocalModel) else [executor.answer(prompt) for prompt in prompts]


def evaluate(raw: Iterable[Row], dialogues: Sequence[Dialogue]) -> list[Row]:
    """The rows with their scores. LabError for a row about a dialogue or question that is not there."""
    known = {(dialogue.id, question.id): (dialogue, question) for dialogue in dialogues for question in dialogue.questions}
    found = []
    for row in raw:
        pair = known.get((row["dialogue"], row["question"]))
        if pair is None:
            raise LabError(
                f"no question {row['question']!r} of a dialogue {row['dialogue']!r}; evaluate with the dialogues that were asked"
            )
        found.append(row | scored(row, *pair))
    return found


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Rows as JSON lines, whole or not at all; what was not measured is null."""
    write_text(path, "".join(json.dumps(_plain(row), ensure_ascii=False, allow_nan=False) + "\n" for row in rows))


def _plain(row: Mapping[str, Any]) -> Row:
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}


def read_rows(path: Path) -> list[Row]:
    """Rows of a file that `write_rows` wrote. LabError, with the line, for anything else."""
    if not path.is_file():
        raise LabError(f"no such file: {path}; expected rows of an earlier phase")
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise LabError(f"{path}:{number}: expected a JSON object, got {error.msg}; run the phase before this one again") from None
        if not isinstance(row, dict) or not {"dialogue", "question", "technique", "budget"} <= row.keys():
            raise LabError(
                f"{path}:{number}: expected a row with dialogue, question, technique and budget; run the phase before this one again"
            )
        rows.append(row)
    return rows
