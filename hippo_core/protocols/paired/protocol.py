"""The experiment `paired`: each item of a folder's suite is asked under several conditions, so that a memory is judged item by item. Its
table has a row an item, a condition and a repeat."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from hippo_core.errors import LabError
from hippo_core.methods.presets import load_preset
from hippo_core.plugins import is_path, located
from hippo_core.protocols.base.experiment import Experiment, checked, planned
from hippo_core.protocols.base.parameters import Parameters
from hippo_core.protocols.base.plan import CellPlan
from hippo_core.protocols.paired.conditions import COLUMNS, CONDITIONS, MEMORY, RETRIEVAL, SCORES, TEXTS
from hippo_core.protocols.paired.settings import COMMAND, settings_of
from hippo_core.protocols.paired.suite import read_suite
from hippo_core.results.frames import Frame
from hippo_core.results.records.table import Table, mean_by_cluster

if TYPE_CHECKING:
    from hippo_core.results.criteria import TableRows
    from hippo_core.results.report.sections import Section

RUN = "hippo_core.protocols.paired.run"
ANSWERS = "smollm2-135m"  # the model of the profile llm where none is named


class PairedParameters(Parameters):
    """The parameters of `09_paired_evaluation`."""

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
    settings_of(parameters, 1).require()
    if parameters.memory.startswith(COMMAND):
        raise LabError(f"{where}: a cell runs no program; ask one by `hippo paired run SUITE --memory '{parameters.memory}'`")
    modules_of(parameters)
    read_suite(parameters.suite)
    return parameters


def modules_of(parameters: Any) -> list[str]:
    """The modules of what the conditions recall by. LabError for an unknown memory."""
    names = [RETRIEVAL[name] for name in parameters.conditions if name in RETRIEVAL]
    names += [parameters.memory] if MEMORY in parameters.conditions else []
    return [located(name, f"memory {name}") if is_path(name) else load_preset(name, {}).path.partition(":")[0] for name in names]


def plan(experiment: Experiment, parameters: Any) -> CellPlan:
    """The cell with these parameters; its rows rest on the suite's files, byte by byte."""
    cell, usual = planned(experiment, parameters), PairedParameters().values()
    suite = read_suite(parameters.suite)
    own = {name: value for name, value in parameters.values().items() if value != usual[name] and name not in ("threads", "dry_run")}
    encoded = parameters.encoder == "minilm" and {"semantic", "graph", MEMORY} & set(parameters.conditions)
    labels = [f"{name}={','.join(map(str, value)) if isinstance(value, list) else value}" for name, value in own.items()]
    return replace(
        cell,
        label=" ".join(["paired", suite.manifest.name, *labels]),
        kind="paired",
        folder=("paired", suite.manifest.name, f"{parameters.model.replace('/', '-')}_{parameters.seed}"),
        modules=(experiment.run, *modules_of(parameters)),
        inputs={**cell.inputs, "suite": suite.checksums},
        encoders=("minilm",) if encoded else (),
    )


def work(parameters: PairedParameters) -> float:
    """Answers: each item of the suite under each condition."""
    items = parameters.n or len(read_suite(parameters.suite).items)
    return float(items * len(parameters.conditions) * max(1, parameters.repeats))


def sentence(parameters: PairedParameters, metrics: Mapping[str, Any]) -> str:
    """The result in words, from its numbers."""
    from hippo_core.protocols.paired.report import in_words

    return in_words(metrics)


def figure(parameters: PairedParameters, rows: Frame) -> bytes:
    """Success of each condition with its interval (PNG)."""
    from hippo_core.protocols.paired.report import picture

    return picture(rows)


def sections(tables: "Sequence[TableRows]") -> "Sequence[Section]":
    """The sections of a report: conditions side by side, the memory against each of them, groups."""
    from hippo_core.protocols.paired.report import sections

    return sections(tables)


def metrics(cell: Any, rows: Frame, seconds: float) -> dict[str, Any]:
    """Each condition's success and scores with intervals by world, repeats averaged, and the memory against each other condition."""
    from hippo_core.protocols.paired.comparison import by_item, pairs_of

    by_condition = {str(name): by_item(own) for name, own in rows.groupby("condition", sort=False)}
    return {
        "metrics": {name: mean_by_cluster(own, "success", "world") for name, own in by_condition.items()},
        "scores": {name: {score: mean_by_cluster(own, score, "world") for score in SCORES} for name, own in by_condition.items()},
        "pairs": pairs_of(rows),
        "runtime_s": round(seconds, 3),
    }


ROWS = Table(
    columns=COLUMNS,
    unit="entry",
    cluster="world",
    measures=("success", "recall_at_k", "mrr", "ndcg", "assertion_recall"),
    step="test",
    text=TEXTS,
    whole=("repeat", "place", "tokens_in", "tokens_out", "tokens_cached"),
    metrics=metrics,
    scraps=("metrics", "pairs"),
)
PAIRED = Experiment(
    name="paired",
    notebook="09_paired_evaluation",
    parameters=PairedParameters,
    run=RUN,
    tables=(ROWS,),
    fill_defaults=fill,
    checks=check,
    plans=plan,
    label_fields=("suite", "seed"),
    work=work,
    sentence=sentence,
    figure=figure,
    sections=sections,
)
