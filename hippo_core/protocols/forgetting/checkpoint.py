"""Where a course of phases stands, as one file of safetensors that is written whole or not at all; a killed run goes on from it."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hippo_core.errors import LabError
from hippo_core.protocols.forgetting.learner import Learner
from hippo_core.protocols.forgetting.learners.base import ContinualLearner
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
