"""The experiments in which a model sleeps: `consolidation`, on all facts of a store, and `sleeps`, on one group after another."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hippo_core.discovery import find_member
from hippo_core.protocols.base.experiment import Experiment, load_experiment
from hippo_core.protocols.base.parameters import Parameters
from hippo_core.protocols.base.plan import CellPlan
from hippo_core.protocols.base.qa.cell import AskingCell
from hippo_core.protocols.base.qa.parameters import AskingParameters, forget, resolve
from hippo_core.protocols.base.qa.plan import AXES, STORE, asking_plan, dataset_plan
from hippo_core.protocols.consolidation.parameters import UPDATE_RULES, ConsolidationParameters, SleepsParameters, check_sleep, variants
from hippo_core.protocols.consolidation.sleeps_table import ROWS as SLEEPS_ROWS
from hippo_core.protocols.consolidation.table import ROWS, TITLES
from hippo_core.store.paths import existing

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.results.criteria import TableRows
    from hippo_core.results.report.sections import Section


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


def figure_of_consolidation(parameters: ConsolidationParameters, rows: "pd.DataFrame") -> bytes:
    """Accuracy of every probe before and after (PNG)."""
    from hippo_core.protocols.consolidation import figures as consolidation
    from hippo_core.results.figures import drawing

    return drawing.png(consolidation.before_and_after(rows, TITLES))


def sections_of_consolidation(tables: "Sequence[TableRows]") -> "Sequence[Section]":
    """What a report says: every probe before and after, by update rule."""
    from hippo_core.protocols.consolidation.report import sections

    return sections(tables)


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
    axes=AXES,
    forget=forget,
    sentence=consolidation_in_words,
    figure=figure_of_consolidation,
    sections=sections_of_consolidation,
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


def figure_of_sleeps(parameters: SleepsParameters, rows: "pd.DataFrame") -> bytes:
    """Accuracy on each group after each sleep, as a heat map (PNG)."""
    from hippo_core.protocols.consolidation.sleeps_table import matrix
    from hippo_core.results.figures import drawing

    return drawing.png(drawing.heat_map(matrix(rows)))


def sections_of_sleeps(tables: "Sequence[TableRows]") -> "Sequence[Section]":
    """What a report says: all cells side by side, and the matrix of each."""
    from hippo_core.protocols.consolidation.report import sleeps_sections

    return sleeps_sections(tables)


SLEEPS = replace(
    CONSOLIDATION,
    name="sleeps",
    notebook="04_sleeps",
    parameters=SleepsParameters,
    run="hippo_core.protocols.consolidation.stream",
    tables=(SLEEPS_ROWS,),
    sentence=sleeps_in_words,
    figure=figure_of_sleeps,
    sections=sections_of_sleeps,
)
