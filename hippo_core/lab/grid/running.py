"""Run cells as a person asks for it: on this machine or on a cluster, with the progress shown and a clean end."""

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from hippo_core.errors import LabError, unknown
from hippo_core.files import Terminated
from hippo_core.lab.grid.engine import run_cells
from hippo_core.lab.grid.executors.kernels import end_kernels
from hippo_core.lab.grid.executors.local import Local
from hippo_core.lab.grid.expand import Grid
from hippo_core.lab.grid.grid_status import RecordStatus
from hippo_core.lab.grid.progress.screen import Progress
from hippo_core.lab.grid.progress.status import StatusFile
from hippo_core.lab.run.execute import ExecutionOptions, Kernel, Outcome
from hippo_core.lab.run.preflight import materials

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
        return run_cells(cells, executor, Progress(cells, jobs, done, status.estimates(), file))


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
