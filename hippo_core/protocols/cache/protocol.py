"""The experiment `cache`: a cache is damaged between the pass that wrote it and those that read it, repaired, and read.

train <- measure
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hippo_core.methods.presets import load_preset
from hippo_core.plugins import late
from hippo_core.protocols.base.cell import RunningCell
from hippo_core.protocols.base.experiment import Experiment, planned
from hippo_core.protocols.base.parameters import Parameters
from hippo_core.protocols.base.plan import CellPlan
from hippo_core.protocols.cache import defences
from hippo_core.protocols.cache.names import RECALLING, TRACE_PROBES
from hippo_core.protocols.cache.parameters import CacheParameters, check, usual_of
from hippo_core.protocols.cache.table import MEASURE, REMOVE, TRAIN

REPORT, FIGURES = "hippo_core.protocols.cache.report", "hippo_core.protocols.cache.figures"
BITS = 16  # of a number, about: bits=each is a fault for every one
ARTIFACTS = "hippo_core.protocols.cache.artifacts"
OF_TRAINING = (
    *("stored", "rank", "repaired", "repaired_parts", "holdout", "contraction", "alpha", "identity", "steps", "rate", "batch"),
    *("trained_on", "clean_share", "mending", "warmup", "cooldown"),
)


def plan(experiment: Experiment, parameters: Any) -> CellPlan:
    """The cell with these parameters; one that measures the learned repair behind the one that trained it.

    A training knows nothing of probes and defences, so that all cells that measure share it.
    """
    if parameters.step == "train":
        names = (*Parameters.model_fields, *OF_TRAINING)
        own = {name: getattr(parameters, name) for name in names}
        return _short_labelled(experiment, CacheParameters(step="train", **own))
    if parameters.step == "remove" or "learned" not in parameters.defences:
        usual = {name: usual_of(name) for name in OF_TRAINING if name != "stored"}
        return _short_labelled(experiment, parameters.model_copy(update=usual))
    needs = {"repair": plan(experiment, parameters.model_copy(update={"step": "train", "record_dir": ""}))}
    return _short_labelled(experiment, parameters, needs)


def _short_labelled(experiment: Experiment, parameters: Any, needs: Mapping[str, CellPlan] | None = None) -> CellPlan:
    """The plan, with a label that says only what is not as usual."""
    cell, usual = planned(experiment, parameters, needs), CacheParameters().values()
    own = {name: value for name, value in parameters.values().items() if value != usual[name] and name not in ("threads", "step")}
    label_parts = [f"{name}={','.join(map(str, value)) if isinstance(value, list) else value}" for name, value in own.items()]
    recalling = [TRACE_PROBES, *load_preset(RECALLING).modules] if "traces" in parameters.tasks else []
    modules = dict.fromkeys([*cell.modules, *(defence.module for defence in defences.find_defences(parameters.defences)), *recalling])
    return replace(cell, label=" ".join(["cache", parameters.step, *label_parts]), modules=tuple(modules))


def work(parameters: Any) -> float:
    """Steps of a training; else how often a probe is read, repaired or not."""
    if parameters.step == "train":
        return float(parameters.steps)
    faults = len(parameters.severities) * (len(parameters.kinds) * (1 + len(parameters.defences)) if parameters.step == "measure" else 1)
    return float(parameters.items * len(parameters.tasks) * faults * (BITS if parameters.bits == "each" else 1))


class CacheCell(RunningCell):
    """A cell that breaks a cache and repairs it."""

    @property
    def checkpoint(self) -> Path | None:
        """The record that holds the trained repair; None where none is needed."""
        return self.sources.get("repair")


CACHE = Experiment(
    name="cache",
    notebook="06_cache_robustness",
    parameters=CacheParameters,
    run="hippo_core.protocols.cache.run",
    tables=(MEASURE, TRAIN, REMOVE),
    cell=CacheCell,
    checks=check,
    plans=plan,
    label_fields=("seed", "step"),
    work=work,
    axes={"sizes": "n", "models": "model", "seeds": "seed"},
    sentence=late(f"{REPORT}:in_words"),
    figure=late(f"{FIGURES}:figure"),
    files=late(f"{ARTIFACTS}:of_record"),
    sections=late(f"{REPORT}:sections"),
)
