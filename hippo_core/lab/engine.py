"""Run many cells: those whose needs are met go to worker threads; a failure stops what needs it and nothing else.

Threads of one process, because kernels pick their ports there without racing each other.
"""

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from threading import Event

import psutil

from .cells import Cell
from .execute import USUAL, Outcome, Way, execute
from .progress import Progress
from .said import Said
from .warm import client


def run_cells(cells: Sequence[Cell], jobs: int, progress: Progress, way: Way = USUAL) -> list[Outcome]:
    """Run cells in order of dependence on `jobs` workers, each in a kernel of its own; a need that is not among them counts as met.

    A cell whose kernel died or hung is run once more, alone, when the others are done; then it has failed. Ctrl-C ends the
    kernels of this process, keeps nothing of their cells, and raises KeyboardInterrupt.
    """
    outcomes: list[Outcome] = []
    running: dict[Future[Outcome], Cell] = {}
    waiting, crashed, stopping = list(cells), Crashed(), Event()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            while waiting or running or crashed.waiting:
                busy = list(running.values())
                begin = [] if crashed.is_trying(busy) else ready(waiting, [*busy, *crashed.waiting], outcomes)[: jobs - len(busy)]
                for cell in begin or ([] if busy else crashed.next()):
                    if cell in waiting:
                        waiting.remove(cell)
                    progress.began(cell, said := Said())
                    running[pool.submit(execute, cell, said, stopping, way)] = cell
                finished, _ = wait(running, timeout=1.0, return_when=FIRST_COMPLETED)
                for future in finished:
                    del running[future]
                    if not (ended := crashed.judge(future.result())):
                        progress.again(future.result())
                        continue
                    for outcome in (ended, *_doomed(waiting, ended)):
                        outcomes.append(outcome)
                        progress.ended(outcome)
                progress.tick()
        except BaseException:
            stopping.set()
            pool.shutdown(wait=False, cancel_futures=True)
            end_kernels()
            raise
    return outcomes


@dataclass
class Crashed:
    """Cells whose kernels died or hung: those that wait for their second attempt, and all that had a first."""

    waiting: list[Cell] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def judge(self, outcome: Outcome) -> Outcome | None:
        """How a cell has ended; None where it is to run once more."""
        if outcome.state != "crashed":
            return outcome
        if outcome.cell.id in self.seen:
            return replace(outcome, state="failed", message=f"{outcome.message} (twice, the second time alone)")
        self.seen.add(outcome.cell.id)
        self.waiting.append(outcome.cell)
        return None

    def next(self) -> list[Cell]:
        """The next second attempt, where there is one."""
        return [self.waiting.pop(0)] if self.waiting else []

    def is_trying(self, running: Sequence[Cell]) -> bool:
        """Whether a second attempt runs: nothing else begins then."""
        return any(cell.id in self.seen for cell in running)


def ready(waiting: Sequence[Cell], running: Sequence[Cell], outcomes: Sequence[Outcome]) -> list[Cell]:
    """The waiting cells all of whose needs are met, in their order."""
    done = {outcome.cell.id for outcome in outcomes if outcome.state == "done"}
    open_ids = {cell.id for cell in (*waiting, *running)} - done
    return [cell for cell in waiting if not open_ids & set(cell.needs)]


def _doomed(waiting: list[Cell], outcome: Outcome) -> list[Outcome]:
    """The waiting cells that need one that failed, and those that need these; they are taken from `waiting` and fail unrun."""
    lost: list[Outcome] = []
    failed = [outcome.cell] if outcome.state == "failed" else []
    while failed:
        need = failed.pop()
        for cell in [cell for cell in waiting if need.id in cell.needs]:
            waiting.remove(cell)
            failed.append(cell)
            lost.append(Outcome(cell, "failed", 0.0, f"not run: it needs '{need.label}', which failed"))
    return lost


def end_kernels(patience: float = 5.0) -> None:
    """End the kernels that this process has started, the forked ones at once, the others kindly first."""
    client.close()
    kernels = [child for child in psutil.Process().children() if _is_kernel(child)]
    for kernel in kernels:
        kernel.terminate()
    _, alive = psutil.wait_procs(kernels, timeout=patience)
    for kernel in alive:
        kernel.kill()


def _is_kernel(process: psutil.Process) -> bool:
    try:
        return any("ipykernel" in word for word in process.cmdline())
    except psutil.Error:
        return False
