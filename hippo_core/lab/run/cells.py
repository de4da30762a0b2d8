"""A cell: one notebook with fixed parameters. Its id is a hash of all that its result can depend on, so an equal id is an equal record."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hippo_core.experiments.base import Experiment, load_experiment
from hippo_core.experiments.parameters import PLACE, Parameters, Resolved
from hippo_core.files import sha256
from hippo_core.lab.run import fingerprints
from hippo_core.results.records import record_folder, run_folder
from hippo_core.suites.datasets import card
from hippo_core.suites.datasets.build import CONTEXT_LIMIT

DATASETS, REPORT = "01_build_datasets", "05_report"


@dataclass(frozen=True, eq=False)
class Cell:
    """One execution of a notebook.

    Args:
        phase: the notebook's stem; `notebook`: its file, where it is not one of `notebooks/`.
        needs: ids of cells whose records must be there first.
        label: what a person calls it.
        checksums: what it rests on besides its notebook, its parameters and its needs.
        experiment: the name of its experiment; empty for data sets and reports.
        resolved: what the parameters of a cell of an experiment stand for.
        source: the record of the cell of its experiment that it rests on.
    """

    phase: str
    parameters: dict[str, Any]
    id: str
    record: Path
    label: str
    needs: tuple[str, ...] = ()
    checksums: dict[str, Any] = field(default_factory=dict)
    experiment: str = ""
    resolved: Resolved | None = None
    source: Path | None = None

    @property
    def notebook(self) -> str:
        """The name of its notebook, or its path from the lab's root."""
        return load_experiment(self.experiment).notebook if self.experiment else self.phase


def cell_id(prefix: str, notebook: str, parameters: dict[str, Any], needs: tuple[str, ...], rests_on: dict[str, Any]) -> str:
    """`<prefix>-<8 hex>`: a hash of the notebook's code, the parameter values (not where the record goes), the needs and `rests_on`."""
    values = {name: value for name, value in parameters.items() if name not in PLACE}
    parts = {"notebook": fingerprints.notebook(notebook), "parameters": values, "needs": sorted(needs), **rests_on}
    return f"{prefix}-{fingerprints.digest(parts)[:8]}"


def cells_of(experiment: Experiment, resolved: Resolved) -> tuple[Cell, ...]:
    """The cell with these parameters, last, behind all cells that it needs; what does not matter to it is taken out of its parameters."""
    data = dataset_cell(resolved)
    chain: list[Cell] = []
    for one in (*experiment.needs(resolved), experiment.canonical(resolved)):
        chain.append(_experiment_cell(experiment, one, data, chain[-1] if chain else None))
    return data, *chain


def _experiment_cell(experiment: Experiment, resolved: Resolved, data: Cell, source: Cell | None) -> Cell:
    parameters = resolved.parameters
    values, checksums = parameters.model_dump(), data.checksums | _checksums(experiment, resolved)
    asks = parameters.stage == "test"
    needs = tuple(cell.id for cell in (data, source) if cell and (asks or cell is not data or source is None))
    identity = cell_id(f"{parameters.regime}-{parameters.stage}", experiment.notebook, values, needs, checksums)
    where = (parameters.run_id, parameters.preset, parameters.suite, parameters.n, parameters.seed)
    extra = [getattr(parameters, name) for name in ("split", "model") if getattr(parameters, name) != Parameters.model_fields[name].default]
    kind = parameters.regime if asks else parameters.stage
    label = " ".join([parameters.suite, parameters.preset, kind, f"{parameters.n}_{parameters.seed}", *extra, *parameters.overrides])
    return Cell(
        phase=experiment.phase,
        parameters=values,
        id=identity,
        record=record_folder(*where, identity),
        label=label,
        needs=needs,
        checksums=checksums,
        experiment=experiment.name,
        resolved=resolved,
        source=source.record if source else None,
    )


def _checksums(experiment: Experiment, resolved: Resolved) -> dict[str, Any]:
    """What a cell of an experiment rests on besides its data set: of a method's settings those that its stage depends on, and the method's
    own weights, where the model has some."""
    preset, spec, own = resolved.preset, resolved.spec, experiment.reads(resolved)
    settings = [
        preset.of_stage(resolved.parameters.stage),
        spec.model_dump(mode="json"),
        fingerprints.shots() if spec.shots else None,
    ]
    fitted = preset.method.fitted
    return {
        "library": fingerprints.library(experiment.run, preset.path.partition(":")[0], preset.settings.delivery),
        "lock": fingerprints.lock(),
        "weights": fingerprints.weights(spec.name),
        "settings": fingerprints.digest(settings),
        **({"own": sha256(own)} if own else {}),
        **({"memory_weights": fingerprints.memory_weights(spec.name if fitted == "model" else fitted)} if fitted else {}),
    }


def dataset_cell(resolved: Resolved) -> Cell:
    """The cell of `01_build_datasets` that builds what such a cell reads; both splits at once."""
    parameters = resolved.parameters
    values: dict[str, Any] = {
        "run_id": parameters.run_id,
        "suites": [parameters.suite],
        "profile": parameters.profile,
        "n": parameters.items,
        "seed": parameters.seed,
        "context_limit": resolved.spec.context_limit if resolved.suite.uses_context_limit else CONTEXT_LIMIT,
        "overrides": [f"{name}={json.dumps(value)}" for name, value in sorted(resolved.suite_overrides.items())],
    }
    checksums = {"data": card.source(resolved.suite, resolved.settings)}
    identity = cell_id(f"{parameters.profile}-build", DATASETS, values, (), checksums)
    size = f"{parameters.items}_{parameters.seed}"
    record = record_folder(parameters.run_id, "datasets", parameters.suite, parameters.items, parameters.seed, identity)
    label = " ".join([parameters.suite, "data", parameters.profile, size, *values["overrides"]])
    return Cell(DATASETS, values, identity, record, label, checksums=checksums)


def report_cell(run_id: str, finished: list[str]) -> Cell:
    """The cell of `05_report` over the records that are finished now."""
    values: dict[str, Any] = {"run_id": run_id}
    identity = cell_id("report", REPORT, values, tuple(finished), {"results": fingerprints.report_sources(), "lock": fingerprints.lock()})
    return Cell(REPORT, values, identity, run_folder(run_id) / "report" / identity, f"report of {run_id}")
