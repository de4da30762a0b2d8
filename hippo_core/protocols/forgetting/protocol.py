"""The experiment `forgetting`: it needs no model from the disk; small transformers begin with random weights and learn task after task."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hippo_core.discovery import find_member
from hippo_core.files import sha256
from hippo_core.plugins import late
from hippo_core.protocols.base.experiment import Experiment
from hippo_core.protocols.base.parameters import Parameters
from hippo_core.protocols.base.plan import CellPlan
from hippo_core.protocols.forgetting.parameters import LEARNERS, ForgettingParameters, check, files
from hippo_core.protocols.forgetting.table import ROWS

REPORT, FIGURES = "hippo_core.protocols.forgetting.report", "hippo_core.protocols.forgetting.figures"


def plan(experiment: Experiment, parameters: Any) -> CellPlan:
    """The cell with these parameters; it needs no other and nothing from the disk."""
    fields, own = type(parameters).model_fields, parameters.values()
    hidden = (*(name for name in Parameters.model_fields if name != "model"), "method")
    changed = [f"{name}={value}" for name, value in own.items() if name not in hidden and value != fields[name].default]
    return CellPlan(
        experiment=experiment.name,
        notebook=experiment.notebook,
        parameters=parameters.model_dump(),
        kind=f"{parameters.method}-forget",
        folder=("forgetting", parameters.method, f"{parameters.model}_{parameters.seed}"),
        label=" ".join(["forgetting", parameters.method, *changed]),
        condition="forgetting",
        step="forget",
        inputs={f"task {path}": sha256(Path(path)) for path in files(parameters)},
        modules=(experiment.run, find_member(LEARNERS, parameters.method, "method").module),
    )


def sentence(parameters: ForgettingParameters, metrics: Mapping[str, Any]) -> str:
    """The result in words, from its numbers."""
    means, spent = metrics["metrics"], metrics["spent"]
    who = f"{parameters.method} ({parameters.inits} initialisations): accuracy over all tasks {means['average_accuracy']['mean']:.2f}"
    missed = [line["task"] for line in spent if line["learnt"] < line["of"]]
    not_learnt = f"; not learnt to 99% by all: {', '.join(missed)}" if missed else ""
    if means["kept"]["mean"] is None:
        return f"{who} after {len(spent)} phases; no task before the last was learnt, so that nothing can be kept{not_learnt}."
    kept, lost = means["kept"], means["forgetting_from_initial"]
    bounds = "" if kept["low"] is None else f" (95% interval {kept['low']:.2f} to {kept['high']:.2f})"
    end = f"of what was learnt before the last phase {kept['mean']:.2f} is kept{bounds}, forgetting (initial less last) {lost['mean']:.2f}"
    return f"{who} after {len(spent)} phases; {end}{not_learnt}."


FORGETTING = Experiment(
    name="forgetting",
    notebook="08_forgetting",
    parameters=ForgettingParameters,
    run="hippo_core.protocols.forgetting.run",
    tables=(ROWS,),
    checks=check,
    plans=plan,
    label_fields=("method", "seed"),
    work=lambda parameters: float(len(parameters.tasks) * parameters.steps * parameters.inits * parameters.batch),
    sentence=sentence,
    figure=late(f"{FIGURES}:figure"),
    sections=late(f"{REPORT}:sections"),
)
