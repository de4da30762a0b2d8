"""Training as a loop that can be killed: checkpoints, resumption, a log; the trainee decides what is trained, and on what.

Every step's batch follows from (seed, step).
"""

import ctypes
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch
from pydantic import BaseModel
from torch import Tensor
from torch.nn.functional import cross_entropy

from hippo_core.errors import LabError
from hippo_core.files import made_folder
from hippo_core.models.matmul import half_products, quicken_products
from hippo_core.training import kept_tensors, packed_examples

Log = dict[str, float]
CHECKPOINT = "checkpoint.safetensors"


class Diverged(LabError):
    """A loss, or its gradient, is no number. It is raised before anything is changed by it."""


class Trainee(Protocol):
    """What learns: its recipe, the tensors that change, their optimizers, and what a step and a look at validation lessons do."""

    recipe: Any
    optimizers: list[torch.optim.Optimizer]

    def weights(self) -> dict[str, Tensor]:
        """The tensors that are trained, by name."""
        ...

    def learn(self, step: int) -> Log:
        """Draw the batch of a step and learn from it; numbers for the log. `Diverged` where the loss is no number."""
        ...

    def examine(self) -> Log:
        """Accuracy on validation lessons, by skill."""
        ...


def train(trainee: Trainee, folder: Path, say: Callable[[str], None] = print, every: int = 200) -> None:
    """Train to the recipe's last step, with a checkpoint every `every` steps in `folder`, from which a second call goes on.

    The log is `folder/log.jsonl`. LabError where the folder holds another recipe's checkpoint, or a damaged one, and where the training
    diverges: the checkpoint is then of the last step that was good.
    """
    recipe = trainee.recipe
    torch.set_num_threads(recipe.threads)
    quicken_products()
    first, seconds = resume(trainee, folder)
    started = time.perf_counter() - seconds
    with keep_freed_memory():
        for step in range(first, recipe.steps):
            try:
                numbers = trainee.learn(step)
            except Diverged as error:
                checkpoint(trainee, step, time.perf_counter() - started, folder)
                raise LabError(f"{error}; what was learnt before it is kept in {folder / CHECKPOINT}") from None
            done, seconds = step + 1, time.perf_counter() - started
            last = done == recipe.steps
            examined = done % every == 0 or last
            if examined:
                numbers = numbers | trainee.examine()
            if examined or done % (every // 4 or 1) == 0:
                log(folder, {"step": done, "seconds": round(seconds)} | {name: round(value, 4) for name, value in numbers.items()})
                shown = "  ".join(f"{name} {value:.3f}" for name, value in numbers.items() if value == value)
                say(f"step {done}/{recipe.steps}  {seconds / 60:.1f} min  {shown}")
            if examined:
                checkpoint(trainee, done, time.perf_counter() - started, folder)


@contextmanager
def keep_freed_memory() -> Iterator[None]:
    """While it lasts, glibc keeps what large tensors leave behind instead of faulting it in again at every step. Nothing happens where the
    C library has no `mallopt`."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        yield
        return
    trim, mmap = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD of malloc.h
    mallopt(trim, 2**31 - 1)
    mallopt(mmap, 2**31 - 1)
    try:
        yield
    finally:  # what the Makefile sets
        mallopt(trim, 2**28)
        mallopt(mmap, 2**25)


def share_of_rate(step: int, steps: int, warmup: int, cooldown: float) -> float:
    """Share of the full learning rate: up over the warm-up, level, then down in a line to nothing over the last `cooldown` of all."""
    return min(1.0, (step + 1) / warmup, (steps - step) / max(1, round(steps * cooldown)))


def set_rates(optimizers: list[torch.optim.Optimizer], full: tuple[float, ...], share: float) -> None:
    """Set each optimizer's learning rate to a share of its full one."""
    for optimizer, rate in zip(optimizers, full, strict=True):
        for group in optimizer.param_groups:
            group["lr"] = rate * share


def descend(weights: Iterable[Tensor], optimizers: list[torch.optim.Optimizer]) -> None:
    """One step of each optimizer along gradients of a norm of 1 at most, which are then gone."""
    torch.nn.utils.clip_grad_norm_(weights, 1.0)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def answer_loss(model: Any, batch: packed_examples.PackedBatch, **options: Any) -> tuple[Tensor, Tensor]:
    """The weighted mean loss of a batch's targets, and the mean loss of the answers alone; logits only where there is a loss."""
    with half_products(batch.ids.device):
        hidden = model.model(batch.ids, position_ids=batch.positions, attention_mask=batch.mask[:, None], use_cache=False, **options)[0]
        chosen = batch.labels != packed_examples.IGNORE
        logits = model.lm_head(hidden[chosen])
    losses = cross_entropy(logits.float(), batch.labels[chosen], reduction="none")
    weights = batch.weights[chosen]
    return (losses * weights).sum() / weights.sum(), losses[weights == 1.0].mean().detach()


@torch.inference_mode()
def right_answers(model: Any, batch: packed_examples.PackedBatch) -> list[tuple[str, bool]]:
    """Of every answer its skill, and whether each of its tokens is the likeliest: greedy decoding gives the answer just then."""
    with half_products(batch.ids.device):
        hidden = model.model(batch.ids, position_ids=batch.positions, attention_mask=batch.mask[:, None], use_cache=False)[0]
        answers = [
            (skill, bool((model.lm_head(hidden[row, positions]).argmax(-1) == batch.labels[row, positions]).all()))
            for row, positions, skill in batch.skills
        ]
    return answers


def log(folder: Path, line: Log) -> None:
    """Add a line to the training's log; what could not be measured in this step (NaN) is left out."""
    with (folder / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({name: value for name, value in line.items() if value == value}) + "\n")


def curve_of(folder: Path) -> list[dict[str, Any]]:
    """The lines of a training's log, each step once: a resumed run logs some steps twice."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return list({line["step"]: line for line in lines}.values())


def checkpoint(trainee: Trainee, step: int, seconds: float, folder: Path) -> None:
    """Weights and optimizer states in one safetensors file, which replaces the one before it atomically."""
    tensors = {f"model.{name}": weight.detach().clone() for name, weight in trainee.weights().items()}
    for number, optimizer in enumerate(trainee.optimizers):
        for index, state in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{number}.{index}.{key}": torch.as_tensor(value).clone() for key, value in state.items()}
    facts = {"step": str(step), "seconds": str(seconds), "recipe": trainee.recipe.model_dump_json()}
    kept_tensors.write(folder / CHECKPOINT, tensors, facts)


def resume(trainee: Trainee, folder: Path) -> tuple[int, float]:
    """Load the folder's checkpoint, where there is one: (its step, the seconds spent so far). LabError for another recipe's or a damaged
    one.
    """
    path = made_folder(folder) / CHECKPOINT
    if not path.exists():
        return 0, 0.0
    tensors, facts = kept_tensors.read(path, {"step", "seconds", "recipe"}, f"delete {folder} to train anew")
    recipe: BaseModel = trainee.recipe
    if facts["recipe"] != recipe.model_dump_json():
        raise LabError(f"{path} is of another recipe; delete {folder} to train anew, or go on with {facts['recipe']}")
    with torch.no_grad():
        for name, weight in trainee.weights().items():
            weight.copy_(tensors[f"model.{name}"])
    for number, optimizer in enumerate(trainee.optimizers):
        states: dict[int, dict] = {}
        for name, tensor in tensors.items():
            kind, *rest = name.split(".")
            if kind == "optimizer" and rest[0] == str(number):
                states.setdefault(int(rest[1]), {})[rest[2]] = tensor
        optimizer.load_state_dict(optimizer.state_dict() | {"state": states})
    return int(facts["step"]), float(facts["seconds"])
