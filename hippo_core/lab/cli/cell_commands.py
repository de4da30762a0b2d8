"""What the other commands do: run one cell, build data sets, run any notebook."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hippo_core.files import root
from hippo_core.lab.grid import summary
from hippo_core.lab.grid.engine import ALONE, RunOptions, run, stops_cleanly
from hippo_core.lab.grid.grid_status import status_of, supersede
from hippo_core.lab.run import execute, notebook_files, record_files
from hippo_core.lab.run.cells import SINGLE, cells_of, command, require_threads
from hippo_core.lab.run.execute import Output
from hippo_core.protocols.base.assignments import assignments
from hippo_core.protocols.base.experiment import load_experiment
from hippo_core.results.records import RUNS, clear_record, is_complete, run_folder, set_aside
from hippo_core.suites import drawn_suites
from hippo_core.suites.datasets.build import dataset_folder


def run_single(name: str, words: Sequence[str], again: bool) -> int:
    """Run one cell of an experiment alone, with what it needs where that is not there; a finished record is kept and said."""
    experiment = load_experiment(name)
    values, chosen = experiment.fill_defaults({"run_id": SINGLE, **assignments(words)})
    parameters = experiment.check(values, f"run {name}")
    *_, cell = cells = cells_of(experiment.plan(parameters))
    where = record_files.short(cell.record)
    if is_complete(cell.record) and not again:
        print(f"finished already: {where}\nto run it again and keep this one aside: {command(cell)} --again")
        return 0
    require_threads(parameters.threads)
    if chosen:
        print(chosen, flush=True)
    execute.fix_threads(parameters.threads)
    with record_files.locked(run_folder(parameters.run_id), alone=False):
        if is_complete(cell.record):
            print(f"kept aside: {record_files.short(set_aside(cell.record))}")
        outcomes = run(status_of(cells), ALONE)
    failed = summary.failures(outcomes)
    for line in failed or (*summary.warnings(outcomes), summary.result(cell), f"record: {where}"):
        print(line)
    return int(bool(failed))


def build_datasets(words: Sequence[str]) -> int:
    """Build the data sets of every suite, or of the one that `suite=` names."""
    values: dict[str, Any] = {"run_id": "datasets", **assignments(words)}
    suites = [values.pop("suite")] if "suite" in values else list(drawn_suites())
    answer = load_experiment("answer")
    cells = [cells_of(answer.plan(answer.check({**values, "suite": suite}, "datasets")).needs["data"])[-1] for suite in suites]
    execute.fix_threads(1)
    with record_files.locked(run_folder(values["run_id"]), alone=True):
        supersede(cells)
        for cell in cells:
            if not _dataset(cell.parameters).is_dir():  # `make clean` takes data sets away and leaves records
                clear_record(cell.record)
        status = status_of(cells)
        outcomes = run(status, RunOptions(kernel="cold"))
    failed = sum(outcome.state == "failed" for outcome in outcomes)
    counts = f"{len(status.finished)} there already, {len(outcomes) - failed} built" + (f", {failed} failed" if failed else "")
    for line in (*summary.failures(outcomes), f"{counts}, under data/generated"):
        print(line)
    return int(failed > 0)


def _dataset(values: Mapping[str, Any]) -> Path:
    """The folder that the cell of a data set with these parameters builds."""
    overrides = assignments(values["overrides"])
    return dataset_folder(values["suites"][0], values["profile"], values["n"], values["seed"], values["context_limit"], overrides)


def run_any_notebook(name: str, words: Sequence[str]) -> int:
    """Run a notebook with some parameters set, its output on the terminal; keep it executed under executed/notebooks."""
    source = notebook_files.notebook_path(name)
    target = root() / RUNS / "notebooks" / f"{name}.ipynb"
    values = assignments(words)
    notebook_files.check_values(source, values)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with stops_cleanly():
            execute.run_notebook(source, target, values, Terminal())
    except OSError:
        raise
    except Exception as error:  # whatever the notebook raised is given in one line; the notebook has the traceback
        print(f"failed: {execute.reason(error)}\n  notebook: {record_files.short(target)}", file=sys.stderr)
        return 1
    print(f"notebook: {record_files.short(target)}")
    return 0


class Terminal(Output):
    """Shows what a notebook prints as it prints it."""

    def write(self, text: str) -> int:
        """Pass a piece of output on."""
        sys.stdout.write(text)
        sys.stdout.flush()
        return super().write(text)
