"""A task of one's own: a JSONL file, an item a line, {"prompt": [tokens], "answer": [tokens]}.

Tokens are whole numbers, 0 or more; the model says how high they may be. All prompts are of one length and begin with the same token, the
task's cue; all answers are of one length. The items are all that there is of the task: half of them are learnt from, the others held out.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hippo_core.errors import LabError

Numbers = NDArray[np.int64]
FEWEST = 8  # items: two to score, two to say when a task is learnt
Token = Annotated[int, Field(ge=0)]
Tokens = Annotated[list[Token], Field(min_length=1)]


class TaskItem(BaseModel):
    """A line."""

    model_config = ConfigDict(extra="forbid", strict=True)

    prompt: Tokens
    answer: Tokens


def read_items(path: Path) -> tuple[Numbers, Numbers]:
    """Prompts `(items, length)` and answers `(items, answers)` of a file.

    Raises:
        LabError: with file and line: no such file, no item, another length or cue than the first item's, a prompt with two answers; and
            where there are too few items.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"task file {path} cannot be read as UTF-8 text: {error}") from None
    items: dict[tuple[int, ...], tuple[TaskItem, int]] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            item = _read(line, f"{path}:{number}")
            first, _ = next(iter(items.values()), (item, number))
            for name, got, expected in _differences(item, first):
                raise LabError(f"{path}:{number}: expected {name} {expected}, as in the first item, got {got}")
            earlier = items.setdefault(tuple(item.prompt), (item, number))
            if earlier[1] != number:
                raise LabError(f"{path}:{number}: the prompt of line {earlier[1]} again; each prompt is an item, once")
    if len(items) < FEWEST:
        raise LabError(f"{path}: expected at least {FEWEST} items, got {len(items)}")
    prompts, answers = ([getattr(item, name) for item, _ in items.values()] for name in ("prompt", "answer"))
    return np.array(prompts, dtype=np.int64), np.array(answers, dtype=np.int64)


def _read(line: str, where: str) -> TaskItem:
    try:
        return TaskItem.model_validate_json(line)
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        raise LabError(f'{where}: expected {{"prompt": [tokens], "answer": [tokens]}}; {place}: {fault["msg"]}') from None


def _differences(item: TaskItem, first: TaskItem) -> list[tuple[str, Any, Any]]:
    """In what an item differs from the first one, and must not: what, of this one, of the first."""
    found = [
        ("a prompt of length", len(item.prompt), len(first.prompt)),
        ("an answer of length", len(item.answer), len(first.answer)),
        ("the cue", item.prompt[0], first.prompt[0]),
    ]
    return [one for one in found if one[1] != one[2]]
