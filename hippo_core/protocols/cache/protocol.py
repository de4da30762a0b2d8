"""The experiment `cache`: a cache is damaged between the pass that wrote it and those that read it, repaired, and read.

train <- measure
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from hippo_core.files import LabError, read_object
from hippo_core.models.kv_storage import Precision
from hippo_core.models.spec import load_spec
from hippo_core.protocols.base.cell import OpenCell
from hippo_core.protocols.base.experiment import Experiment, checked, no_sentence, planned
from hippo_core.protocols.base.parameters import Parameters, Positive
from hippo_core.protocols.base.plan import CellPlan
from hippo_core.protocols.cache import defences
from hippo_core.protocols.cache.names import LOTO, Bits, Family, Format, Held, Kind, Parts, Task, Times
from hippo_core.protocols.cache.table import MEASURE, REMOVE, TRAIN

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.results.criteria import TableRows
    from hippo_core.results.report.sections import Section

DRY = 4  # probes of a dry run
Severity = Annotated[float, Field(ge=0, le=1)]


class CacheParameters(Parameters):
    """What `06_cache_robustness` can be told."""

    tasks: list[Task] = Field(default=["text", "choice", "needle", "traces"], min_length=1)
    n: Positive = 40
    kinds: list[Kind] = Field(default=["gaussian", "contiguous_overwrite"], min_length=1)
    severities: list[Severity] = Field(default=[0.25, 0.5, 1.0], min_length=1)
    defences: list[str] = Field(default=["reset", "clipping", "recompute"])
    layers: list[int] | None = None
    heads: list[int] | None = None
    times: Times = "all_past"
    recent: Annotated[int, Field(ge=0)] = 32
    window: list[int] = Field(default=[16, 48], min_length=2, max_length=2)
    parts: Parts = "KV"
    stored: Format = "bfloat16"
    bits: Bits = "all"
    budget: Annotated[float, Field(gt=0, le=1)] = 1.0
    precision: Precision = "bfloat16"
    family: Family = "B"
    rank: Positive = 64
    repaired: list[int] | None = None
    repaired_parts: Parts = "KV"
    holdout: Kind | Literal[""] = ""
    ood: Held | Literal[""] = ""
    contraction: Annotated[float, Field(ge=0)] = 0.5
    identity: Annotated[float, Field(ge=0)] = 1.0
    steps: Positive = 200
    step: Literal["train", "measure", "remove"] = "measure"

    @property
    def items(self) -> int:
        """How many probes a task has."""
        return min(self.n, DRY) if self.dry_run else self.n


OF_TRAINING = ("stored", "family", "rank", "repaired", "repaired_parts", "holdout", "contraction", "identity", "steps")


def plan(experiment: Experiment, parameters: Any) -> CellPlan:
    """The cell with these parameters; one that measures the learned repair behind the one that trained it.

    A training knows nothing of probes and defences, so that all cells that measure share it.
    """
    if parameters.step == "train":
        told = (*Parameters.model_fields, *OF_TRAINING)
        own = {name: getattr(parameters, name) for name in told}
        return _without_what_is_usual(experiment, CacheParameters(step="train", **own))
    if parameters.step == "remove" or "learned" not in parameters.defences:
        usual = {name: usual_of(name) for name in OF_TRAINING if name != "stored"}
        return _without_what_is_usual(experiment, parameters.model_copy(update=usual))
    needs = {"repair": plan(experiment, parameters.model_copy(update={"step": "train", "record_dir": ""}))}
    return _without_what_is_usual(experiment, parameters, needs)


def _without_what_is_usual(experiment: Experiment, parameters: Any, needs: Mapping[str, CellPlan] | None = None) -> CellPlan:
    """The plan, with a label that says only what is not as usual."""
    cell, usual = planned(experiment, parameters, needs), CacheParameters().values()
    own = {name: value for name, value in parameters.values().items() if value != usual[name] and name not in ("threads", "step")}
    said = [f"{name}={','.join(map(str, value)) if isinstance(value, list) else value}" for name, value in own.items()]
    modules = dict.fromkeys([*cell.modules, *(one.module for one in defences.found(parameters.defences))])
    return replace(cell, label=" ".join(["cache", parameters.step, *said]), modules=tuple(modules))


def check(experiment: Experiment, values: dict[str, Any], where: str) -> Any:
    """The parameters, if every name and number in them is right for the model; LabError with what is legal otherwise."""
    parameters = checked(experiment, values, where)
    if parameters.ood:
        kind = parameters.ood.removeprefix(LOTO)
        told = {"kinds": [kind], "holdout": kind}
        if wrong := [name for name, value in told.items() if name in values and values[name] not in (value, usual_of(name))]:
            raise LabError(f"{where}: ood={parameters.ood} says {wrong[0]}={told[wrong[0]]}, got {values[wrong[0]]}; leave {wrong[0]} out")
        parameters = parameters.model_copy(update=told)
    for name in ("tasks", "kinds", "severities", "defences"):
        given = getattr(parameters, name)
        if len(set(given)) < len(given):
            raise LabError(f"{where}: {name} names one of {given} twice")
    defences.found(parameters.defences)
    first, end = parameters.window
    if not 0 <= first < end:
        raise LabError(f"{where}: window: expected [first, behind the last) of tokens, got {parameters.window}")
    if "ecc" in parameters.defences and parameters.stored.startswith("int"):
        raise LabError(f"{where}: ecc guards a cache of float32, float16 or bfloat16, got stored={parameters.stored}; leave ecc out")
    if parameters.stored.startswith("int") and parameters.bits in ("exponent", "mantissa"):
        raise LabError(f"{where}: {parameters.stored} codes have no {parameters.bits}; use bits=all or bits=sign, or a float format")
    _check_shape(parameters, where)
    return parameters


def usual_of(name: str) -> Any:
    """The value of a parameter that nobody tells."""
    return CacheParameters.model_fields[name].get_default()


def _check_shape(parameters: Any, where: str) -> None:
    """LabError for layers and heads that the model lacks, where its config can be read."""
    path = load_spec(parameters.model).path / "config.json"
    if not path.is_file():
        return
    config = json.loads(path.read_text(encoding="utf-8"))
    layers, heads = config.get("num_hidden_layers"), config.get("num_key_value_heads") or config.get("num_attention_heads")
    for name, count in (("layers", layers), ("repaired", layers), ("heads", heads)):
        if wrong := [one for one in getattr(parameters, name) or () if count and not 0 <= one < count]:
            raise LabError(f"{where}: {name}: {parameters.model} has {count}, numbered from 0 to {count - 1}; got {wrong}")


class CacheCell(OpenCell):
    """A cell that breaks a cache and repairs it."""

    @property
    def checkpoint(self) -> Path | None:
        """The record that holds the trained repair; None where none is needed."""
        return self.sources.get("repair")


def sentence(parameters: CacheParameters, metrics: Mapping[str, Any]) -> str:
    """The result in words, from its numbers."""
    from hippo_core.protocols.cache.report import in_words, training_in_words

    if parameters.step == "remove":
        return no_sentence(None, metrics)
    return in_words(parameters.model, metrics["tasks"]) if parameters.step == "measure" else training_in_words(metrics["training"])


def figure(parameters: CacheParameters, rows: "pd.DataFrame") -> bytes:
    """What is left of the score along severity, a panel a kind, or along the bits that are gone; of a training its curve (PNG)."""
    from hippo_core.protocols.cache import bit_figures as cache_bits
    from hippo_core.protocols.cache import figures as cache
    from hippo_core.protocols.cache.table import kept
    from hippo_core.results.figures import drawing

    if parameters.step == "measure":
        return drawing.png(cache.robustness(kept(rows)))
    return drawing.png(cache.training(rows) if parameters.step == "train" else cache_bits.removal(rows))


def pictures(parameters: CacheParameters, record: Path, rows: "pd.DataFrame") -> dict[str, bytes]:
    """The figures that the protocol keeps beside the rows of a measurement, under their names in its specification (PNG)."""
    from hippo_core.protocols.cache import figures as cache
    from hippo_core.protocols.cache.table import STABILITY, kept
    from hippo_core.results.figures import drawing

    if parameters.step != "measure":
        return {}
    curves, stability = kept(rows), read_object(record / STABILITY)
    figures = {
        "figA_score_vs_eps": cache.robustness(curves),
        "figB_clean_vs_overhead_pareto": cache.cost(rows, curves),
        "figC_logit_sensitivity": cache.sensitivity(stability),
        "figD_amplification_map": cache.amplification(stability),
    }
    return {f"figures/{name}.png": drawing.png(figure) for name, figure in figures.items()}


def sections(tables: "Sequence[TableRows]") -> "Sequence[Section]":
    """What a report says: the curves, what each defence recovers, and what it costs."""
    from hippo_core.protocols.cache.report import found

    return found(tables)


CACHE = Experiment(
    name="cache",
    notebook="06_cache_robustness",
    parameters=CacheParameters,
    run="hippo_core.protocols.cache.run",
    tables=(MEASURE, TRAIN, REMOVE),
    cell=CacheCell,
    checks=check,
    plans=plan,
    always_said=("seed", "step"),
    axes={"sizes": "n", "models": "model", "seeds": "seed"},
    sentence=sentence,
    figure=figure,
    files=pictures,
    sections=sections,
)
