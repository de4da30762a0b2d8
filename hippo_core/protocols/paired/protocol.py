"""The experiment `paired`: each item of a folder's suite is asked under several conditions, so that a memory is judged item by item."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hippo_core.protocols.base.experiment import Experiment, planned
from hippo_core.protocols.base.plan import CellPlan
from hippo_core.protocols.paired.conditions import MEMORY
from hippo_core.protocols.paired.parameters import PairedParameters, check, fill, modules_of
from hippo_core.protocols.paired.suite import read_suite
from hippo_core.protocols.paired.table import ROWS

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.results.criteria import TableRows
    from hippo_core.results.report.sections import Section

RUN = "hippo_core.protocols.paired.run"


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


def sentence(parameters: PairedParameters, metrics: Mapping[str, Any]) -> str:
    """The result in words, from its numbers."""
    from hippo_core.protocols.paired.report import in_words

    return in_words(metrics)


def figure(parameters: PairedParameters, rows: "pd.DataFrame") -> bytes:
    """Success of each condition with its interval (PNG)."""
    from hippo_core.protocols.paired.figures import picture

    return picture(rows)


def sections(tables: "Sequence[TableRows]") -> "Sequence[Section]":
    """The sections of a report: conditions side by side, the memory against each of them, groups."""
    from hippo_core.protocols.paired.report import sections

    return sections(tables)


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
    sentence=sentence,
    figure=figure,
    sections=sections,
)
