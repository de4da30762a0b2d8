"""A cell: one notebook with fixed parameters, the command that runs it alone, and what it needs of the machine.

Its id is a hash of all that its result can depend on, so an equal id is an equal record.
"""

import json
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hippo_core.errors import LabError
from hippo_core.files import COMMAND
from hippo_core.lab.run import fingerprints
from hippo_core.models.packages.pins import available, missing, packages
from hippo_core.models.spec import load_spec
from hippo_core.protocols.base.assignments import assignments
from hippo_core.protocols.base.experiment import load_experiment
from hippo_core.protocols.base.parameters import RECORD_FIELDS
from hippo_core.protocols.base.plan import CellPlan
from hippo_core.results.records import run_folder

REPORT = "05_report"
SINGLE = "single"  # the run of cells that are run alone, unless one is named


@dataclass(frozen=True, eq=False)
class Cell:
    """One execution of a notebook."""

    notebook: str  # the stem of a file in `notebooks/`, or the path of one from the lab's root
    parameters: dict[str, Any]
    id: str
    record: Path
    label: str  # what a person calls it
    needs: dict[str, str] = field(default_factory=dict)  # ids of cells whose records must be there first, by what they are to this one
    sources: dict[str, Path] = field(default_factory=dict)  # the folders of these records
    checksums: dict[str, Any] = field(default_factory=dict)  # what it rests on besides its notebook, its parameters and its needs
    experiment: str = ""
    plan: CellPlan | None = None  # as its experiment planned it; None for reports, and on a worker

    @property
    def phase(self) -> str:
        """The stem of its notebook's file."""
        return Path(self.notebook).stem

    @property
    def needed(self) -> set[str]:
        """The ids of the cells that it needs."""
        return set(self.needs.values())


def cell_id(kind: str, notebook: str, parameters: dict[str, Any], needs: dict[str, str], rests_on: dict[str, Any]) -> str:
    """`<kind>-<8 hex>`: a hash of the notebook's code, the parameter values (not where the record goes), the needs and `rests_on`."""
    values = {name: value for name, value in parameters.items() if name not in RECORD_FIELDS}
    parts = {"notebook": fingerprints.notebook(notebook), "parameters": values, "needs": needs, **rests_on}
    return f"{kind}-{fingerprints.digest(parts)[:8]}"


def cells_of(plan: CellPlan) -> tuple[Cell, ...]:
    """The planned cell, last, behind all cells that it needs, each once."""
    chain: dict[str, Cell] = {}
    cell = _planned(plan, chain)
    return *(needed for needed in chain.values() if needed.id != cell.id), cell


def _planned(plan: CellPlan, chain: dict[str, Cell]) -> Cell:
    needed = {name: _planned(need, chain) for name, need in plan.needs.items()}
    needs, checksums = {name: cell.id for name, cell in needed.items()}, dict(plan.inputs)
    if plan.modules:
        checksums |= {"library": fingerprints.library(plan.modules), "lock": fingerprints.lock()}
    identity = cell_id(plan.kind, plan.notebook, plan.parameters, needs, checksums)
    record = run_folder(plan.parameters["run_id"]).joinpath(*plan.folder, identity)
    sources = {name: cell.record for name, cell in needed.items()}
    cell = Cell(plan.notebook, plan.parameters, identity, record, plan.label, needs, sources, checksums, plan.experiment, plan)
    return chain.setdefault(identity, cell)


def report_cell(run_id: str, finished: list[str], own: Sequence[str] = ()) -> Cell:
    """The cell of `05_report` over the records that are finished now. `own`: the experiments, by module path, whose code it may import."""
    values: dict[str, Any] = {"run_id": run_id} | ({"experiments": sorted(own)} if own else {})
    rests_on = {"results": fingerprints.report_sources(), "lock": fingerprints.lock(), "finished": sorted(finished)}
    identity = cell_id("report", REPORT, values, {}, rests_on)
    return Cell(REPORT, values, identity, run_folder(run_id) / "report" / identity, f"report of {run_id}")


def command(cell: Cell) -> str:
    """The command that runs a cell alone, into the same run; defaults are left out. Each word is quoted for a shell."""
    if not cell.experiment:
        return " ".join([COMMAND, "notebook", shlex.quote(cell.phase), *_words(cell.parameters)])
    experiment = load_experiment(cell.experiment)
    usual = experiment.parameters(run_id=SINGLE).model_dump()
    said = {name: cell.parameters[name] for name in experiment.label_fields if name in cell.parameters}
    changed = said | {name: value for name, value in cell.parameters.items() if value != usual[name]}
    return " ".join([COMMAND, "run", shlex.quote(cell.experiment), *_words(changed)])


def _words(values: Mapping[str, Any]) -> list[str]:
    return [f"{shlex.quote(name)}={shlex.quote(_yaml(value))}" for name, value in values.items()]


def _yaml(value: object) -> str:
    """A value as the command line reads it back, which is YAML; plain where that says the same."""
    if isinstance(value, list):
        plain = f"[{', '.join(map(_yaml, value))}]"
        return plain if _read(plain) == value else json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        return value if _read(value) == value else json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)


def _read(text: str) -> object:
    try:
        return assignments([f"value={text}"])["value"]
    except LabError:
        return None


@dataclass(frozen=True)
class Requirements:
    """The models and the encoders that cells need where they run, by name."""

    models: tuple[str, ...]
    encoders: tuple[str, ...]

    def require(self) -> None:
        """LabError where one of them is not on this machine."""
        require_weights(self.models)
        require_encoders(self.encoders)


def materials(cells: Iterable[Cell]) -> Requirements:
    """What these cells need."""
    plans = [cell.plan for cell in cells if cell.plan]
    models, encoders = ({name for plan in plans for name in getattr(plan, kind)} for kind in ("models", "encoders"))
    return Requirements(tuple(sorted(models)), tuple(sorted(encoders)))


def require_weights(models: Iterable[str]) -> None:
    """LabError where a model that lies on this disk, or its adapter, is not there, before any cell starts."""
    for spec in map(load_spec, sorted(models)):
        if reason := missing(spec):
            raise LabError(reason)


def require_encoders(encoders: Iterable[str]) -> None:
    """LabError where one of these encoders comes with `make models` and is not there, before any cell starts."""
    for encoder in sorted({*encoders} & packages().keys()):
        if reason := available(encoder):
            raise LabError(f"encoder {encoder}: {reason}")


def require_threads(threads: int) -> None:
    """LabError where a cell is to compute with more threads than this machine has cores."""
    cores = os.cpu_count() or 1
    if threads > cores:
        raise LabError(f"threads: expected at most {cores}, the cores of this machine, got {threads}")
