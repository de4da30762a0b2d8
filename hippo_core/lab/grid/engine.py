"""Run many cells: those whose needs are met go to an executor; a failure stops what needs it and nothing else."""

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hippo_core.lab.grid.progress.screen import Progress
from hippo_core.lab.run.cells import Cell
from hippo_core.lab.run.execute import Outcome
from hippo_core.lab.run.output import Output

if TYPE_CHECKING:
    from hippo_core.lab.grid.executors.dask import DaskCluster
    from hippo_core.lab.grid.executors.local import Local

    Executor = Local | DaskCluster


def run_cells(cells: Sequence[Cell], executor: "Executor", progress: Progress) -> list[Outcome]:
    """Run cells in order of dependence, each in a kernel of its own; a need that is not among them counts as met. A cell whose kernel died
    or hung is run once more, alone, when the others are done; then it has failed. Ctrl-C ends the kernels, keeps nothing of their cells,
    and raises KeyboardInterrupt."""
    outcomes: list[Outcome] = []
    running: dict[Future[Outcome], Cell] = {}
    waiting, crashed = list(cells), Crashed()
    try:
        with progress:
            while waiting or running or crashed.waiting:
                busy = list(running.values())
                for cell in _next(waiting, crashed, busy, outcomes, executor):
                    progress.began(cell, output := Output())
                    running[executor.submit(cell, output, cell.id in crashed.seen)] = cell
                # a cluster may have no workers just now: then there is nothing to wait for but time
                finished, _ = wait(running or [Future()], timeout=1.0, return_when=FIRST_COMPLETED)
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
        executor.stop()
        raise
    return outcomes


def _next(waiting: list[Cell], crashed: "Crashed", busy: list[Cell], outcomes: Sequence[Outcome], executor: "Executor") -> list[Cell]:
    """The cells that begin now, taken from those that wait: as many as there is room for, or one second attempt where nothing runs."""
    if any(cell.id in crashed.seen for cell in busy):  # a second attempt runs
        return []
    begin: list[Cell] = []
    free_slots = executor.free_slots(busy)
    for cell in ready(waiting, [*busy, *crashed.waiting], outcomes):
        if len(begin) < free_slots and executor.fits(cell, [*busy, *begin]):
            begin.append(cell)
            waiting.remove(cell)
    return begin or ([] if busy or not crashed.waiting else [crashed.waiting.pop(0)])


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
