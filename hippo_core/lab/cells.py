"""A cell: one notebook with fixed parameters. Its id is a hash of all that its result can depend on, so an equal id is an equal record."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hippo_core.results.records import record_folder, run_folder
from hippo_core.suites.datasets import card
from hippo_core.suites.datasets.build import CONTEXT_LIMIT

from . import fingerprints
from .parameters import PLACE, BaselineParameters, resolve

BASELINE, DATASETS, REPORT = "02_baseline", "01_build_datasets", "05_report"


@dataclass(frozen=True, eq=False)
class Cell:
    """One execution of a notebook. `needs` are ids of cells whose records must be there first; `label` is what a person calls it."""

    phase: str
    parameters: dict[str, Any]
    id: str
    record: Path
    label: str
    needs: tuple[str, ...] = ()


def cell_id(prefix: str, phase: str, parameters: dict[str, Any], needs: tuple[str, ...], rests_on: dict[str, Any]) -> str:
    """`<prefix>-<8 hex>`: a hash of the notebook's code, the parameter values (not where the record goes), the needs and `rests_on`."""
    values = {name: value for name, value in parameters.items() if name not in PLACE}
    parts = {"notebook": fingerprints.notebook(phase), "parameters": values, "needs": sorted(needs), **rests_on}
    return f"{prefix}-{fingerprints.digest(parts)[:8]}"


def checksums(parameters: BaselineParameters) -> dict[str, Any]:
    """What a baseline cell rests on besides its notebook and its parameters. `data` covers the suite's code, material and settings."""
    resolved = resolve(parameters)
    settings = [resolved.preset.model_dump(mode="json"), resolved.spec.model_dump(mode="json")]
    return {
        "library": fingerprints.library(),
        "lock": fingerprints.lock(),
        "data": card.source(parameters.suite, resolved.settings),
        "weights": fingerprints.weights(parameters.model),
        "settings": fingerprints.digest([*settings, fingerprints.shots() if resolved.spec.shots else None]),
    }


def baseline_cell(parameters: BaselineParameters, data: Cell | None = None) -> Cell:
    """The cell of `02_baseline` with these parameters; it needs the data set that `dataset_cell` builds: `data` where it is known."""
    told = parameters.model_dump()
    needs = ((data or dataset_cell(parameters)).id,)
    identity = cell_id(f"{parameters.regime}-test", BASELINE, told, needs, checksums(parameters))
    place = (parameters.run_id, parameters.preset, parameters.suite, parameters.n, parameters.seed)
    usual = BaselineParameters()
    extra = [*(getattr(parameters, name) for name in ("split", "model") if getattr(parameters, name) != getattr(usual, name))]
    size = f"{parameters.n}_{parameters.seed}"
    label = " ".join([parameters.suite, parameters.preset, parameters.regime, size, *extra, *parameters.overrides])
    return Cell(BASELINE, told, identity, record_folder(*place, identity), label, needs)


def dataset_cell(parameters: BaselineParameters) -> Cell:
    """The cell of `01_build_datasets` that builds what a baseline cell reads; both splits at once."""
    resolved = resolve(parameters)
    told: dict[str, Any] = {
        "run_id": parameters.run_id,
        "suites": [parameters.suite],
        "profile": parameters.profile,
        "n": parameters.items,
        "seed": parameters.seed,
        "context_limit": resolved.spec.context_limit if resolved.suite.uses_context_limit else CONTEXT_LIMIT,
        "overrides": [f"{name}={json.dumps(value)}" for name, value in sorted(resolved.suite_overrides.items())],
    }
    identity = cell_id(f"{parameters.profile}-build", DATASETS, told, (), {"data": card.source(parameters.suite, resolved.settings)})
    record = record_folder(parameters.run_id, "datasets", parameters.suite, parameters.items, parameters.seed, identity)
    size = f"{parameters.items}_{parameters.seed}"
    return Cell(DATASETS, told, identity, record, " ".join([parameters.suite, "data", parameters.profile, size, *told["overrides"]]))


def report_cell(run_id: str, finished: list[str]) -> Cell:
    """The cell of `05_report` over the records that are finished now."""
    told: dict[str, Any] = {"run_id": run_id}
    identity = cell_id("report", REPORT, told, tuple(finished), {"results": fingerprints.report_sources(), "lock": fingerprints.lock()})
    return Cell(REPORT, told, identity, run_folder(run_id) / "report" / identity, f"report of {run_id}")


def materials(cells: Iterable[Cell]) -> tuple[list[str], list[str]]:
    """The models and the encoders that cells need where they run, by name."""
    told = [BaselineParameters(**cell.parameters) for cell in cells if cell.phase == BASELINE]
    encoders = {str(resolve(one).preset.encoder) for one in told if resolve(one).preset.encoder}
    return sorted({one.model for one in told}), sorted(encoders)
