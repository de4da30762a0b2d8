"""What the commands of a grid do: run what is left of it and report, plan it, write its report again."""

import math
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hippo_core.errors import LabError, unknown
from hippo_core.files import root
from hippo_core.lab.grid import summary
from hippo_core.lab.grid.engine import ALONE, RunOptions, run
from hippo_core.lab.grid.expand import Grid, Selection, expand
from hippo_core.lab.grid.grid_status import RecordStatus, status_of, supersede
from hippo_core.lab.grid.progress.status import StatusFile, duration, seconds_left
from hippo_core.lab.run import execute, record_files
from hippo_core.lab.run.cells import Cell, report_cell, require_threads
from hippo_core.lab.run.execute import Outcome
from hippo_core.plugins import is_path
from hippo_core.protocols.base.experiment import load_experiment
from hippo_core.results.records import RUNS, is_complete, records_with, run_folder
from hippo_core.results.records.archive import shared
from hippo_core.spoken import number_of

if TYPE_CHECKING:
    from hippo_core.lab.grid.preflight import Check
    from hippo_core.protocols.questions.report.contract import Violation

OFF = "--no-preflight (PREFLIGHT=no)"


def run_grid(name: str, run_id: str, selection: Selection, options: RunOptions) -> int:
    """Run what is left of a grid and its report, and say how it went; 1 where a cell failed, or one has no score after its sleep."""
    started = time.monotonic()
    grid = expand(name, run_id, selection, options.threads_each)
    if options.executor == "local":
        require_threads(grid.threads)
    if options.preflight and _is_hopeless(grid, options):
        print(f"grid {grid.name} was not begun: by what is said above it could show nothing; {OFF} begins it all the same")
        return 1
    execute.fix_threads(grid.threads)
    locked = record_files.locked(run_folder(grid.run_id), alone=True)
    records = [cell.record for cell in grid.cells]
    with locked, shared(options.archive, grid.run_id, records), StatusFile(grid.run_id) as file:
        supersede(grid.cells)
        status = status_of(grid.cells)
        to_run = f"{len(status.waiting)} to run" if status.waiting else "nothing to be done"
        cells = f"{len(grid.cells)} cells, {len(status.finished)} finished, {to_run}{_time_needed(status, options.jobs)}"
        print(f"grid {grid.name}, run {grid.run_id}: {cells}", flush=True)
        if status.waiting:
            from hippo_core.lab.grid.preflight import declare  # a second of imports

            if message := declare(grid):
                print(f"power: {message}", flush=True)
        outcomes = run(status, options, grid, file)
        own = {cell.experiment for cell in grid.cells if is_path(cell.experiment)}
        outcomes += _report(grid.run_id, bool(outcomes), own, RunOptions(1, options.kernel), grid)
    skipped = len(grid.cells) - sum(outcome.cell in grid.cells for outcome in outcomes)
    lines = summary.summary_lines(grid.run_id, outcomes, skipped, time.monotonic() - started)
    sleepless = summary.without_sleep(grid.cells)
    for line in (*summary.failures(outcomes), *summary.warnings(outcomes), *summary.invalid(grid.run_id), *sleepless, *lines):
        print(line)
    return int(bool(sleepless) or any(outcome.state == "failed" for outcome in outcomes))


def preflight_grid(name: str, run_id: str, selection: Selection, options: RunOptions) -> int:
    """Ask each memory of a grid a few validation questions, and say which clauses of the contract it breaks; 1 where it breaks one."""
    from hippo_core.lab.grid.preflight import check_of

    grid = expand(name, run_id, selection, options.threads_each)
    check = check_of(grid.cells, f"{grid.run_id}-preflight")
    if not check.cells:
        print(f"grid {grid.name}: no memory to be checked")
    failed, broken = _run_check(grid, check, options)
    if check.cells and not failed and not broken:
        print(f"grid {grid.name}: its memories keep the contract on a few validation questions")
    return int(failed or bool(broken))


def _is_hopeless(grid: Grid, options: RunOptions) -> bool:
    """Whether no memory of a large grid keeps the contract on a few validation questions, so that the grid could show nothing. What is
    broken is said."""
    from hippo_core.lab.grid.preflight import check_of

    check = check_of(grid.cells, f"{grid.run_id}-preflight")
    if not check.is_small_beside(grid.cells):
        return False
    print(f"grid {grid.name}: a few validation questions first; {OFF} goes without", flush=True)
    failed, broken = _run_check(grid, check, options)
    return failed or len({violation.record for violation in broken}) == check.asked


def _run_check(grid: Grid, check: "Check", options: RunOptions) -> "tuple[bool, list[Violation]]":
    """Run what is left of a check, and say what it found: whether a cell failed, and the clauses that are broken."""
    from hippo_core.protocols.questions.report.contract import violation_messages
    from hippo_core.protocols.questions.report.runs import broken_clauses

    for line in check.unasked:
        print(line)
    if not check.cells:
        return False, []
    folder = run_folder(check.run_id)
    execute.fix_threads(grid.threads)
    with record_files.locked(folder, alone=True):
        supersede(check.cells)
        outcomes = run(status_of(check.cells), RunOptions(options.jobs, options.kernel), grid)
    failed = summary.failures(outcomes)
    broken = [] if failed else broken_clauses(folder)
    for line in failed or violation_messages(broken):
        print(line)
    return bool(failed), broken


def _print_kv_size(cells: Sequence[Cell]) -> None:
    """What keys and values of passages take at most, in the largest of these cells and, where they are kept there, on disk."""
    experiments = [(load_experiment(cell.experiment), cell) for cell in cells if cell.experiment]
    sizes = [size for experiment, cell in experiments if (size := experiment.kv_size(experiment.parameters(**cell.parameters)))]
    if sizes:
        disk = math.ceil(min(sum(size.disk_mb for size in sizes), max(size.disk_limit_mb for size in sizes)))
        memory = f"at most {math.ceil(max(size.memory_mb for size in sizes)):,} MiB in memory in a cell"
        print(f"keys and values: {memory}" + (f", {disk:,} MiB on disk" if disk else ""))


def _report(run_id: str, force: bool, own: Iterable[str], options: RunOptions = ALONE, grid: Grid | None = None) -> list[Outcome]:
    """Run the report of a run over its finished records, where something is new or it is not there; older executed reports go. `own`: the
    experiments, by module path, whose code may be imported."""
    finished = [record.name for record in records_with(run_folder(run_id), dry_run=True)]
    if not finished:
        return []
    cell = report_cell(run_id, finished, sorted(own))
    if not force and is_complete(cell.record) and summary.criteria(run_id):
        return []
    for old in cell.record.parent.iterdir() if cell.record.parent.is_dir() else ():
        record_files.remove(old)
    return run(status_of([cell]), options, grid)


def run_report(run_id: str, own: Sequence[str]) -> int:
    """Write the report of a run again; the code of experiments of one's own is imported only where `own` names them."""
    if not run_folder(run_id).is_dir():
        raise unknown("run", run_id, [path.name for path in (root() / RUNS).iterdir() if path.is_dir()] if (root() / RUNS).is_dir() else [])
    execute.fix_threads(1)
    with record_files.locked(run_folder(run_id), alone=True):
        outcomes = _report(run_id, True, own)
    if not outcomes:
        raise LabError(f"run {run_id} has no finished record; run a grid first: make grid")
    for line in (*summary.failures(outcomes), f"report: {summary.report_page(run_id)}"):
        print(line)
    return int(outcomes[0].state == "failed")


def plan_grid(name: str, run_id: str, selection: Selection, options: RunOptions) -> None:
    """Print every cell with its state and the seconds that earlier records say it takes."""
    from hippo_core.lab.grid.preflight import power  # a second of imports

    grid = expand(name, run_id, selection, options.threads_each)
    status = status_of(grid.cells)
    waiting, earlier = {cell.id for cell in status.waiting}, status.estimates
    for cell in grid.cells:
        state = "-" if cell.id not in waiting else f"{earlier[cell.id]:.0f} s" if cell.id in earlier else "?"
        print(f"{'run ' if cell.id in waiting else 'skip'} {state:>6}  {cell.id:24}  {cell.label}")
    if message := power(grid.cells):
        print(f"power: {message}")
    _print_kv_size(status.waiting)
    print(f"grid {name}: {grid.title}")
    counts = f"{len(grid.cells) - len(waiting)} to skip, {len(waiting)} to run"
    print(f"{len(grid.cells)} cells: {counts}{_time_needed(status, options.jobs)}")


def _time_needed(status: RecordStatus, jobs: int) -> str:
    """The time that the waiting cells take, behind a comma, and how many of them it is a guess of; empty where none waits."""
    if not status.waiting:
        return ""
    left, strange = seconds_left(status.waiting, {}, [], status.estimates, jobs), len(status.waiting) - len(status.estimates)
    if left is None:
        return ", no earlier record to judge the time by"
    guessed = f" ({strange} of them, of which no earlier record tells, as the mean of the others)" if strange else ""
    return f", about {duration(left)} with {number_of(jobs, 'job')}{guessed}"
