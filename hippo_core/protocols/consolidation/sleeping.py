"""What experiments share in which a model sleeps on the store that a memory was taught: parameters, the open cell, the plan, the rest.

teach <- sleep
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from hippo_core.files import LabError
from hippo_core.methods.presets import Preset
from hippo_core.protocols.base.experiment import Experiment, load_experiment
from hippo_core.protocols.base.parameters import Parameters, Positive
from hippo_core.protocols.base.plan import CellPlan
from hippo_core.protocols.base.qa.cell import AskingCell
from hippo_core.protocols.base.qa.parameters import AskingParameters, check, forget, resolve
from hippo_core.protocols.base.qa.plan import AXES, STORE, asking_plan, dataset_plan
from hippo_core.results.records.table import Table
from hippo_core.store.paths import existing

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.results.criteria import TableRows
    from hippo_core.results.report.sections import Section


class SleepingParameters(AskingParameters):
    """What every such notebook can be told. An experiment adds `way`, into the model."""

    suite: str = "consolidation"
    preset: str = "memory/hei_nw"
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
        label=" ".join([cell.label, parameters.way, *changed]),
        rests_on={**cell.rests_on, "sleep": json.dumps(own, sort_keys=True)},
        expected=None,
    )


def variants(experiment: Experiment, values: dict[str, Any], where: str) -> Iterable[Any]:
    """The parameters of a grid's values."""
    values = {name: value for name, value in values.items() if name not in ("regime", "encoder")}
    yield check(experiment, values, where)


def sleeping(
    name: str,
    parameters: type[SleepingParameters],
    run: str,
    rows: Table,
    sentence: Callable[[Any, Mapping[str, Any]], str],
    figure: "Callable[[Any, pd.DataFrame], bytes]",
    sections: "Callable[[Sequence[TableRows]], Sequence[Section]]",
) -> Experiment:
    """An experiment in which a model sleeps: of one table, `rows`, in the notebook `04_` with its name. The others are `Experiment`'s."""
    return Experiment(
        name=name,
        notebook=f"04_{name}",
        parameters=parameters,
        run=run,
        tables=(rows,),
        cell=SleepingCell,
        checks=check,
        plans=plan,
        variants=variants,
        always_said=("suite", "preset", "model", "n", "seed", "way"),
        axes=AXES,
        sentence=sentence,
        figure=figure,
        sections=sections,
        forget=forget,
    )
