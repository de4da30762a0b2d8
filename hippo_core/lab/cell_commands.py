"""What the other commands do: run one cell, build data sets, run any notebook."""

import sys
from collections.abc import Sequence
from typing import Any

from hippo_core.files import root, unknown
from hippo_core.results.records import RUNS, is_complete, run_folder, set_aside
from hippo_core.suites import SUITES

from . import closing, execute, notebooks, runner_files
from .cells import FORMS, dataset_cell
from .materials import require_threads
from .parameters import assignments, check
from .progress.said import Said
from .running import ALONE, How, run, stops_cleanly
from .standing import stand, supersede
from .taught import with_needs

PHASES = {phase.partition("_")[2]: phase for phase in FORMS}  # by what a person calls them


def run_single(phase: str, words: Sequence[str], again: bool) -> int:
    """Run one cell alone, with what it needs where that is not there; a finished record is kept and said."""
    if phase not in PHASES:
        raise unknown("phase", phase, PHASES)
    parameters, _ = check({"run_id": "single", **assignments(words)}, f"run {phase}", FORMS[PHASES[phase]])
    cells = with_needs(parameters)
    cell = cells[-1]
    where = runner_files.short(cell.record)
    if is_complete(cell.record) and not again:
        print(f"finished already: {where}\nto run it again and keep this one aside: {closing.command(cell)} --again")
        return 0
    require_threads(parameters.threads)
    execute.fix_threads(parameters.threads)
    with runner_files.locked(run_folder(parameters.run_id), alone=False):
        if is_complete(cell.record):
            print(f"kept aside: {runner_files.short(set_aside(cell.record))}")
        outcomes = run(stand(cells).waiting, ALONE)
    failed = closing.failures(outcomes)
    for line in failed or (*closing.warnings(outcomes), closing.result(cell), f"record: {where}"):
        print(line)
    return int(bool(failed))


def build_datasets(words: Sequence[str]) -> int:
    """Build the data sets of every suite, or of the one that `suite=` names."""
    told: dict[str, Any] = {"run_id": "datasets", **assignments(words)}
    suites = [told.pop("suite")] if "suite" in told else list(SUITES)
    cells = [dataset_cell(check({**told, "suite": suite}, "datasets")[0]) for suite in suites]
    execute.fix_threads(1)
    with runner_files.locked(run_folder(told["run_id"]), alone=True):
        supersede(cells)
        waiting = stand(cells).waiting
        outcomes = run(waiting, How(), skipped=len(cells) - len(waiting))
    for line in (*closing.failures(outcomes), f"{len(cells) - len(waiting)} there already, {len(outcomes)} built, under data/generated"):
        print(line)
    return int(any(outcome.state == "failed" for outcome in outcomes))


def run_any_notebook(name: str, words: Sequence[str]) -> int:
    """Run a notebook with some parameters set, its output on the terminal; keep it executed under executed/notebooks."""
    source = notebooks.notebook_path(name)
    target = root() / RUNS / "notebooks" / f"{name}.ipynb"
    told = assignments(words)
    notebooks.check_values(source, told)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with stops_cleanly():
            execute.run_notebook(source, target, told, Terminal())
    except OSError:
        raise
    except Exception as error:  # whatever the notebook raised is told in one line; the notebook has the traceback
        print(f"failed: {execute.reason(error)}\n  notebook: {runner_files.short(target)}", file=sys.stderr)
        return 1
    print(f"notebook: {runner_files.short(target)}")
    return 0


class Terminal(Said):
    """Shows what a notebook prints as it prints it."""

    def write(self, text: str) -> int:
        """Pass a piece of output on."""
        sys.stdout.write(text)
        sys.stdout.flush()
        return super().write(text)
