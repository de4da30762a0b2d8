"""What each command does: plan a grid, run it and its report, run one cell, build data sets, run any notebook."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from hippo_core.files import LabError, Terminated, root, unknown
from hippo_core.results.records import RUNS, is_complete, records_of, run_folder, set_aside
from hippo_core.suites import SUITES

from . import closing, execute, notebooks, runner_files
from .cells import BASELINE, Cell, baseline_cell, dataset_cell, report_cell
from .engine import end_kernels, run_cells
from .execute import USUAL, Kernel, LastLine, Outcome, Way
from .grid import Grid, expand
from .parameters import BaselineParameters, assignments, check, require_encoders, require_weights, resolve
from .progress import Progress, duration
from .standing import estimate, stand, supersede
from .warm import client

PHASES = {"baseline": "02_baseline"}


def run_grid(name: str, run_id: str, jobs: int, only: tuple[str, ...], models: tuple[str, ...], kernel: Kernel) -> int:
    """Run what is left of a grid, in kernels of this kind, and its report, and say how it went; 1 where a cell failed."""
    started = time.monotonic()
    grid = expand(name, run_id, only, models)
    execute.fix_threads(grid.threads)
    with runner_files.locked(run_folder(grid.run_id), alone=True):
        supersede(grid.cells)
        standing = stand(grid.cells)
        _say_start(grid, len(standing.finished), len(standing.waiting))
        way = Way(kernel, grid.timeout)
        outcomes = _run(standing.waiting, jobs, len(standing.finished), way)
        outcomes += _report(grid.run_id, force=bool(outcomes), way=way)
    _say_end(grid.run_id, outcomes, len(grid.cells) - sum(outcome.cell in grid.cells for outcome in outcomes), time.monotonic() - started)
    return int(any(outcome.state == "failed" for outcome in outcomes))


def _say_start(grid: Grid, finished: int, waiting: int) -> None:
    later = f"; not there yet: {', '.join(grid.not_there)} ({sum(grid.not_there.values())} cells)" if grid.not_there else ""
    left = f"{waiting} to run" if waiting else "nothing to be done"
    print(f"grid {grid.name}, run {grid.run_id}: {len(grid.cells)} cells, {finished} finished, {left}{later}", flush=True)


def _say_end(run_id: str, outcomes: Sequence[Outcome], skipped: int, seconds: float) -> None:
    for line in (*closing.failures(outcomes), *closing.closing(run_id, outcomes, skipped, seconds)):
        print(line)


def _run(cells: Sequence[Cell], jobs: int, skipped: int, way: Way = USUAL) -> list[Outcome]:
    if not cells:
        return []
    require_weights({cell.parameters["model"] for cell in cells if "model" in cell.parameters})
    require_encoders(resolve(BaselineParameters(**cell.parameters)).preset for cell in cells if cell.phase == BASELINE)
    known = [seconds for seconds in estimate(cells) if seconds is not None]
    with stops_cleanly(), Progress(len(cells), jobs, skipped, sum(known) / len(known) * len(cells) if known else None) as progress:
        return run_cells(cells, jobs, progress, _prepared(way, cells))


def _prepared(way: Way, cells: Sequence[Cell]) -> Way:
    """The same, with the server of warm kernels started; with cold ones where two cells are not worth it."""
    if way.kernel == "cold" or (len(cells) <= 2 and not client.running()):
        return replace(way, kernel="cold")
    from .warm import spec  # imports jupyter_client, which other commands do without

    spec.install()
    for cell in cells:
        if cell.phase == BASELINE:
            client.want(cell.parameters["model"])
    client.start()
    return way


@contextmanager
def stops_cleanly() -> Iterator[None]:
    """Ctrl-C ends the kernels of this process and says so in one line; so does SIGTERM, whose line comes from `hippo_core.__main__`."""
    try:
        yield
    except Terminated:
        end_kernels()
        raise
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
        runner_files.remove(old)
    return _run([cell], 1, 0, way)


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


def plan_grid(name: str, run_id: str, jobs: int, only: tuple[str, ...], models: tuple[str, ...]) -> None:
    """Print every cell with its state and the seconds that earlier records say it takes."""
    grid = expand(name, run_id, only, models)
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
        f"about {duration(sum(known) / len(known) * len(waiting) / jobs)} with {jobs} jobs"
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
        outcomes = _run(stand([dataset_cell(parameters), cell]).waiting, 1, 0)
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
        outcomes = _run(waiting, 2, len(cells) - len(waiting))
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


class Terminal(LastLine):
    """Shows what a notebook prints as it prints it."""

    def write(self, text: str) -> int:
        """Pass a piece of output on."""
        sys.stdout.write(text)
        sys.stdout.flush()
        return super().write(text)
