"""Phase after phase, a task each; after every phase all tasks are examined: the rows of the experiment `forgetting`."""

import hashlib
import json
import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from hippo_core.discovery import find_member, member
from hippo_core.errors import LabError
from hippo_core.files import home, made_folder, remove_made, seal, sha256, write_bytes
from hippo_core.models.checksums import digest
from hippo_core.models.matmul import quicken_products
from hippo_core.protocols.forgetting import checkpoint, learners
from hippo_core.protocols.forgetting.checkpoint import TrainingState
from hippo_core.protocols.forgetting.learner import Learner, Scores
from hippo_core.protocols.forgetting.learners.base import ContinualLearner
from hippo_core.protocols.forgetting.table import COLUMNS, LEVELS
from hippo_core.protocols.forgetting.tasks import Corpus, make_task
from hippo_core.protocols.forgetting.transformer import load_shape
from hippo_core.source_code import closure

CHECKPOINTS = "data/training/forgetting"
LEARNT = 0.99  # of the validation answers: from there on a task counts as learnt
EVERY = 10  # steps from one evaluation to the next
SOME = 64  # items by which an evaluation judges the training loss, and what is left of an earlier task
SAVED_EVERY = 20.0  # seconds
PHASE = "phase_{}.safetensors"
DRY_STEPS, DRY_MODELS = 20, 2
AT_LEVELS = [name for name in COLUMNS if "_at_" in name]


class Course:
    """Models that go through the phases; a checkpoint and the curve lie in `folder` while it goes on; `bar`: a progress bar is drawn.
    LabError where a task does not fit the preset, a batch is larger than a task's training items, or a checkpoint is of other models."""

    def __init__(self, parameters: Any, folder: Path, say: Callable[[str], None] = print, bar: bool = False) -> None:
        self.parameters, self.folder, self.say = parameters, folder, say
        torch.set_num_threads(parameters.threads)
        quicken_products()
        shape = load_shape(parameters.model, **{name: getattr(parameters, name) for name in ("fc1", "fc2", "sort", "bf16")})
        self.corpus = Corpus([make_task(name, parameters.control, parameters.subset) for name in parameters.tasks])
        shape.require(self.corpus, parameters.model)
        for task in self.corpus.tasks:
            if parameters.batch > len(task.train):
                raise LabError(f"a batch of {parameters.batch} is larger than the {len(task.train)} training items of task {task.name}")
        count = min(parameters.inits, DRY_MODELS) if parameters.dry_run else parameters.inits
        seeds = range(parameters.seed, parameters.seed + count)
        self.learner = Learner(shape, self.corpus, seeds, parameters.rate, parameters.decay, parameters.compiled)
        self.method: ContinualLearner = member(learners.__name__, parameters.method, "method")(self.learner, parameters)
        self.steps = min(parameters.steps, DRY_STEPS) if parameters.dry_run else parameters.steps
        self.everyone = list(range(count))
        self.bar = tqdm(total=len(self.corpus.tasks) * self.steps, unit="step", disable=not bar)
        self.file = folder / "checkpoint.safetensors"
        self.curve = folder / "curve.jsonl"  # the losses and accuracies of every evaluation, a JSON object a line

    def run(self) -> list[dict[str, Any]]:
        """Go through all phases, or through those that a killed run left; the rows."""
        state = checkpoint.resume(self.file, self.learner, self.method)
        if state is None:
            self.curve.unlink(missing_ok=True)
            state = self.arrived(0, [])
            state.rows = self.examined(state)
        else:
            self.cut_curve(state)
            self.say(f"goes on in phase {state.phase + 1}, step {state.step or 0}")
        while state.phase < len(self.corpus.tasks):
            if state.step is None:
                self.method.begin(state.phase)
                state.step = 0
                self.measured(state)
            self.learn(state)
            self.method.end(state.phase)
            rows = state.rows + self.examined(state, state.phase + 1)
            last = pd.DataFrame(rows[-len(self.everyone) * len(self.corpus.tasks) :])
            accuracies: Any = last.groupby("task", sort=False)["accuracy"].mean()
            shares = ", ".join(f"{task} {share:.2f}" for task, share in accuracies.items())
            self.say(f"phase {state.phase + 1} ({max(state.steps)} steps, {state.seconds:.0f} s): {shares}")
            self.keep_phase(state.phase + 1)
            state = self.arrived(state.phase + 1, rows)
            self.keep(state)
        self.bar.refresh()  # it draws ten times a second at most, and a last step may fall between
        return state.rows

    def keep(self, state: TrainingState) -> None:
        """Write where the course stands."""
        state.curve = seal(self.curve)
        checkpoint.keep(self.file, state, self.learner, self.method)

    def keep_phase(self, phase: int) -> None:
        """Write the checkpoint of a phase that is over; the oldest go while all are larger than the parameters allow."""
        if not (most := self.parameters.checkpoint_mb * 1_000_000):
            return
        checkpoint.keep_phase(self.folder / PHASE.format(phase), phase, self.learner, self.method)
        kept = [path for number in range(1, phase + 1) if (path := self.folder / PHASE.format(number)).exists()]
        while sum(path.stat().st_size for path in kept) > most:
            kept[0].unlink()
            self.say(f"{kept.pop(0).name} is not kept: checkpoints may have {self.parameters.checkpoint_mb} MB (checkpoint_mb=)")

    def cut_curve(self, state: TrainingState) -> None:
        """Leave of the curve what stood there at the checkpoint. LabError where that is not as it was written."""
        content = self.curve.read_bytes()[: state.curve["bytes"]] if self.curve.is_file() else b""
        if hashlib.sha256(content).hexdigest() != state.curve["sha256"]:
            raise LabError(f"{self.curve} is damaged: it is not what stood there at the checkpoint; delete {self.folder} to begin anew")
        write_bytes(self.curve, content)

    def arrived(self, phase: int, rows: list[dict[str, Any]]) -> TrainingState:
        """Before a phase."""
        learning = self.method.tasks(phase) if phase < len(self.corpus.tasks) else []
        reached = {str(task): [None for _ in self.everyone] for task in learning}
        return TrainingState(phase, None, list(self.everyone), reached, [0 for _ in self.everyone], 0.0, rows)  # type: ignore[arg-type]

    def learn(self, state: TrainingState) -> None:
        """Learn until every model has learnt the phase's tasks, or the steps are used up."""
        phase = state.phase
        since, saved = time.monotonic() - state.seconds, time.monotonic()
        assert state.step is not None
        while state.models and state.step < self.steps:
            state.step += 1
            self.step(phase, state.step, state.models)
            for model in state.models:
                state.steps[model] = state.step
            if state.step % EVERY == 0 or state.step == self.steps:
                state.seconds = time.monotonic() - since
                self.evaluate(state)
                if time.monotonic() - saved > SAVED_EVERY:
                    self.keep(state)
                    saved = time.monotonic()

    def step(self, phase: int, step: int, models: list[int]) -> None:
        """One update of these models."""
        learner, method = self.learner, self.method
        items = torch.from_numpy(np.stack([self.drawn(model, phase, step) for model in models]))
        count, more = items.shape[1], method.more(phase, step, models)
        batch = self.corpus.batch(items if more is None else torch.cat([items, more], 1))
        vectors = method.full_weights(learner.stacked(models), models)
        scores = learner.scored(vectors, batch)
        learner.update(scores.mean(scores.nats) + method.penalty(vectors, phase, items, models))
        if more is not None:
            method.seen(phase, step, models, Scores(*(part[:, count:] for part in scores)))

    def drawn(self, model: int, phase: int, step: int) -> np.ndarray:
        """A model's items of a step: of each task in turn, in an order that is new with every round through its training items."""
        tasks, batch, seed = self.method.tasks(phase), self.parameters.batch, self.learner.seeds[model]
        positions = np.arange((step - 1) * batch, step * batch)
        chosen = np.empty(batch, dtype=np.int64)
        for turn, task in enumerate(tasks):
            mine = positions % len(tasks) == turn
            items = self.corpus.items(task, "train")
            rounds, within = np.divmod(positions[mine] // len(tasks), len(items))
            orders = {number: np.random.default_rng([seed, phase, task, number]).permutation(items) for number in set(rounds.tolist())}
            chosen[mine] = [orders[number][index] for number, index in zip(rounds.tolist(), within, strict=True)]
        return chosen

    def evaluate(self, state: TrainingState) -> None:
        """Examine the validation items of what is learnt; models that have learnt all of it stop, where the parameters say so."""
        line = self.measured(state)
        for task, reached in state.reached.items():
            for model, share in zip(state.models, line[self.corpus.tasks[int(task)].name]["right"], strict=True):
                if share >= LEARNT and reached[model] is None:
                    reached[model] = [state.step, state.seconds]  # type: ignore[list-item]
        if self.parameters.early_stop:
            state.models = [model for model in state.models if any(reached[model] is None for reached in state.reached.values())]

    def measured(self, state: TrainingState) -> dict[str, Any]:
        """A line of the curve, which is written: of the models that go on the loss of the phase's first training items, and what they
        answer of the validation items of all tasks so far; of a task that the phase does not learn, of the first of them."""
        examined, learning = self.learner.examined, self.method.full_weights(self.learner.stacked(state.models), state.models)
        line: dict[str, Any] = {"phase": state.phase, "step": state.step, "seconds": round(state.seconds, 3), "models": list(state.models)}
        line["training"] = examined(learning, state.phase, "train", SOME)[0].tolist()
        for task in range(state.phase + 1):
            now = str(task) in state.reached
            vectors = learning if now else self.method.vectors(task)[state.models]
            nats, right = (values.tolist() for values in examined(vectors, task, "val", None if now else SOME))
            line[self.corpus.tasks[task].name] = {"nats": nats, "right": right}
        made_folder(self.folder)
        with self.curve.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.bar.update(state.phase * self.steps + (state.step or 0) - self.bar.n)
        return line

    def at_levels(self, phase: int) -> list[dict[str, dict[str, float]]]:
        """Of each model what it answered of all tasks so far when a phase's training loss fell to each level; nothing before the first."""
        if not phase:
            return [{} for _ in self.everyone]
        lines = [json.loads(line) for line in self.curve.read_text(encoding="utf-8").splitlines()]
        mine = [line for line in lines if line["phase"] == phase - 1]
        names = [task.name for task in self.corpus.tasks[:phase]]
        return [matched(mine, model, names, LEVELS) for model in self.everyone]

    def examined(self, state: TrainingState, phase: int = 0) -> list[dict[str, Any]]:
        """A row a task and model after so many phases, 0: before the first; `state` says how the last of them went."""
        rows, at_levels, nothing = [], self.at_levels(phase), [None for _ in self.everyone]
        for index, task in enumerate(self.corpus.tasks):
            nats, right = (values.tolist() for values in self.learner.examined(self.method.vectors(index), index, self.parameters.split))
            reached = state.reached.get(str(index), nothing) if phase else nothing
            for model, seed in enumerate(self.learner.seeds):
                steps, seconds = reached[model] or (math.nan, math.nan)
                row = {"entry": f"{phase}/{task.name}", "init": str(seed), "phase": phase, "task": task.name, "own": index + 1}
                row |= {"loss": nats[model], "accuracy": right[model], "steps_to_99": steps, "seconds_to_99": seconds}
                row |= {"taken": state.steps[model], "seconds": state.seconds} | dict.fromkeys(AT_LEVELS, math.nan)
                rows.append(row | at_levels[model].get(task.name, {}))
        return rows


def forget(cell: Any, say: Callable[[str], None] = print) -> pd.DataFrame:
    """Go through the phases; the rows. A killed run of the same parameters and code goes on where it stopped. The record gets the
    curve (`curve.jsonl`) and the checkpoints of phases (`phase_1.safetensors` ...)."""
    values = {name: value for name, value in cell.parameters.values().items() if name != "threads"}
    learner = find_member(learners.__name__, cell.parameters.method, "method").module
    code = {name: sha256(path) for name, path in closure([__name__, learner]).items()}
    folder = home() / CHECKPOINTS / digest({"parameters": values, "code": code})[:16]
    course = Course(cell.parameters, folder, say, bar=not cell.parameters.record_dir)  # where a person waits, and not the runner of a grid
    with course.bar:
        rows = course.run()
    for path in (course.curve, *sorted(folder.glob(PHASE.format("*")))):
        shutil.copyfile(path, cell.record / path.name)
    remove_made(folder)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def moment(training: Sequence[float], level: float) -> float:
    """When a training loss first falls to a level, in evaluations: 3.25 is a quarter of the way from 3 to 4. NaN where it never does,
    or lies there from the beginning."""
    for index, (before, after) in enumerate(pairwise(training)):
        if before > level >= after:
            return index + (before - level) / (before - after)
    return math.nan


def matched(lines: Sequence[Mapping[str, Any]], model: int, tasks: Sequence[str], levels: Sequence[float]) -> dict[str, dict[str, float]]:
    """Of each of these tasks `loss_at_LEVEL` and `accuracy_at_LEVEL` of one model: what was measured when the training loss fell to a
    level, from the evaluations of a phase, interpolated between two of them; NaN at no moment. So methods are compared where they have
    learnt the training items equally well (KintaroAI's GENERALIZATION_PROTOCOL.md; there the first batch under the level counts). Of
    several evaluations at one step the last counts, as a killed run repeats its own."""
    by_step = {line["step"]: (line, line["models"].index(model)) for line in lines if model in line["models"]}
    ordered = [by_step[step] for step in sorted(by_step)]
    result: dict[str, dict[str, float]] = {task: {} for task in tasks}
    for level in levels:
        when = moment([line["training"][index] for line, index in ordered], level)
        for task, own in result.items():
            for name, measured in (("loss", "nats"), ("accuracy", "right")):
                values = [line[task][measured][index] for line, index in ordered]
                own[f"{name}_at_{level:g}"] = float(np.interp(when, np.arange(len(values)), values))
    return result
