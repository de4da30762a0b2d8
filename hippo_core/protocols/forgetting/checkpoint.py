"""Where a course of phases stands, as one file of safetensors that is written whole or not at all; a killed run goes on from it. And
what models had learnt after a phase, one file each, which a record keeps."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from hippo_core.errors import LabError
from hippo_core.protocols.forgetting.learner import Learner
from hippo_core.protocols.forgetting.learners.base import ContinualLearner
from hippo_core.protocols.forgetting.transformer import TransformerShape
from hippo_core.training.kept_tensors import read, write

MOMENTS = ("step", "exp_avg", "exp_avg_sq")


@dataclass
class TrainingState:
    """Where a course stands.

    Args:
        phase: that is going on, from 0.
        step: steps of it that are done; None before its beginning.
        models: those that go on learning.
        reached: of each task that the phase learns and each model, the step and the seconds at which it had learnt; None before.
        steps: of each model, steps of this phase.
        seconds: of this phase so far.
        rows: what was measured so far.
        curve: the bytes of the curve so far, and their SHA-256.
    """

    phase: int
    step: int | None
    models: list[int]
    reached: dict[str, list[list[float] | None]]
    steps: list[int]
    seconds: float
    rows: list[dict[str, Any]]
    curve: dict[str, Any] = field(default_factory=dict)


def keep(path: Path, state: TrainingState, learner: Learner, method: ContinualLearner) -> None:
    """Write where a course stands."""
    tensors = {f"method.{name}": value for name, value in method.tensors.items()}
    for model, vector in enumerate(learner.learnt):
        tensors[f"learnt.{model}"] = vector.detach()
        moments = learner.optimizer.state.get(vector, {})
        tensors |= {f"{name}.{model}": moments[name] for name in MOMENTS if moments}
    notes = {"place": vars(state), "notes": method.notes}
    write(path, tensors, {"place": json.dumps(notes)})


def resume(path: Path, learner: Learner, method: ContinualLearner) -> TrainingState | None:
    """Put learner and method where the file says; None where there is none. LabError where it cannot be read, or holds other models."""
    if not path.exists():
        return None
    tensors, facts = read(path, {"place"}, "delete it, and the phases begin anew")
    notes = json.loads(facts["place"])
    learnt = [tensors[f"learnt.{model}"] for model in range(sum(name.startswith("learnt.") for name in tensors))]
    method.tensors = {name.removeprefix("method."): value for name, value in tensors.items() if name.startswith("method.")}
    method.notes = notes["notes"]
    state = TrainingState(**notes["place"])
    going_on = state.phase - (state.step is None and state.phase > 0)  # before a phase begins there is what the last one learnt
    expected = [(method.learnt_weights(going_on),)] * len(learner.seeds)
    if (restored := [tuple(vector.shape) for vector in learnt]) != expected:
        got, wanted = (f"{len(shapes)} models of {shapes[0][0]} weights" for shapes in (restored, expected))
        raise LabError(f"{path} holds {got}, expected {wanted}; delete it, and the phases begin anew")
    learner.learn(learnt, method.quicker(going_on))
    for model, vector in enumerate(learner.learnt):
        if f"step.{model}" in tensors:
            learner.optimizer.state[vector] = {name: tensors[f"{name}.{model}"] for name in MOMENTS}
    return state


@dataclass(frozen=True)
class PhaseCheckpoint:
    """What models had learnt after a phase.

    Args:
        model: the preset, as parameters name it; `shape`: its sizes, with the variant.
        method: against forgetting.
        phase: phases that were over, from 1.
        tasks: those of the course, in order of learning.
        seeds: of the models.
        control, subset: of the items, as in the parameters.
        weights_of: of each task the index of the weights that answer it; other tasks are answered by the first.
        weights: float32, `(models, weights)` each.
    """

    model: str
    method: str
    phase: int
    tasks: Sequence[str]
    seeds: Sequence[int]
    control: Any
    subset: float
    weights_of: Mapping[str, int]
    shape: TransformerShape
    weights: Sequence[torch.Tensor]

    def answering(self, task: str) -> torch.Tensor:
        """The weights that answer a task of this name, `(models, weights)`."""
        return self.weights[self.weights_of.get(task, 0)]


def keep_phase(path: Path, phase: int, learner: Learner, method: ContinualLearner) -> None:
    """Write what was learnt after so many phases, from 1. Weights that answer several tasks are written once."""
    names, settings = [task.name for task in learner.corpus.tasks], method.settings
    weights, weights_of = [method.vectors(phase - 1)], {}
    for task, name in enumerate(names):
        own = method.vectors(task)
        weights_of[name] = next((index for index, known in enumerate(weights) if torch.equal(known, own)), len(weights))
        weights += [own] * (weights_of[name] == len(weights))
    facts = {"model": settings.model, "method": method.name, "phase": phase, "tasks": names, "seeds": list(learner.seeds)}
    facts |= {"control": settings.control, "subset": settings.subset, "weights_of": weights_of, "shape": asdict(learner.shape)}
    write(path, {f"weights.{index}": vectors for index, vectors in enumerate(weights)}, {"phase": json.dumps(facts)})


def read_phase(path: Path) -> PhaseCheckpoint:
    """What was learnt after a phase. LabError where the file is damaged or no checkpoint of a phase."""
    tensors, facts = read(path, {"phase"}, "expected a checkpoint of a phase, phase_N.safetensors of a record of `hippo run forgetting`")
    about = json.loads(facts["phase"])
    shape = TransformerShape(**about.pop("shape"))
    return PhaseCheckpoint(**about, shape=shape, weights=[tensors[f"weights.{index}"] for index in range(len(tensors))])
