"""The widget: a view that follows a grid's status file while the kernel does other work; and a grid started from a notebook.

It is a process of its own: it goes on when the notebook's kernel is interrupted, restarted or gone.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal

import ipywidgets
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.lab.grid.expand import load_grid
from hippo_core.lab.grid.progress.screen import by_length
from hippo_core.lab.grid.progress.status import Status, absent, duration, poll
from hippo_core.lab.run.execute import Kernel, Output
from hippo_core.results.records import run_folder

Stage = Literal["waiting", "starting", "running", "stopping", "ended", "stopped", "gone", "idle", "refused"]
WORDS = {"waiting": "no grid yet", "gone": "runner gone", "idle": "nothing to do", "refused": "not begun"}
HERE = Path(__file__).parent
MANY = 4  # with more cells running than this, each shows one line of its output
LINES, ENDED, FAILED = 5, 4, 10  # lines of a cell's output, ended and failed cells that are shown
OUTPUT = ".output"  # the file of a run that keeps what its grid prints
EVERY = 1.0  # seconds between two looks
OVER: tuple[Stage, ...] = ("ended", "stopped", "gone", "idle", "refused")


def watch(run_id: str) -> "GridView":
    """Show how the grid of a run comes along, wherever it was started; where none runs yet, the view waits for one."""
    return GridView(run_id)


class GridView(ipywidgets.VBox):
    """A live view of a run's grid; it follows by itself where a kernel's loop runs, until the grid ends or the view is closed. `process` is
    a grid that was started for it, which the Stop button interrupts; `output` is where that grid prints to."""

    following: "asyncio.Task[None] | None" = None

    def __init__(self, run_id: str, process: "subprocess.Popen[bytes] | None" = None, output: Path | None = None) -> None:
        self.run_id, self._process, self._output, self._stopping = run_id, process, output, False
        self._head, self._body = ipywidgets.HTML(), ipywidgets.HTML()
        self._button = ipywidgets.Button(description="Stop", icon="stop", tooltip="Stop the grid as Ctrl-C does; what is finished is kept")
        self._button.layout.width = "104px"
        self._button.on_click(self.stop)
        row = [self._head] if process is None else [self._head, self._button]
        top = ipywidgets.HBox(row, layout={"justify_content": "space-between", "align_items": "center", "min_height": "34px"})
        super().__init__([top, self._body], layout={"max_width": "860px"})
        if self.refresh():
            with suppress(RuntimeError):  # no loop runs: whoever made the view looks again
                self.following = asyncio.get_running_loop().create_task(self._follow())

    def refresh(self) -> bool:
        """Look at the status file once; whether there is more to come."""
        status, works = poll(self.run_id)
        if self._process and status and status.pid != self._process.pid:  # of a grid before this one
            status, works = None, False
        stage = self._stage(status, works)
        note = absent(self.run_id, status) if stage in ("waiting", "stopped", "gone") else ""
        self._head.value = head(self.run_id, stage, status.failed if status else 0)
        self._body.value = body(stage, status, note, self._printed() if stage in ("idle", "refused") else "")
        self._button.disabled = self._stopping
        self._button.layout.display = "none" if stage in OVER else ""
        return stage not in OVER

    def stop(self, *_: object) -> None:
        """Interrupt the grid that was started for this view: it ends its kernels and keeps what is finished."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._stopping = True
            self.refresh()

    def close(self) -> None:
        """Take the view away; the grid goes on."""
        if self.following:
            self.following.cancel()
        super().close()

    async def _follow(self) -> None:
        while self.refresh():
            await asyncio.sleep(EVERY)

    def _stage(self, status: Status | None, works: bool) -> Stage:
        code = self._process.poll() if self._process else None
        if status is None:
            return "waiting" if self._process is None else "starting" if code is None else "refused" if code else "idle"
        if works:
            return "stopping" if self._stopping else "running"
        return "gone" if status.state == "running" else status.state

    def _printed(self) -> str:
        printed = Output()
        printed.write(self._output.read_text(encoding="utf-8", errors="replace") if self._output else "")
        return "\n".join(printed.lines)


def start(
    grid: str, jobs: int = 2, run_id: str = "", only: Sequence[str] = (), models: Sequence[str] = (), kernel: Kernel = "warm"
) -> GridView:
    """Run what is left of a grid and show it, with a button that stops it as Ctrl-C does; what it prints is kept beside its records. The
    arguments are those of `make grid`. LabError where there is no such grid, or one works on that run."""
    load_grid(grid)
    run = run_id or grid
    if poll(run)[1]:
        raise LabError(f"a grid runs on {run} already: watch({run!r}) shows it; or take another run_id")
    output = run_folder(run) / OUTPUT
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("wb") as file:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "hippo_core", "grid", grid, "--run-id", run, "--jobs", str(jobs), "--kernel", kernel),
                *(word for pattern in only for word in ("--only", pattern)),
                *(word for model in models for word in ("--model", model)),
            ],
            cwd=root(),
            env={**os.environ, "TTY_COMPATIBLE": "0"},  # a kernel asks for colours, and rich takes the file for a terminal then
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a kernel passes its own Ctrl-C, and its end, on to its session
        )
    return GridView(run, process, output)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["duration"] = duration
    return environment


def head(run_id: str, stage: Stage, failed: int) -> str:
    """The name of the run and its stage, with the style of all. `failed`: cells."""
    style = Markup((HERE / "view.css").read_text(encoding="utf-8"))
    bad = stage == "ended" and failed
    style_class, label = ("ended failures", f"ended, {failed} failed") if bad else (stage, WORDS.get(stage, stage))
    text = Markup('<style>{}</style><div class="hippo-grid"><b>{}</b><span class="stage {}">{}</span></div>')
    return str(text.format(style, run_id, style_class, label))


def body(stage: Stage, status: Status | None, note: str = "", output: str = "") -> str:
    """All below it. `note` says what a person can do, `output` is what a grid printed that did not begin."""
    running = by_length(status) if status else []
    lines = 1 if len(running) > MANY else LINES
    words = {"status": status, "note": note, "output": output, "headline": headline(stage, status), "running": running}
    words["works"] = stage in ("running", "stopping")
    cells = {"done": status.done, "failed": status.failed, "running": len(status.running)} if status else {}
    shares = {name: 100 * count / max(1, status.total) for name, count in cells.items() if status and count}
    counts = {"lines": lines, "ended": ENDED, "shown": FAILED, "shares": shares}
    return _environment().get_template("view.html.j2").render(**words, **counts)


def headline(stage: Stage, status: Status | None) -> str:
    """What a person wants to know first."""
    if status is None:
        return {"waiting": "Waiting for a grid", "idle": "Nothing to do", "refused": "The grid did not begin"}.get(stage, "Starting")
    took = duration(status.updated - status.started)
    if stage not in ("running", "stopping"):
        return f"{WORDS.get(stage, stage).capitalize()} after {took}"
    remaining = status.seconds_left
    return "Stopping" if stage == "stopping" else "Time left not known yet" if remaining is None else f"About {duration(remaining)} left"
