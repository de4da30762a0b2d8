"""How a grid stands just now, in a file that other processes read: executed/<run>/.progress.json, there while a grid runs and after it."""

import os
import socket
import time
from contextlib import suppress
from typing import Literal

import psutil
from pydantic import BaseModel, Field

from hippo_core.files import write_text
from hippo_core.lab.grid.expand import grid_names
from hippo_core.lab.run.record_files import is_locked
from hippo_core.results.records import run_folder

FILE = ".progress.json"
LISTED = 20  # ended cells, and failed ones, that it names


class RunningStatus(BaseModel):
    """A cell that runs: the seconds it has had, and the last lines of its output."""

    id: str
    label: str
    seconds: float
    tail: list[str] = []


class EndedStatus(BaseModel):
    """A cell that has ended. A failed one has the error's last line, and where one was kept its notebook's place."""

    id: str
    label: str
    state: str
    seconds: float
    message: str = ""
    notebook: str = ""


class Status(BaseModel):
    """Counts of cells, those that run, the last that ended, and who runs them. Times are seconds, `started` and `updated` since 1970."""

    run_id: str = ""
    state: Literal["running", "ended", "stopped"] = "running"
    total: int
    done: int
    failed: int
    skipped: int
    started: float
    updated: float
    seconds_left: float | None
    running: list[RunningStatus]
    failures: list[EndedStatus]
    last: list[EndedStatus]
    pid: int = Field(default_factory=os.getpid)
    born: float = Field(default_factory=lambda: psutil.Process().create_time())  # with it a process is told from a later one of its number
    host: str = Field(default_factory=socket.gethostname)

    @property
    def remaining(self) -> int:
        """Cells that have not ended."""
        return self.total - self.done - self.failed

    def after(self, before: "Status") -> "Status":
        """This part of a grid and the one before it as one: the report comes after the cells."""
        sums = {name: getattr(before, name) + getattr(self, name) for name in ("total", "done", "failed", "skipped")}
        lists = {name: [*getattr(before, name), *getattr(self, name)][-LISTED:] for name in ("failures", "last")}
        return self.model_copy(update={**sums, **lists, "started": before.started})


class StatusFile:
    """Keeps the file of a run while its grid works; a context manager that marks it in the end. Where it cannot be written, it is not."""

    def __init__(self, run_id: str, every: float = 1.0) -> None:
        self.run_id, self.every, self.path = run_id, every, run_folder(run_id) / FILE
        self._before: Status | None = None
        self._now: Status | None = None
        self._written = -every

    def __enter__(self) -> "StatusFile":
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if self._now:
            changed = {"state": "stopped" if error else "ended", "running": [], "updated": time.time()}
            self._write(self._now.model_copy(update=changed))

    def show(self, status: Status) -> None:
        """Keep it, and write it where the last writing is `every` seconds ago."""
        status = status.model_copy(update={"run_id": self.run_id})
        self._now = status.after(self._before) if self._before else status
        if time.monotonic() - self._written >= self.every:
            self._write(self._now)

    def next_part(self) -> None:
        """What is shown from now on comes after what was shown so far."""
        self._before = self._now

    def _write(self, status: Status) -> None:
        self._written = time.monotonic()
        with suppress(OSError):
            write_text(self.path, status.model_dump_json(indent=1) + "\n")


def read(run_id: str) -> Status | None:
    """What the last grid of a run has written; None where there is nothing to read."""
    try:
        return Status.model_validate_json((run_folder(run_id) / FILE).read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def alive(status: Status | None) -> bool:
    """Whether the grid that wrote this still works: its process is asked for, or, from another host, the lock that it holds."""
    if status is None or status.state != "running":
        return False
    if status.host != socket.gethostname():
        return is_locked(run_folder(status.run_id))
    try:
        process = psutil.Process(status.pid)
        return abs(process.create_time() - status.born) < 1 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def poll(run_id: str) -> tuple[Status | None, bool]:
    """What the last grid of a run has written, and whether it still works; where it does not, what it wrote last is not missed."""
    status = read(run_id)
    return (status, True) if alive(status) else (read(run_id), False)


def absent(run_id: str, status: Status | None) -> str:
    """Why there is nothing to watch, and how to begin, in one line."""
    start = f"make grid GRID={run_id}" if run_id in grid_names() else f"make grid GRID=smoke RUN_ID={run_id}"
    if status is None:
        there = "no grid runs on" if run_folder(run_id).is_dir() else "there is no run"
        return f"{there} {run_id}; start one: {start}"
    counts = f"{status.done} done, {status.failed} failed"
    if status.state == "running":
        return f"the runner of {run_id} is gone (process {status.pid} on {status.host}), with {counts}; go on: {start}"
    return f"no grid runs on {run_id}: it has {status.state.replace('stopped', 'been stopped')}, with {counts}; call it again: {start}"
