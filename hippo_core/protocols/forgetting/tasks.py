"""The tasks that are learnt in sequence: formal languages and modular arithmetic, enumerated whole, half of each to learn from.

The layouts and the places of the answers are those of KintaroAI's protocol (llm-fundamentals, EVAL.md, phases 2a and 2b), with one
difference: there all operations share one token, so that the same prompt has several right answers and no model can keep them all. Here
every task has a token of its own; the shared token is a control.

parity    CUE b1 .. b8 EQ answer         the sum of the bits modulo 2
copy      CUE b1 .. b8 SEP b1 .. b8
reverse   CUE b1 .. b8 SEP b8 .. b1
majority  CUE b1 .. b9 EQ answer         whether more than four bits are 1
add ...   BOS a CUE b EQ answer          of the residues modulo 97: a + b, a - b, a * b, a^2 + b^2

A task of one's own is a JSONL file, an item a line, {"prompt": [tokens], "answer": [tokens]}. Tokens are whole numbers, 0 or more; the
model says how high they may be. All prompts are of one length and begin with the same token, the cue; all answers are of one length. The
items are all that there is of the task.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hippo_core.errors import LabError, unknown

Numbers = NDArray[np.int64]
P = 97
SEP, EQ, BOS, EOS = 97, 98, 99, 100  # residues and bits come before
SHARED = {"formal": BOS, "modular": SEP}  # the cue that stands for every task of a family in the control
SPLIT_SEED = 42
FEWEST = 8  # items: two to score, two to say when a task is learnt
Control = Literal["none", "one_token", "shuffled"]
Tokens = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]

FORMAL: Mapping[str, tuple[int, int, Callable[[Numbers], Numbers]]] = {  # the number of bits, what ends the prompt, the answer
    "parity": (8, EQ, lambda bits: bits.sum(1, keepdims=True) % 2),
    "copy": (8, SEP, lambda bits: bits),
    "reverse": (8, SEP, lambda bits: bits[:, ::-1]),
    "majority": (9, EQ, lambda bits: (bits.sum(1, keepdims=True) > 4).astype(np.int64)),
}
MODULAR: Mapping[str, Callable[[Numbers, Numbers], Numbers]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "squares": lambda a, b: a * a + b * b,
}
CUES = {name: EOS + 1 + number for names in (FORMAL, MODULAR) for number, name in enumerate(names)}
VOCABULARY = EOS + 1 + len(FORMAL)


@dataclass(frozen=True)
class SequenceTask:
    """A task, enumerated whole.

    Args:
        tokens: prompt and answer of every item, `(items, length)`.
        cue_at: the place of the cue, which is the same token in every item.
        first: the place of the token at which the answer's first token is predicted, the seed's `-p`.
        train, val, test: the items of each split. Half are learnt from; of the others every second one says when to stop.
    """

    name: str
    tokens: Numbers
    cue_at: int
    first: int
    train: Numbers
    val: Numbers
    test: Numbers

    @property
    def cue(self) -> int:
        """The token that says which task it is."""
        return int(self.tokens[0, self.cue_at])

    @property
    def answers(self) -> int:
        """How many tokens its answer has."""
        return self.tokens.shape[1] - 1 - self.first


def make_task(name: str, control: Control = "none", subset: float = 1.0) -> SequenceTask:
    """The task of that name, or of a file whose path ends in .jsonl. LabError for an unknown name.

    Args:
        control: "one_token": its cue is the one that all tasks of its family share; "shuffled": the answers of the items are exchanged.
        subset: the share of the training items that is learnt from; what is held out stays the same.
    """
    family, called = "modular" if name in MODULAR else "formal", name
    if name.endswith(".jsonl"):
        called, (prompts, answers) = Path(name).stem, read_items(Path(name))
        if control == "one_token":
            prompts[:, 0] = SHARED[family]
    elif name in CUES:
        cue = SHARED[family] if control == "one_token" else CUES[name]
        prompts, answers = _formal(name, cue) if family == "formal" else _modular(name, cue)
    else:
        raise unknown("task", name, (*CUES, "PATH.jsonl"))
    if control == "shuffled":
        answers = answers[np.random.RandomState(SPLIT_SEED + 1).permutation(len(answers))]
    order = np.random.RandomState(SPLIT_SEED).permutation(len(prompts))
    half = len(prompts) // 2
    learnt, held_out = order[: max(1, round(subset * half))], order[half:]
    cue_at = 0 if family == "formal" else 2
    return SequenceTask(called, np.hstack([prompts, answers]), cue_at, prompts.shape[1] - 1, learnt, held_out[::2], held_out[1::2])


def _formal(name: str, cue: int) -> tuple[Numbers, Numbers]:
    length, end, answer = FORMAL[name]
    bits = np.array(list(product((0, 1), repeat=length)), dtype=np.int64)
    column = np.ones((len(bits), 1), dtype=np.int64)
    return np.hstack([cue * column, bits, end * column]), answer(bits)


def _modular(name: str, cue: int) -> tuple[Numbers, Numbers]:
    a, b = (values.reshape(-1, 1) for values in np.divmod(np.arange(P * P, dtype=np.int64), P))
    column = np.ones_like(a)
    return np.hstack([BOS * column, a, cue * column, b, EQ * column]), MODULAR[name](a, b) % P


class TaskItem(BaseModel):
    """A line of a task's file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    prompt: Tokens
    answer: Tokens


def read_items(path: Path) -> tuple[Numbers, Numbers]:
    """Prompts `(items, length)` and answers `(items, answers)` of a file. LabError with file and line where an item is none, differs from
    the first in length or cue, or has a prompt again; and where there are too few items."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"task file {path} cannot be read as UTF-8 text: {error}") from None
    first: dict[str, int] = {}  # what is the same in all items
    numbers: dict[tuple[int, ...], int] = {}  # of each prompt its line
    prompts, answers = [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        item = _read(line, f"{path}:{number}")
        shape = {"a prompt of length": len(item.prompt), "an answer of length": len(item.answer), "the cue": item.prompt[0]}
        first = first or shape
        for name, got in shape.items():
            if got != first[name]:
                raise LabError(f"{path}:{number}: expected {name} {first[name]}, as in the first item, got {got}")
        if (earlier := numbers.setdefault(tuple(item.prompt), number)) != number:
            raise LabError(f"{path}:{number}: the prompt of line {earlier} again; each prompt is an item, once")
        prompts.append(item.prompt)
        answers.append(item.answer)
    if len(prompts) < FEWEST:
        raise LabError(f"{path}: expected at least {FEWEST} items, got {len(prompts)}")
    return np.array(prompts, dtype=np.int64), np.array(answers, dtype=np.int64)


def _read(line: str, where: str) -> TaskItem:
    try:
        return TaskItem.model_validate_json(line)
    except ValidationError as error:
        fault = error.errors()[0]
        field = ".".join(map(str, fault["loc"]))
        raise LabError(f'{where}: expected {{"prompt": [tokens], "answer": [tokens]}}; {field}: {fault["msg"]}') from None


@dataclass(frozen=True)
class TaskBatch:
    """Items as the model takes them; the first dimensions may be several.

    Args:
        tokens: `(..., items, length)`, cut after the last position at which something is predicted.
        at: where tokens of answers are predicted, `(..., items, answers)`.
        answers: these tokens, likewise.
        weights: how much each counts, likewise; those of an item add up to 1, or to 0 where an item only fills up.
    """

    tokens: torch.Tensor
    at: torch.Tensor
    answers: torch.Tensor
    weights: torch.Tensor


class Corpus:
    """The items of several tasks, in the order in which they are learnt, under one numbering, padded to the same length."""

    def __init__(self, tasks: Sequence[SequenceTask]) -> None:
        self.tasks = tasks
        length, count = max(task.tokens.shape[1] for task in tasks), max(task.answers for task in tasks)
        self.starts = np.cumsum([0, *(len(task.tokens) for task in tasks)])
        self.tokens = torch.full((int(self.starts[-1]), length), EOS)
        self.at = torch.zeros((len(self.tokens), count), dtype=torch.long)
        self.answers, self.weights = self.at.clone(), torch.zeros(self.at.shape)
        for start, task in zip(self.starts, tasks, strict=False):
            rows = slice(int(start), int(start) + len(task.tokens))
            self.tokens[rows, : task.tokens.shape[1]] = torch.from_numpy(task.tokens)
            self.at[rows] = task.first + torch.arange(count).clamp(max=task.answers - 1)
            self.answers[rows, : task.answers] = torch.from_numpy(task.tokens[:, task.first + 1 :])
            self.weights[rows, : task.answers] = 1 / task.answers

    def items(self, task: int, split: str) -> Numbers:
        """The numbers of a task's items in a split: train, val or test."""
        return self.starts[task] + getattr(self.tasks[task], split)

    def batch(self, items: torch.Tensor) -> TaskBatch:
        """The items of these numbers, `(...,)`; -1 stands for none."""
        at, weights = self.at[items], self.weights[items] * (items >= 0).unsqueeze(-1)
        length = int(at.max()) + 1
        count = max(1, int((weights > 0).flatten(0, -2).any(0).sum()))
        return TaskBatch(self.tokens[items][..., :length], at[..., :count], self.answers[items][..., :count], weights[..., :count])
