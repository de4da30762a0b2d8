"""The experiment `paired`: each item of a folder's suite is asked under several conditions, so that a memory is judged item by item."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from hippo_core.files import LabError, unknown
from hippo_core.methods.presets import load_preset
from hippo_core.plugins import is_path, located
from hippo_core.protocols.base.experiment import Experiment, checked, planned
from hippo_core.protocols.base.parameters import Parameters
from hippo_core.protocols.base.plan import CellPlan
from hippo_core.protocols.paired.conditions import CONDITIONS, MEMORY, RETRIEVAL
from hippo_core.protocols.paired.suite import read_suite
from hippo_core.protocols.paired.table import ROWS

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.results.criteria import TableRows
    from hippo_core.results.report.sections import Section

RUN = "hippo_core.protocols.paired.run"
ANSWERS = "smollm2-135m"  # the model of the profile llm where none is named
COMMAND = "command:"


class PairedParameters(Parameters):
    """What `09_paired_evaluation` can be told."""

    suite: str = "data/paired/everyday"
    conditions: list[str] = Field(default=list(CONDITIONS), min_length=1)
    memory: str = "memory/hei_nw"
    profile: Literal["offline", "llm"] = "offline"
    answer_mode: Literal["auto", "deterministic", "llm"] = "auto"
    encoder: Literal["minilm", "own"] = "minilm"
    repeats: Annotated[int, Field(ge=0, le=100)] = 0
    n: Annotated[int, Field(ge=0)] = 0


def fill(values: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The values with a model that answers, where the profile asks for one and none is named."""
    if values.get("profile") == "llm" and "model" not in values:
        return {**values, "model": ANSWERS}, f"model={ANSWERS} answers, as none is named"
    return values, ""


def check(experiment: Experiment, values: dict[str, Any], where: str) -> Any:
    """The parameters, if every name in them is right and the suite can be read; LabError with what is legal otherwise."""
    parameters = checked(experiment, values, where)
    for name in parameters.conditions:
        if name not in CONDITIONS:
            raise unknown("condition", name, CONDITIONS)
    if len(set(parameters.conditions)) < len(parameters.conditions):
        raise LabError(f"{where}: conditions names one of {parameters.conditions} twice")
    if parameters.profile == "offline" and parameters.answer_mode == "llm":
        raise LabError(f"{where}: answer_mode llm needs profile=llm; offline no model answers")
    if parameters.memory.startswith(COMMAND):
        raise LabError(f"{where}: a cell runs no program; ask one by `hippo paired run SUITE --memory '{parameters.memory}'`")
    _modules(parameters)
    read_suite(parameters.suite)
    return parameters


def plan(experiment: Experiment, parameters: Any) -> CellPlan:
    """The cell with these parameters; its rows rest on the suite's files, byte by byte."""
    cell, usual = planned(experiment, parameters), PairedParameters().values()
    suite = read_suite(parameters.suite)
    own = {name: value for name, value in parameters.values().items() if value != usual[name] and name not in ("threads", "dry_run")}
    said = [f"{name}={','.join(map(str, value)) if isinstance(value, list) else value}" for name, value in own.items()]
    return replace(
        cell,
        label=" ".join(["paired", suite.manifest.name, *said]),
        kind="paired",
        folder=("paired", suite.manifest.name, f"{parameters.model.replace('/', '-')}_{parameters.seed}"),
        modules=(experiment.run, *_modules(parameters)),
        rests_on={**cell.rests_on, "suite": suite.checksums},
        encoders=("minilm",) if parameters.encoder == "minilm" and _encoded(parameters) else (),
    )


def _modules(parameters: Any) -> list[str]:
    """The modules of what the conditions recall by. LabError for an unknown memory."""
    names = [RETRIEVAL[name] for name in parameters.conditions if name in RETRIEVAL]
    names += [parameters.memory] if MEMORY in parameters.conditions else []
    return [located(name, f"memory {name}") if is_path(name) else load_preset(name, {}).path.partition(":")[0] for name in names]


def _encoded(parameters: Any) -> bool:
    return bool({"semantic", "graph", MEMORY} & set(parameters.conditions))


def sentence(parameters: PairedParameters, metrics: Mapping[str, Any]) -> str:
    """The result in words, from its numbers."""
    from hippo_core.protocols.paired.report import in_words

    return in_words(metrics)


def figure(parameters: PairedParameters, rows: "pd.DataFrame") -> bytes:
    """Success of each condition with its interval (PNG)."""
    from hippo_core.protocols.paired.report import picture

    return picture(rows)


def sections(tables: "Sequence[TableRows]") -> "Sequence[Section]":
    """What a report says: conditions side by side, the memory against each of them, groups."""
    from hippo_core.protocols.paired.report import found

    return found(tables)


PAIRED = Experiment(
    name="paired",
    notebook="09_paired_evaluation",
    parameters=PairedParameters,
    run=RUN,
    tables=(ROWS,),
    fills=fill,
    checks=check,
    plans=plan,
    always_said=("suite", "seed"),
    sentence=sentence,
    figure=figure,
    sections=sections,
)
