"""A cell: one notebook with fixed parameters. Its id is a hash of all that its result can depend on, so an equal id is an equal record."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hippo_core.lab.run import fingerprints
from hippo_core.lab.run.parameters import PLACE, BaselineParameters, MemoryParameters, Parameters, resolve
from hippo_core.methods.episodic.settings import MemoryPreset
from hippo_core.results.records import record_folder, run_folder
from hippo_core.suites.datasets import card
from hippo_core.suites.datasets.build import CONTEXT_LIMIT

BASELINE, MEMORY, DATASETS, REPORT = "02_baseline", "03_memory", "01_build_datasets", "05_report"
FORMS: dict[str, type[Parameters]] = {BASELINE: BaselineParameters, MEMORY: MemoryParameters}  # of the notebooks that ask questions


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


def told_of(cell: Cell) -> Parameters | None:
    """The parameters of a cell whose notebook asks questions; None for another."""
    return FORMS[cell.phase].model_validate(cell.parameters) if cell.phase in FORMS else None


def checksums(phase: str, parameters: Parameters) -> dict[str, Any]:
    """What a cell of a notebook rests on besides its code and its parameters. `data` covers the suite's code, material and settings.

    Of a memory's settings those count that its phase depends on, and its own weights, where the model has some.
    """
    resolved = resolve(parameters)
    preset, memory = resolved.preset, isinstance(resolved.preset, MemoryPreset)
    told = preset.of_phase(parameters.mode) if isinstance(preset, MemoryPreset) else preset.model_dump(mode="json")
    settings = [told, resolved.spec.model_dump(mode="json"), fingerprints.shots() if resolved.spec.shots else None]
    return {
        "library": fingerprints.library(phase),
        "lock": fingerprints.lock(),
        "data": card.source(parameters.suite, resolved.settings),
        "weights": fingerprints.weights(parameters.model),
        "settings": fingerprints.digest(settings),
        **({"memory_weights": fingerprints.memory_weights(parameters.model)} if memory else {}),
    }


def asking_cell(phase: str, parameters: Parameters, needs: tuple[str, ...], said: str) -> Cell:
    """A cell of a notebook that asks questions, or prepares what is asked; `said` is what its label says of it in place of its mode."""
    told = parameters.model_dump()
    identity = cell_id(f"{parameters.regime}-{parameters.mode}", phase, told, needs, checksums(phase, parameters))
    place = (parameters.run_id, parameters.preset, parameters.suite, parameters.n, parameters.seed)
    usual = BaselineParameters()
    extra = [*(getattr(parameters, name) for name in ("split", "model") if getattr(parameters, name) != getattr(usual, name))]
    size = f"{parameters.n}_{parameters.seed}"
    label = " ".join([parameters.suite, parameters.preset, said, size, *extra, *parameters.overrides])
    return Cell(phase, told, identity, record_folder(*place, identity), label, needs)


def baseline_cell(parameters: BaselineParameters, data: Cell | None = None) -> Cell:
    """The cell of `02_baseline` with these parameters; it needs the data set that `dataset_cell` builds: `data` where it is known."""
    return asking_cell(BASELINE, parameters, ((data or dataset_cell(parameters)).id,), parameters.regime)


def dataset_cell(parameters: Parameters) -> Cell:
    """The cell of `01_build_datasets` that builds what such a cell reads; both splits at once."""
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
