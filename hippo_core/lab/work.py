"""What each command does: plan a grid, run it and its report, run one cell, build data sets, run any notebook."""

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from hippo_core.files import LabError, root, unknown
from hippo_core.results.records import RUNS, is_complete, records_of, run_folder, set_aside
from hippo_core.results.records.archive import Archive
from hippo_core.suites import SUITES

from . import closing, execute, notebooks, runner_files
from .cells import Cell, baseline_cell, dataset_cell, materials, report_cell
from .engine import run_cells
from .execute import USUAL, Kernel, Outcome, Way
from .executors import Executor
from .executors.kernels import end_kernels
from .executors.local import Local
from .grid import Grid, expand
from .parameters import assignments, check, require_encoders, require_weights
from .progress import Progress, duration
from .said import Said
from .standing import estimate, stand, supersede

PHASES = {"baseline": "02_baseline"}
EXECUTORS = ("local", "dask")


@dataclass(frozen=True)
class How:
    """How a grid is run: so many cells at a time, in kernels of this kind, here or on a Dask cluster, with an archive or without.

    `threads` of each cell: a number, `auto` (the cores of this machine divided by the jobs), or nothing for what the grid's file says.
    """

    jobs: int = 2
    kernel: Kernel = "warm"
    executor: str = "local"
    scheduler: str = ""
    archive: str = ""
    threads: str = ""


ALONE = How(jobs=1)


def run_grid(name: str, run_id: str, only: tuple[str, ...], models: tuple[str, ...], how: How) -> int:
    """Run what is left of a grid and its report, and say how it went; 1 where a cell failed."""
    started = time.monotonic()
    if how.executor not in EXECUTORS:
        raise unknown("executor", how.executor, EXECUTORS)
    grid = expand(name, run_id, only, models, _threads(how))
    execute.fix_threads(grid.threads)
    with runner_files.locked(run_folder(grid.run_id), alone=True), _archive(how.archive, grid) as archive:
        supersede(grid.cells)
        if archive:
            _exchange(archive, grid)
        standing = stand(grid.cells)
        _say_start(grid, len(standing.finished), len(standing.waiting))
        way = Way(how.kernel, grid.threads, grid.timeout, grid.memory, how.archive)
        outcomes = _run(standing.waiting, how, len(standing.finished), way, grid)
        outcomes += _report(grid.run_id, force=bool(outcomes), way=replace(way, archive=""))
    _say_end(grid.run_id, outcomes, len(grid.cells) - sum(outcome.cell in grid.cells for outcome in outcomes), time.monotonic() - started)
    return int(any(outcome.state == "failed" for outcome in outcomes))


def _threads(how: How) -> int | None:
    if how.threads == "auto":
        return max(1, (os.cpu_count() or 1) // how.jobs)
    if how.threads and not (how.threads.isdigit() and int(how.threads)):
        raise LabError(f"threads: expected a whole number above 0, or auto, got {how.threads!r}")
    return int(how.threads) if how.threads else None


@contextmanager
def _archive(url: str, grid: Grid) -> Iterator[Archive | None]:
    """The archive of a run, tried and held, where one is asked for."""
    if not url:
        yield None
        return
    archive = Archive(url)
    archive.check()
    with archive.locked(grid.run_id):
        yield archive


def _exchange(archive: Archive, grid: Grid) -> None:
    """Bring what the archive has of this grid's records, and copy there what it lacks."""
    there = archive.finished(grid.run_id)
    names = {cell.record.relative_to(root() / RUNS).as_posix(): cell for cell in grid.cells}
    archive.pull(sorted(there & names.keys()))
    for name in sorted(names.keys() - there):
        if is_complete(names[name].record):
            archive.push(names[name].record)


def _say_start(grid: Grid, finished: int, waiting: int) -> None:
    later = f"; not there yet: {', '.join(grid.not_there)} ({sum(grid.not_there.values())} cells)" if grid.not_there else ""
    left = f"{waiting} to run" if waiting else "nothing to be done"
    print(f"grid {grid.name}, run {grid.run_id}: {len(grid.cells)} cells, {finished} finished, {left}{later}", flush=True)


def _say_end(run_id: str, outcomes: Sequence[Outcome], skipped: int, seconds: float) -> None:
    for line in (*closing.failures(outcomes), *closing.closing(run_id, outcomes, skipped, seconds)):
        print(line)


def _run(cells: Sequence[Cell], how: How, skipped: int, way: Way = USUAL, grid: Grid | None = None) -> list[Outcome]:
    if not cells:
        return []
    if how.executor == "local":
        models, encoders = materials(cells)
        require_weights(models)
        require_encoders(encoders)
    known = [seconds for seconds in estimate(cells) if seconds is not None]
    expected = sum(known) / len(known) * len(cells) if known else None
    with (
        stops_cleanly(),
        contextlib.closing(_executor(cells, how, way, grid)) as executor,
        Progress(len(cells), how.jobs, skipped, expected) as progress,
    ):
        return run_cells(cells, executor, progress)


def _executor(cells: Sequence[Cell], how: How, way: Way, grid: Grid | None) -> Executor:
    if how.executor == "local" or grid is None:
        return Local(cells, how.jobs, way)
    from .executors.dask import DaskCluster  # a second of imports

    return DaskCluster(cells, how.scheduler, way, grid)


@contextmanager
def stops_cleanly() -> Iterator[None]:
    """Ctrl-C ends the kernels of this process and says so in one line."""
    try:
        yield
    except KeyboardInterrupt:
        end_kernels()
        print("stopped; what is finished is kept, call again to go on", file=sys.stderr)
        raise SystemExit(130) from None


def _report(run_id: str, force: bool, way: Way = USUAL) -> list[Outcome]:
    """Run the report of a run over its finished records, where something is new or it is not there; older executed reports go."""
    finished = [record.name for record in records_of(run_folder(run_id), split=None)]
    if not finished:
        return []
    cell = report_cell(run_id, finished)
    if not force and is_complete(cell.record) and closing.criteria(run_id):
        return []
    for old in cell.record.parent.iterdir() if cell.record.parent.is_dir() else ():
        shutil.rmtree(old)
    return _run([cell], ALONE, 0, way)


def run_report(run_id: str) -> int:
    """Write the report of a run again."""
    if not run_folder(run_id).is_dir():
        raise unknown("run", run_id, [path.name for path in (root() / RUNS).iterdir() if path.is_dir()] if (root() / RUNS).is_dir() else [])
    with runner_files.locked(run_folder(run_id), alone=True):
        outcomes = _report(run_id, force=True)
    if not outcomes:
        raise LabError(f"run {run_id} has no finished record; run a grid first: make grid")
    for line in (*closing.failures(outcomes), f"report: {closing.report_place(run_id)}"):
        print(line)
    return int(outcomes[0].state == "failed")


def plan_grid(name: str, run_id: str, only: tuple[str, ...], models: tuple[str, ...], how: How) -> None:
    """Print every cell with its state and the seconds that earlier records say it takes."""
    grid = expand(name, run_id, only, models, _threads(how))
    standing = stand(grid.cells)
    waiting = {cell.id: seconds for cell, seconds in zip(standing.waiting, estimate(standing.waiting), strict=True)}
    for cell in grid.cells:
        seconds = waiting.get(cell.id)
        state = "-" if cell.id not in waiting else "?" if seconds is None else f"{seconds:.0f} s"
        print(f"{'run ' if cell.id in waiting else 'skip'} {state:>6}  {cell.id:24}  {cell.label}")
    for preset, count in grid.not_there.items():
        print(f"not there yet: {preset} ({count} cells)")
    known = [seconds for seconds in waiting.values() if seconds is not None]
    total = (
        f"about {duration(sum(known) / len(known) * len(waiting) / how.jobs)} with {how.jobs} jobs"
        if known
        else "no earlier record to judge the time by"
    )
    print(f"grid {name}: {grid.title}")
    print(f"{len(grid.cells)} cells: {len(grid.cells) - len(waiting)} to skip, {len(waiting)} to run" + (f", {total}" if waiting else ""))


def run_single(phase: str, words: Sequence[str], again: bool) -> int:
    """Run one cell alone, with its data set where that is not there; a finished record is kept and said."""
    if phase not in PHASES:
        raise unknown("phase", phase, PHASES)
    parameters, _ = check({"run_id": "single", **assignments(words)}, f"run {phase}")
    cell = baseline_cell(parameters)
    where = runner_files.short(cell.record)
    if is_complete(cell.record) and not again:
        print(f"finished already: {where}\nto run it again and keep this one aside: {closing.command(cell)} --again")
        return 0
    execute.fix_threads(parameters.threads)
    with runner_files.locked(run_folder(parameters.run_id), alone=False):
        if is_complete(cell.record):
            print(f"kept aside: {runner_files.short(set_aside(cell.record))}")
        outcomes = _run(stand([dataset_cell(parameters), cell]).waiting, ALONE, 0)
    failed = closing.failures(outcomes)
    for line in failed or (closing.result(cell), f"record: {where}"):
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
        outcomes = _run(waiting, How(), len(cells) - len(waiting))
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
