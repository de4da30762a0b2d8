"""The experiment `consolidation`: it needs the store that a memory was taught, and asks before and after the model slept on it.

teach <- consolidate
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from hippo_core.experiments.asking.cell import AskingCell
from hippo_core.experiments.asking.parameters import AskingParameters, check, forget, resolve
from hippo_core.experiments.asking.plan import AXES, asking_plan, dataset_plan
from hippo_core.experiments.base import Experiment
from hippo_core.experiments.consolidation.table import ROWS, TITLES
from hippo_core.experiments.memory.experiment import MEMORY, STORE, MemoryParameters, canonical
from hippo_core.experiments.memory.experiment import plan as memory_plan
from hippo_core.experiments.parameters import Parameters, Positive
from hippo_core.experiments.plan import CellPlan
from hippo_core.files import LabError
from hippo_core.methods.episodic.settings import Policy
from hippo_core.methods.presets import Preset
from hippo_core.store.paths import existing

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.results.criteria import TableRows
    from hippo_core.results.report.sections import Section


class ConsolidationParameters(AskingParameters):
    """What `04_consolidation` can be told."""

    suite: str = "consolidation"
    preset: str = "memory/hei_nw"
    way: Literal["lora", "gated_lora", "kv_prefix", "sparse"] = "lora"
    cycles: Annotated[int, Field(ge=1, le=3)] = 1
    policy: Policy = "uniform"
    wordings: Positive = 40  # questions that are made of a trace
    restatements: Annotated[float, Field(ge=0, le=1)] = 0.0  # share of questions in whose place a trace is restated as a whole
    distill: bool = False  # learn what the unchanged model answers with the trace in its prompt, in place of the trace's own answer
    steps: Positive | None = 200  # of training, a cycle; None: so many that each trace is rehearsed `rehearsals` times
    rehearsals: Positive = 640  # of each trace, a cycle, where steps is None: what took 50 facts to .90
    rank: Positive = 16
    rate: float | None = None  # of learning; None: the way's own
    replay: bool = True  # False: nothing is trained, so that nothing may change
    lost: Annotated[float, Field(ge=0, le=1)] = 0.1  # of reading on validation lessons; a cycle that loses more is rolled back
    in_context: Positive = 100  # questions with other facts in the prompt

    def check_preset(self, preset: Preset) -> None:
        if not preset.taught or preset.settings.memories:
            raise LabError(f"preset {preset.name} has no store of its own to consolidate: use preset=memory/hei_nw")

    def of_teaching(self) -> MemoryParameters:
        """The parameters of the cell that taught the store."""
        shared = {name: getattr(self, name) for name in AskingParameters.model_fields if name != "regime"}
        return MemoryParameters(**shared, step="teach")


class ConsolidationCell(AskingCell):
    """A cell that consolidates."""

    slept: Mapping[str, Any]  # what the sleep took, once it is done

    @cached_property
    def store(self) -> Path:
        """The file of the store that was taught."""
        memory: Any = self.resolved.preset.method
        return existing(self.sources[STORE] / STORE, self.parameters.of_teaching().session(memory), memory.algorithm())

    def columns(self) -> tuple[str, ...]:
        return ()


def plan(experiment: Experiment, parameters: ConsolidationParameters) -> CellPlan:
    """The cell with these parameters, behind the one that taught the store."""
    resolved = resolve(parameters)
    taught = memory_plan(MEMORY, canonical(resolve(parameters.of_teaching())).parameters)
    needs = {"data": dataset_plan(resolved), STORE: taught}
    own = {name: getattr(parameters, name) for name in ConsolidationParameters.model_fields if name not in Parameters.model_fields}
    changed = [f"{name}={value}" for name, value in own.items() if name not in AskingParameters.model_fields and value != usual(name)]
    cell = asking_plan(experiment, resolved, needs, ROWS.step)
    return replace(
        cell,
        kind=f"{parameters.way}-{ROWS.step}",
        label=" ".join([cell.label, parameters.way, *changed]),
        rests_on={**cell.rests_on, "sleep": json.dumps(own, sort_keys=True)},
        expected=None,
    )


def usual(name: str) -> Any:
    """What a parameter is where nothing is said."""
    return ConsolidationParameters.model_fields[name].default


def variants(experiment: Experiment, values: dict[str, Any], where: str) -> Iterable[Any]:
    """The parameters of a grid's values."""
    values = {name: value for name, value in values.items() if name not in ("regime", "encoder")}
    yield check(experiment, values, where)


def sentence(parameters: ConsolidationParameters, metrics: Mapping[str, Any]) -> str:
    """The result in words, from its numbers."""
    last = list(metrics["metrics"]["off"])[-1]
    before, after = (metrics["metrics"]["off"][stage] for stage in ("pre", last))
    kept, text = (metrics["changes"][probe][last]["difference"] for probe in ("in_context", "text"))
    slept = metrics["sleep"]
    right = f"answers {after['mean']:.0%} of {after['n']} questions after {slept['seconds']:.0f} s of sleep ({parameters.way})"
    lost = f"reading other facts changed by {100 * kept:+.1f} points, plain text by {text:+.3f} nats a token"
    return f"With its memory off {parameters.model} {right}, {before['mean']:.0%} before; {lost}."


def figure(parameters: ConsolidationParameters, rows: "pd.DataFrame") -> bytes:
    """Accuracy of every probe before and after (PNG)."""
    from hippo_core.results.figures import consolidation, drawing

    return drawing.png(consolidation.before_and_after(rows, TITLES))


def sections(tables: "Sequence[TableRows]") -> "Sequence[Section]":
    """What a report says: every probe before and after, by way."""
    from hippo_core.experiments.consolidation.report import found

    return found(tables)


CONSOLIDATION = Experiment(
    name="consolidation",
    notebook="04_consolidation",
    parameters=ConsolidationParameters,
    run="hippo_core.training.consolidation.run",
    tables=(ROWS,),
    cell=ConsolidationCell,
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
