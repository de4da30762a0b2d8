"""What experiments share in which a model sleeps on the store that a memory was taught: parameters, the open cell, the plan, the rest.

teach <- sleep
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from hippo_core.files import LabError
from hippo_core.methods.presets import Preset
from hippo_core.plugins import found_member
from hippo_core.protocols.base.experiment import Experiment, load_experiment
from hippo_core.protocols.base.parameters import Parameters, Positive
from hippo_core.protocols.base.plan import CellPlan
from hippo_core.protocols.base.qa.cell import AskingCell
from hippo_core.protocols.base.qa.parameters import AskingParameters, check, forget, resolve
from hippo_core.protocols.base.qa.plan import AXES, STORE, asking_plan, dataset_plan
from hippo_core.store.paths import existing

if TYPE_CHECKING:
    pass


UPDATE_RULES = "hippo_core.training.consolidation.update_rules"


class SleepingParameters(AskingParameters):
    """What every such notebook can be told."""

    suite: str = "consolidation"
    preset: str = "memory/hei_nw"
    way: str = "lora"  # into the model: a file of hippo_core/training/consolidation/update_rules
    wordings: Positive = 40  # questions that are made of a trace
    restatements: Annotated[float, Field(ge=0, le=1)] = 0.0  # share of questions in whose place a trace is restated as a whole
    distilled: Annotated[float, Field(ge=0, le=1)] = (
        0.0  # share of the loss that is the unchanged model's answer with the trace in its prompt
    )
    steps: Positive | None = 200  # of training, a sleep; None: so many that each trace is rehearsed `rehearsals` times
    rehearsals: Positive = 640  # of each trace, a sleep, where steps is None: what took 50 facts to .90
    rank: Positive = 16
    rate: float | None = None  # of learning; None: the way's own
    first_block: Annotated[int, Field(ge=0)] | None = None  # that a sleep may change; None: a third in, so that keys find what was stored
    in_context: Positive = 100  # questions with other facts in the prompt

    def check_preset(self, preset: Preset) -> None:
        if not preset.taught or preset.settings.memories:
            raise LabError(f"preset {preset.name} has no store of its own to consolidate: use preset=memory/hei_nw")

    def of_teaching(self) -> Any:
        """The parameters of the cell that taught the store."""
        shared = {name: getattr(self, name) for name in AskingParameters.model_fields if name != "regime"}
        memory: Any = load_experiment("memory").parameters
        return memory(**shared, step="teach")


class SleepingCell(AskingCell):
    """A cell that consolidates."""

    slept: Mapping[str, Any]  # what the sleep took, once it is done

    @cached_property
    def store(self) -> Path:
        """The file of the store that was taught."""
        memory: Any = self.resolved.preset.method
        return existing(self.sources[STORE] / STORE, self.parameters.of_teaching().session(memory), memory.algorithm())

    def columns(self) -> tuple[str, ...]:
        return ()


def plan(experiment: Experiment, parameters: Any) -> CellPlan:
    """The cell with these parameters, behind the one that taught the store."""
    resolved, fields, step = resolve(parameters), type(parameters).model_fields, experiment.tables[0].step
    taught = load_experiment("memory").plan(parameters.of_teaching())
    needs = {"data": dataset_plan(resolved), STORE: taught}
    own = {name: getattr(parameters, name) for name in fields if name not in Parameters.model_fields}
    shared = {*AskingParameters.model_fields, "way"}
    changed = [f"{name}={value}" for name, value in own.items() if name not in shared and value != fields[name].default]
    cell = asking_plan(experiment, resolved, needs, step)
    return replace(
        cell,
        kind=f"{parameters.way}-{step}",
        modules=(*cell.modules, found_member(UPDATE_RULES, parameters.way, "way").module),
        label=" ".join([cell.label, parameters.way, *changed]),
        rests_on={**cell.rests_on, "sleep": json.dumps(own, sort_keys=True)},
        expected=None,
    )


def check_sleep(experiment: Experiment, values: dict[str, Any], where: str) -> Any:
    """The parameters, if they are right and there is such a way into the model; LabError with what is legal otherwise."""
    parameters: Any = check(experiment, values, where)
    way = found_member(UPDATE_RULES, parameters.way, f"{where}: way")
    if way.said.get("of_groups") and "groups" not in type(parameters).model_fields:
        raise LabError(f"{where}: way={parameters.way} learns in groups; take another, or the experiment sleeps")
    return parameters


def variants(experiment: Experiment, values: dict[str, Any], where: str) -> Iterable[Any]:
    """The parameters of a grid's values."""
    values = {name: value for name, value in values.items() if name not in ("regime", "encoder")}
    yield check_sleep(experiment, values, where)


# Of both experiments in which a model sleeps: what they do not say themselves.
SLEEPING = Experiment(
    name="",
    notebook="",
    parameters=SleepingParameters,
    run="",
    tables=(),
    cell=SleepingCell,
    checks=check_sleep,
    plans=plan,
    variants=variants,
    always_said=("suite", "preset", "model", "n", "seed", "way"),
    axes=AXES,
    forget=forget,
)
