"""The tasks that are learnt in sequence: formal languages and modular arithmetic, enumerated whole, half of each to learn from.

The layouts and the places of the answers are those of KintaroAI's protocol (llm-fundamentals, EVAL.md, phases 2a and 2b), with one
difference: there all operations share one token, so that the same prompt has several right answers and no model can keep them all. Here
every task has a token of its own; the shared token is a control.

parity    CUE b1 .. b8 EQ answer         the sum of the bits modulo 2
copy      CUE b1 .. b8 SEP b1 .. b8
reverse   CUE b1 .. b8 SEP b8 .. b1
majority  CUE b1 .. b9 EQ answer         whether more than four bits are 1
add ...   BOS a CUE b EQ answer          of the residues modulo 97: a + b, a - b, a * b, a^2 + b^2
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from hippo_core.errors import LabError, unknown
from hippo_core.protocols.forgetting.task_file import Numbers, read_items

P = 97
SEP, EQ, BOS, EOS = 97, 98, 99, 100  # residues and bits come before
SHARED = {"formal": BOS, "modular": SEP}  # the cue that stands for every task of a family in the control
SPLIT_SEED = 42
Control = Literal["none", "one_token", "shuffled"]

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

    Raises:
        LabError: an answer is predicted outside the sequence.
    """

    name: str
    tokens: Numbers
    cue_at: int
    first: int
    train: Numbers
    val: Numbers
    test: Numbers

    def __post_init__(self) -> None:
        if not 0 <= self.first < self.tokens.shape[1] - 1:
            last = self.tokens.shape[1] - 2
            raise LabError(
                f"task {self.name}: its answer is predicted at place {self.first}, its sequence has such places from 0 to {last}"
            )

    @property
    def cue(self) -> int:
        """The token that says which task it is."""
        return int(self.tokens[0, self.cue_at])

    @property
    def answers(self) -> int:
        """How many tokens its answer has."""
        return self.tokens.shape[1] - 1 - self.first


def make_task(name: str, control: Control = "none", subset: float = 1.0) -> SequenceTask:
    """The task of that name, or of a file (task_file.py) whose path ends in .jsonl. `control`: "one_token": its cue is the one that all
    tasks of its family share; "shuffled": the answers of the items are exchanged among them, so that there is nothing to be generalised.
    `subset`: the share of the training items that is learnt from; what is held out stays the same. LabError for an unknown name."""
    if is_file(name):
        family, (prompts, answers) = "formal", read_items(Path(name))
        if control == "one_token":
            prompts[:, 0] = SHARED[family]
    elif name in CUES:
        family = "formal" if name in FORMAL else "modular"
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
    return SequenceTask(called(name), np.hstack([prompts, answers]), cue_at, prompts.shape[1] - 1, learnt, held_out[::2], held_out[1::2])


def is_file(name: str) -> bool:
    """Whether a task is one of a file."""
    return name.endswith(".jsonl")


def called(name: str) -> str:
    """What a task is called: its name, or that of its file without the ending."""
    return Path(name).stem if is_file(name) else name


def _formal(name: str, cue: int) -> tuple[Numbers, Numbers]:
    length, end, answer = FORMAL[name]
    bits = np.array(list(product((0, 1), repeat=length)), dtype=np.int64)
    column = np.ones((len(bits), 1), dtype=np.int64)
    return np.hstack([cue * column, bits, end * column]), answer(bits)


def _modular(name: str, cue: int) -> tuple[Numbers, Numbers]:
    a, b = (values.reshape(-1, 1) for values in np.divmod(np.arange(P * P, dtype=np.int64), P))
    column = np.ones_like(a)
    return np.hstack([BOS * column, a, cue * column, b, EQ * column]), MODULAR[name](a, b) % P


@dataclass(frozen=True)
class TaskBatch:
    """Items as the model takes them; the first dimensions may be several.

    Args:
        tokens: `(..., items, length)`, cut after the last place at which something is predicted.
        at: where tokens of answers are predicted, `(..., items, answers)`.
        answers: these tokens, likewise.
        weights: how much each counts, likewise; those of an item add up to 1, or to 0 where an item only fills up.
    """

    tokens: torch.Tensor
    at: torch.Tensor
    answers: torch.Tensor
    weights: torch.Tensor


class Corpus:
    """The items of several tasks under one numbering, padded to the same length.

    Args:
        tasks: in the order in which they are learnt.
    """

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
