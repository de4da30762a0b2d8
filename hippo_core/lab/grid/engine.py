"""Run many cells, on this machine or on a cluster: those whose needs are met begin, a failure stops what needs it and nothing else, the
progress is shown, and the end is clean."""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hippo_core.errors import LabError, unknown
from hippo_core.files import Terminated
from hippo_core.lab.grid.executors.local import Local, end_kernels
from hippo_core.lab.grid.expand import Grid
from hippo_core.lab.grid.grid_status import RecordStatus
from hippo_core.lab.grid.progress.screen import Progress
from hippo_core.lab.grid.progress.status import StatusFile
from hippo_core.lab.run.cells import Cell, materials
from hippo_core.lab.run.execute import ExecutionOptions, Kernel, Outcome, Output

if TYPE_CHECKING:
    from hippo_core.lab.grid.executors.dask import DaskCluster

    Executor = Local | DaskCluster

EXECUTORS = ("local", "dask")


@dataclass(frozen=True)
class RunOptions:
    """How a grid is run: so many cells at a time, in kernels of this kind, here or on a Dask cluster, with an archive or without. `threads`
    of each cell: a number, `auto` (the cores divided by the jobs), or nothing for what the grid's file says. `preflight`: whether
    the memories of a large grid are asked a few validation questions first."""

    jobs: int = 2
    kernel: Kernel = "warm"
    executor: str = "local"
    scheduler: str = ""
    archive: str = ""
    threads: str = ""
    preflight: bool = True

    def __post_init__(self) -> None:
        if self.executor not in EXECUTORS:
            raise unknown("executor", self.executor, EXECUTORS)
        if self.threads not in ("", "auto") and not (self.threads.isdigit() and int(self.threads)):
            raise LabError(f"threads: expected a whole number above 0, or auto, got {self.threads!r}")

    @property
    def threads_each(self) -> int | None:
        """Threads of a cell; None for what the grid's file says."""
        if self.threads == "auto":
            return max(1, (os.cpu_count() or 1) // self.jobs)
        return int(self.threads) if self.threads else None


ALONE = RunOptions(jobs=1, kernel="cold")


def run(status: RecordStatus, options: RunOptions, grid: Grid | None = None, file: StatusFile | None = None) -> list[Outcome]:
    """Run the cells that are waiting, with the threads and limits of their grid where they are of one, and show how they come along."""
    cells = status.waiting
    if not cells:
        return []
    execution = ExecutionOptions(options.kernel, archive=options.archive)
    if grid:
        execution = replace(execution, threads=grid.threads, timeout=grid.timeout, memory=grid.memory)
    needed = materials(cells)
    with stops_cleanly(), contextlib.ExitStack() as stack:
        if grid and options.executor == "dask":
            from hippo_core.lab.grid.executors.dask import DaskCluster  # a second of imports

            executor = DaskCluster(cells, options.scheduler, execution, grid, needed)
        else:
            needed.require()
            executor = Local(cells, options.jobs, execution, needed.models)
        stack.callback(executor.close)
        jobs, done = max(1, executor.free_slots([])), len(status.finished)
        return run_cells(cells, executor, Progress(cells, jobs, done, status.estimates, file))


@contextlib.contextmanager
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


def run_cells(cells: Sequence[Cell], executor: "Executor", progress: Progress) -> list[Outcome]:
    """Run cells in order of dependence, each in a kernel of its own; a need that is not among them counts as met. A cell whose kernel died
    or hung is run once more, alone, when the others are done; then it has failed. Ctrl-C ends the kernels, keeps nothing of their cells,
    and raises KeyboardInterrupt."""
    outcomes: list[Outcome] = []
    running: dict[Future[Outcome], Cell] = {}
    waiting, crashed, retried = list(cells), list[Cell](), set[str]()  # crashed: those that wait for their second attempt
    try:
        with progress:
            while waiting or running or crashed:
                busy = list(running.values())
                begin = [] if any(cell.id in retried for cell in busy) else _next(waiting, [*busy, *crashed], busy, outcomes, executor)
                if not begin and not busy and crashed:
                    begin = [crashed.pop(0)]
                for cell in begin:
                    progress.began(cell, output := Output())
                    running[executor.submit(cell, output, cell.id in retried)] = cell
                # a cluster may have no workers just now: then there is nothing to wait for but time
                finished, _ = wait(running or [Future()], timeout=1.0, return_when=FIRST_COMPLETED)
                for future in finished:
                    del running[future]
                    outcome = future.result()
                    if outcome.state == "crashed" and outcome.cell.id not in retried:
                        retried.add(outcome.cell.id)
                        crashed.append(outcome.cell)
                        progress.again(outcome)
                        continue
                    if outcome.state == "crashed":
                        outcome = replace(outcome, state="failed", message=f"{outcome.message} (twice, the second time alone)")
                    for ended in (outcome, *_doomed(waiting, outcome)):
                        outcomes.append(ended)
                        progress.ended(ended)
                progress.tick()
    except BaseException:
        executor.stop()
        raise
    return outcomes


def _next(waiting: list[Cell], unfinished: list[Cell], busy: list[Cell], outcomes: Sequence[Outcome], executor: "Executor") -> list[Cell]:
    """The cells that begin now, taken from those that wait: as many as there are free slots for."""
    begin: list[Cell] = []
    free_slots = executor.free_slots(busy)
    for cell in ready(waiting, unfinished, outcomes):
        if len(begin) < free_slots and executor.fits(cell, [*busy, *begin]):
            begin.append(cell)
            waiting.remove(cell)
    return begin


def ready(waiting: Sequence[Cell], running: Sequence[Cell], outcomes: Sequence[Outcome]) -> list[Cell]:
    """The waiting cells all of whose needs are met, in their order."""
    done = {outcome.cell.id for outcome in outcomes if outcome.state == "done"}
    open_ids = {cell.id for cell in (*waiting, *running)} - done
    return [cell for cell in waiting if not open_ids & cell.needed]


def _doomed(waiting: list[Cell], outcome: Outcome) -> list[Outcome]:
    """The waiting cells that need one that failed, and those that need these; they are taken from `waiting` and fail unrun."""
    lost: list[Outcome] = []
    failed = [outcome.cell] if outcome.state == "failed" else []
    while failed:
        need = failed.pop()
        for cell in [cell for cell in waiting if need.id in cell.needed]:
            waiting.remove(cell)
            failed.append(cell)
            lost.append(Outcome(cell, "failed", 0.0, f"not run: it needs '{need.label}', which failed"))
    return lost
