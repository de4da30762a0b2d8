"""Cells in threads of this process, each in a kernel of its own on this machine.

Threads of one process, because kernels pick their ports there without racing each other. The kernels of this process are made ready before
the first cell and ended after the last.
"""

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from threading import Event

import psutil

from hippo_core.lab.run.cells import Cell
from hippo_core.lab.run.execute import ExecutionOptions, Outcome, Output, execute, kernel_memory_limit
from hippo_core.lab.warm import client
from hippo_core.models.spec import load_spec
from hippo_core.suites.datasets.build import sweep

BIG = 0.5  # of a GPU's memory: a model above that runs alone


def shares(cells: Iterable[Cell], gpu_gb: float) -> dict[str, float]:
    """By id of the cell, the part (0 to 1) of a GPU with so much memory that it takes, the whole of one of unknown size (inf); cells that
    need none are left out."""
    cells = [cell for cell in cells if "model" in cell.parameters]
    declared = {model: load_spec(model).max_memory_gb for model in {cell.parameters["model"] for cell in cells}}
    memory = {cell.id: declared[cell.parameters["model"]] for cell in cells}
    return {name: gb / gpu_gb if gb <= BIG * gpu_gb < float("inf") else 1.0 for name, gb in memory.items() if gb}


def memory_gb() -> float:
    """The memory of this machine's smallest GPU in GB, as its driver's own tool tells it; 0 where there is none. CUDA is not opened."""
    if not (tool := shutil.which("nvidia-smi")):
        return 0.0
    query = [tool, "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    sizes = subprocess.run(query, capture_output=True, text=True, check=False).stdout.split()
    return min((float(mib) * 2**20 / 1e9 for mib in sizes if mib.isdigit()), default=0.0)


class Local:
    """So many workers on this machine. The GPU that it may have is packed by the memory that models declare."""

    def __init__(self, cells: Sequence[Cell], jobs: int, execution: ExecutionOptions, models: Iterable[str]) -> None:
        self._jobs, self._execution = jobs, prepared(execution, len(cells), models)
        self._gpu = memory_gb()
        self._shares = shares(cells, self._gpu) if self._gpu else {}
        self._pool, self._stopping = ThreadPoolExecutor(jobs), Event()

    def free_slots(self, running: list[Cell]) -> int:
        """The workers that are idle."""
        return self._jobs - len(running)

    def fits(self, cell: Cell, running: list[Cell]) -> bool:
        """Whether this cell's share of the GPU is free."""
        return sum(self._shares.get(other.id, 0.0) for other in (cell, *running)) <= 1 + 1e-9

    def submit(self, cell: Cell, output: Output, alone: bool) -> Future[Outcome]:
        """Run a cell in a thread."""
        limit = (
            None if self._gpu else self._execution.memory or kernel_memory_limit(1 if alone else self._jobs)
        )  # CUDA maps far more than it uses
        return self._pool.submit(execute, cell, output, self._stopping, replace(self._execution, memory=limit))

    def stop(self) -> None:
        """End the kernels of this process."""
        self._stopping.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        end_kernels()

    def close(self) -> None:
        """End the idle threads."""
        self._pool.shutdown()


def prepared(execution: ExecutionOptions, cells: int, models: Iterable[str]) -> ExecutionOptions:
    """The same, with the server of warm kernels started, for so many cells with these models; with cold ones where two are not worth it."""
    if execution.kernel == "cold" or (cells <= 2 and not client.running()):
        return replace(execution, kernel="cold")
    start_server(models)
    return execution


def start_server(models: Iterable[str]) -> None:
    """Start the server of warm kernels, which loads these models."""
    from hippo_core.lab.warm import spec  # imports jupyter_client, which other commands do without

    spec.install()
    for model in models:
        client.want(model)
    client.reopen()
    client.start()


def end_kernels(patience: float = 5.0) -> None:
    """End the kernels that this process has started, the forked ones at once, the others kindly first, and the data sets that they were
    building."""
    client.close()
    kernels = [child for child in psutil.Process().children() if _is_kernel(child)]
    for kernel in kernels:
        kernel.terminate()
    _, alive = psutil.wait_procs(kernels, timeout=patience)
    for kernel in alive:
        kernel.kill()
    psutil.wait_procs(alive, timeout=patience)
    sweep()


def _is_kernel(process: psutil.Process) -> bool:
    try:
        return any("ipykernel" in word for word in process.cmdline())
    except psutil.Error:
        return False
