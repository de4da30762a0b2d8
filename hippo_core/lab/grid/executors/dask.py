"""Cells on the workers of a Dask cluster, each in a kernel of its own there.

A worker has the lab's checkout and its packages. It writes records where the runner sees them, or copies each whole to an archive. Dask
itself runs a cell again whose worker died; who runs a cell twice gets an equal record, and the one that is there stays.
"""

import time
import uuid
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from distributed import Client, KilledWorker

from hippo_core.errors import LabError
from hippo_core.files import in_a_line, root
from hippo_core.lab.grid.executors import worker
from hippo_core.lab.grid.executors.local import shares
from hippo_core.lab.grid.expand import Grid
from hippo_core.lab.run.cells import Cell, Requirements
from hippo_core.lab.run.execute import ExecutionOptions, Outcome, Output
from hippo_core.results.records import RUNS
from hippo_core.results.records.archive import Archive

INF = float("inf")
PATIENCE = 10  # seconds for a scheduler to answer
MANY = 10_000  # threads that wait for a cell each; they are made as they are needed


class DaskCluster:
    """The workers behind a scheduler's address (or the .json file that it wrote). A cell that needs a GPU takes its share of the resource
    `GPU` that workers offer."""

    def __init__(self, cells: Sequence[Cell], address: str, execution: ExecutionOptions, grid: Grid, needed: Requirements) -> None:
        self._address, self._execution, self._name = address, execution, f"hippo-{uuid.uuid4().hex[:12]}"
        self._records = {cell.id: cell.record for cell in grid.cells}
        self._client = connect(address)
        try:
            self._shares = shares(cells, self._gpus()[1])
            ours = self._check(needed, grid.run_id)
            if self._shares and not self._gpus()[0] and self._workers():
                label = next(cell.label for cell in cells if cell.id in self._shares)
                start = 'dask worker --resources "GPU=1 GPU_GB=24"'
                raise LabError(f"{label} needs a GPU and no worker offers one; start workers with: {start}")
            self._client.register_plugin(worker.CellWorker(self._name, execution, needed, ours), name=self._name)
        except BaseException:  # Ctrl-C while workers make ready is one
            self._leave()
            raise
        self._pool = ThreadPoolExecutor(MANY)

    def free_slots(self, running: list[Cell]) -> int:
        """The threads of all workers that are there now, less those that are taken."""
        return sum(info["nthreads"] for info in self._workers().values()) - len(running)

    def fits(self, cell: Cell, running: list[Cell]) -> bool:
        """Whether the cluster's GPUs have this cell's share free; which of them takes it, Dask decides."""
        if cell.id not in self._shares:
            return True
        return sum(self._shares.get(other.id, 0.0) for other in (cell, *running)) <= self._gpus()[0] + 1e-9

    def submit(self, cell: Cell, output: Output, alone: bool) -> Future[Outcome]:
        """Send a cell to the cluster; what it prints stays in its notebook."""
        return self._pool.submit(self._run, cell, alone)

    def _run(self, cell: Cell, alone: bool) -> Outcome:
        started = time.monotonic()
        order = replace(cell, record=cell.record.relative_to(root()), plan=None)
        needs = [self._records[need].relative_to(root() / RUNS).as_posix() for need in cell.needs.values()]
        share = self._shares.get(cell.id)
        options: dict[str, Any] = {
            "key": f"{cell.id}-{uuid.uuid4().hex[:8]}",
            "resources": {"GPU": share} if share else None,
            "pure": False,
        }
        try:
            outcome = self._client.submit(worker.run, self._name, order, alone, needs, **options).result()
        except KilledWorker:
            return Outcome(cell, "crashed", time.monotonic() - started, "the Dask workers that ran it died")
        except LabError:
            raise
        except Exception as error:
            raise LabError(
                f"the Dask cluster at {self._address} failed ({in_a_line(error)}); finished records are kept, call again"
            ) from None
        return self._fetched(replace(outcome, cell=cell))

    def _fetched(self, outcome: Outcome) -> Outcome:
        """The same, with the record brought from the archive where there is one; a failed cell's notebook is named where it lies there."""
        if not self._execution.archive:
            return outcome
        archive, name = Archive(self._execution.archive), outcome.cell.record.relative_to(root() / RUNS).as_posix()
        if outcome.state == "done":
            archive.pull([name])
        return replace(outcome, notebook=f"{archive.url}/{name}/{Path(outcome.notebook).name}") if outcome.notebook else outcome

    def stop(self) -> None:
        """End this run's kernels on all workers."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._leave()

    close = stop  # when nothing runs any more

    def _leave(self) -> None:
        with suppress(Exception):  # a cluster that is gone has stopped, and workers that were not made ready need not
            self._client.unregister_worker_plugin(self._name)
        self._client.close()

    def _gpus(self) -> tuple[float, float]:
        """How many GPUs the workers offer (`dask worker --resources "GPU=1 GPU_GB=24"`), and the memory of the smallest in GB."""
        offered = [info.get("resources") or {} for info in self._workers().values()]
        having = [offer for offer in offered if offer.get("GPU")]
        return sum(offer["GPU"] for offer in having), min((offer.get("GPU_GB", INF) for offer in having), default=INF)

    def _workers(self) -> dict[str, Any]:
        return self._client.scheduler_info(n_workers=-1)["workers"]

    def _check(self, needed: Requirements, run_id: str) -> dict[str, Any]:
        """What a worker must be like, as this machine is; LabError where one has other packages or code, lacks a model, or would write
        records that nobody sees."""
        seen = root() / RUNS / run_id / f".seen-{self._name}"
        seen.touch()
        try:
            descriptions: Any = self._client.run(worker.describe, needed, seen.relative_to(root()).as_posix(), on_error="return")
        finally:
            seen.unlink()
        ours = worker.describe(needed, "")
        for address, theirs in descriptions.items():
            if isinstance(theirs, BaseException):
                raise LabError(f"worker {address} cannot run cells: {in_a_line(theirs)}; it needs this checkout and `make setup` there")
            if why := worker.unfit(ours, theirs, shared=not self._execution.archive):
                raise LabError(f"worker {address} {why}")
        return ours


def connect(address: str) -> Client:
    """A client of the scheduler; LabError where there is none."""
    if not address:
        raise LabError("EXECUTOR=dask needs the scheduler's address: SCHEDULER=tcp://host:8786, or the .json file that it wrote")
    where: dict[str, Any] = {"scheduler_file": address} if address.endswith(".json") else {"address": address}
    if "scheduler_file" in where and not Path(address).is_file():
        raise LabError(f"no scheduler has written {address} yet; start one with: .venv/bin/dask scheduler --scheduler-file {address}")
    try:
        return Client(**where, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise LabError(
            f"no Dask scheduler answers at {address} ({in_a_line(error)}); start `.venv/bin/dask scheduler`, and give its address as "
            "SCHEDULER=tcp://host:8786"
        ) from None
