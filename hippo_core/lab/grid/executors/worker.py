"""What runs on a worker of a Dask cluster: its description, the plugin that a grid leaves there while it runs, and one cell."""

import logging
import platform
from dataclasses import replace
from threading import Event
from typing import Any, cast

from distributed import Reschedule, Worker, WorkerPlugin, get_worker

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.lab.grid.executors.local import end_kernels, start_server
from hippo_core.lab.run import fingerprints, notebook_files
from hippo_core.lab.run.cells import Cell, Requirements
from hippo_core.lab.run.execute import USABLE, ExecutionOptions, Outcome, Output, execute, fix_threads, kernel_memory_limit
from hippo_core.results.records.archive import Archive
from hippo_core.results.records.origin import version_of

SAME = {  # what a worker must have as the runner has it, and what to say where it has not
    "python": "runs another Python",
    "lock": "has another requirements.lock; bring its checkout to the same commit and run `make setup` there",
    "code": "has other code; bring its checkout to the same commit",
}


def describe(needed: Requirements, seen: str) -> dict[str, Any]:
    """This machine as cells would find it: versions, checksums of code, packages that are not as the lock says, models and encoders that
    are not there, and whether a file of the runner's is seen here."""
    fingerprints.forget()  # a worker lives long, and its checkout may have been changed since
    description: dict[str, Any] = {"python": ".".join(platform.python_version_tuple()[:2]), "lock": fingerprints.lock()}
    code = [fingerprints.all_sources(), *map(fingerprints.notebook, notebook_files.notebook_names())]
    description["code"] = fingerprints.digest(code)
    description["packages"] = [line for line in map(_strange, _pins()) if line]
    description["seen"] = (root() / seen).exists()
    try:
        needed.require()
    except LabError as error:
        description["missing"] = str(error)
    return description


def unfit(ours: dict[str, Any], theirs: dict[str, Any], shared: bool) -> str:
    """Why a worker may not run cells of a runner, or nothing. `shared` says that records are to be seen without an archive."""
    for name, why in SAME.items():
        if ours[name] != theirs[name]:
            return why
    if theirs["packages"] and theirs["packages"] != ours["packages"]:
        return f"has {theirs['packages'][0]}; run `make setup` there"
    if "missing" in theirs:
        return f"lacks what a cell needs: {theirs['missing']}"
    if shared and not theirs["seen"]:
        return "does not see this run's folder; put the checkout on a shared folder, or have records copied: RECORDS=s3://bucket/prefix"
    return ""


def _pins() -> list[tuple[str, str]]:
    lines = (root() / "requirements.lock").read_text(encoding="utf-8").splitlines()
    return [(name, pin) for name, _, pin in (line.split(";")[0].strip().partition("==") for line in lines) if pin]


def _strange(pin: tuple[str, str]) -> str:
    name, wanted = pin
    installed = version_of(name) or "missing"
    return "" if installed.split("+")[0] == wanted else f"{name} {installed} where requirements.lock says {wanted}"


class CellWorker(WorkerPlugin):
    """What a grid leaves on every worker, those that come later too: how cells are run, and that they stop when the grid does."""

    def __init__(self, name: str, execution: ExecutionOptions, needed: Requirements, ours: dict[str, Any]) -> None:
        self.name, self.execution, self.needed, self.ours = name, execution, needed, ours

    def setup(self, worker: Worker) -> None:
        """Make ready for cells. A worker that came after the others were looked at and is not fit ends itself."""
        self.worker, self.stopping = worker, Event()
        self.why = unfit(self.ours, describe(self.needed, ""), shared=False)
        if self.why:
            logging.getLogger("distributed.worker").error("This worker %s", self.why)
            worker.loop.add_callback(worker.close)
            return
        fix_threads(self.execution.threads)
        if self.execution.kernel == "warm":
            start_server(self.needed.models)

    def teardown(self, worker: Worker) -> None:
        """End the kernels; where another grid runs here too, its kernels are left alone and this one's end unseen."""
        self.stopping.set()
        if not any(isinstance(other, CellWorker) and other is not self for other in worker.plugins.values()):
            end_kernels()

    def memory(self, alone: bool) -> float:
        """GB that the kernel of a cell may take: half of what this worker may, or all."""
        threads = 1 if alone else self.worker.state.nthreads
        allowed = self.worker.memory_manager.memory_limit
        return USABLE * allowed / min(threads, 2) / 1e9 if allowed else kernel_memory_limit(threads)


def run(name: str, cell: Cell, alone: bool, needs: list[str]) -> Outcome:
    """Run a cell on this worker; its record's path is below the checkout of whoever runs it, `needs` are names of records it rests on."""
    worker = get_worker()
    here = cast(CellWorker, worker.plugins[name])
    if here.why:
        raise Reschedule()
    execution = here.execution
    if execution.archive:
        Archive(execution.archive).pull(needs)
    limit = None if worker.state.total_resources.get("GPU") else execution.memory or here.memory(alone)
    return execute(replace(cell, record=root() / cell.record), Output(), here.stopping, replace(execution, memory=limit))
