"""The experiments in which a model sleeps: `consolidation`, on all facts of a store, and `sleeps`, on one group after another."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hippo_core.discovery import find_member
from hippo_core.plugins import late
from hippo_core.protocols.base.experiment import Experiment, load_experiment
from hippo_core.protocols.base.parameters import Parameters
from hippo_core.protocols.base.plan import CellPlan
from hippo_core.protocols.base.qa.cell import AskingCell
from hippo_core.protocols.base.qa.parameters import AskingParameters, forget, resolve
from hippo_core.protocols.base.qa.plan import AXES, STORE, asking_plan, dataset_plan
from hippo_core.protocols.consolidation.parameters import UPDATE_RULES, ConsolidationParameters, SleepsParameters, check_sleep, variants
from hippo_core.protocols.consolidation.sleeps_table import ROWS as SLEEPS_ROWS
from hippo_core.protocols.consolidation.table import ROWS
from hippo_core.store.paths import existing

REPORT, FIGURES = "hippo_core.protocols.consolidation.report", "hippo_core.protocols.consolidation.figures"


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
        modules=(*cell.modules, find_member(UPDATE_RULES, parameters.way, "way").module),
        label=" ".join([cell.label, parameters.way, *changed]),
        inputs={**cell.inputs, "sleep": json.dumps(own, sort_keys=True)},
        expected=None,
    )


def _lost(reading: float, text: float) -> str:
    return f"reading other facts changed by {100 * reading:+.1f} points, plain text by {text:+.3f} nats a token"


def consolidation_in_words(parameters: ConsolidationParameters, metrics: Mapping[str, Any]) -> str:
    """The result in words, from its numbers."""
    last = list(metrics["metrics"]["off"])[-1]
    before, after = (metrics["metrics"]["off"][stage] for stage in ("pre", last))
    lost = _lost(*(metrics["changes"][probe][last]["difference"] for probe in ("in_context", "text")))
    slept = metrics["sleep"]
    right = f"answers {after['mean']:.0%} of {after['n']} questions after {slept['seconds']:.0f} s of sleep ({parameters.way})"
    return f"With its memory off {parameters.model} {right}, {before['mean']:.0%} before; {lost}."


def work(parameters: Any) -> float:
    """Steps of training; without a number of them, those that rehearse a fact for each question, 64 questions a step."""
    steps = parameters.steps or math.ceil(parameters.rehearsals * parameters.items / 64)
    return float(steps * (parameters.groups if isinstance(parameters, SleepsParameters) else parameters.cycles))


CONSOLIDATION = Experiment(
    name="consolidation",
    notebook="04_consolidation",
    parameters=ConsolidationParameters,
    run="hippo_core.protocols.consolidation.run",
    tables=(ROWS,),
    cell=SleepingCell,
    checks=check_sleep,
    plans=plan,
    variants=variants,
    label_fields=("suite", "preset", "model", "n", "seed", "way"),
    work=work,
    axes=AXES,
    forget=forget,
    sentence=consolidation_in_words,
    figure=late(f"{FIGURES}:figure"),
    sections=late(f"{REPORT}:sections"),
)


def sleeps_in_words(parameters: SleepsParameters, metrics: Mapping[str, Any]) -> str:
    """The result in words, from its numbers."""
    scores, damage, slept = metrics["stream"]["score"], metrics["damage"], metrics["sleep"]
    lost = _lost(*(damage[probe]["difference"] for probe in ("in_context", "text")))
    who = f"With its memory off {parameters.model} answers {scores['just_learnt']:.0%} of a group's questions just after its sleep"
    if parameters.apart:
        return f"{who} ({parameters.way}, each from the unchanged model), {scores['before']:.0%} before; after the last {lost}."
    kept = "none of the first group had been learnt"
    if scores["first_group_kept"] is not None:
        kept = f"of what was right in the first group {scores['first_group_kept']:.0%} still is"
    end = f"and {scores['at_the_end']:.0%} of all after {slept['sleeps']} sleeps in a row ({parameters.way})"
    return f"{who}, {end}, {scores['before']:.0%} before; {kept}; {lost}."


SLEEPS = replace(
    CONSOLIDATION,
    name="sleeps",
    notebook="04_sleeps",
    parameters=SleepsParameters,
    run="hippo_core.protocols.consolidation.stream",
    tables=(SLEEPS_ROWS,),
    sentence=sleeps_in_words,
    figure=late(f"{FIGURES}:sleeps_figure"),
    sections=late(f"{REPORT}:sleeps_sections"),
)
