"""How a grid stands just now and the time that it still takes, in a file that other processes read: executed/<run>/.progress.json, there
while a grid runs and after it."""

import os
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal

from pydantic import BaseModel, Field

from hippo_core.files import write_text
from hippo_core.lab.grid.expand import grid_names
from hippo_core.lab.run.cells import Cell
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
    """Counts of cells, those that run, the last that ended, and their process. Times are seconds, `started` and `updated` since 1970."""

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

    @property
    def remaining(self) -> int:
        """Cells that have not ended."""
        return self.total - self.done - self.failed


class StatusFile:
    """Keeps the file of a run while its grid works; a context manager that marks it in the end. Where it cannot be written, it is not."""

    def __init__(self, run_id: str, every: float = 1.0) -> None:
        self.run_id, self.every, self.path = run_id, every, run_folder(run_id) / FILE
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
        self._now = status.model_copy(update={"run_id": self.run_id})
        if time.monotonic() - self._written >= self.every:
            self._write(self._now)

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


def poll(run_id: str) -> tuple[Status | None, bool]:
    """The same, and whether that grid still works: it holds its run's lock then. Where it does not, its last words are not missed."""
    status = read(run_id)
    if status and status.state == "running" and is_locked(run_folder(run_id)):
        return status, True
    return read(run_id), False


def absent(run_id: str, status: Status | None) -> str:
    """Why there is nothing to watch, and how to begin, in one line."""
    start = f"make grid GRID={run_id}" if run_id in grid_names() else f"make grid GRID=smoke RUN_ID={run_id}"
    if status is None:
        there = "no grid runs on" if run_folder(run_id).is_dir() else "there is no run"
        return f"{there} {run_id}; start one: {start}"
    counts = f"{status.done} done, {status.failed} failed"
    if status.state == "running":
        return f"the runner of {run_id} is gone (process {status.pid}), with {counts}; go on: {start}"
    return f"no grid runs on {run_id}: it has {status.state.replace('stopped', 'been stopped')}, with {counts}; call it again: {start}"


def seconds_left(
    cells: Sequence[Cell], running: Mapping[str, float], ended: Sequence[tuple[Cell, float]], earlier: Mapping[str, float], jobs: int
) -> float | None:
    """Seconds until the last of the open cells ends; None where nothing is known of any.

    Args:
        cells: those that have not ended.
        running: the seconds that running cells have had, by id.
        ended: cells of this run with what they took.
        earlier: what older records say of a cell, by id. It counts times the pace of this run; a cell without takes the mean.
    """
    compared = [(seconds, earlier[cell.id]) for cell, seconds in ended if cell.id in earlier]
    before = sum(old for _, old in compared)
    speed_ratio = sum(new for new, _ in compared) / before if before > 0 else 1.0
    known = [seconds for _, seconds in ended] or [earlier[cell.id] for cell in cells if cell.id in earlier]
    if not cells:
        return 0.0
    if not known:
        return None
    mean = statistics.fmean(known)
    takes = {cell.id: speed_ratio * earlier[cell.id] if cell.id in earlier else mean for cell in cells}
    left = [max(0.0, seconds - running.get(name, 0.0)) for name, seconds in takes.items()]
    return max(sum(left) / jobs, *left)


def duration(seconds: float) -> str:
    """Seconds as a person says them: 42 s, 3 min 20 s, 2 h 5 min."""
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60} s"
    return f"{rounded // 3600} h {rounded % 3600 // 60} min"
