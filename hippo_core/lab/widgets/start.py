"""Start a grid from a notebook, as a process of its own: it goes on when the notebook's kernel is interrupted, restarted or gone."""

import os
import subprocess
import sys
from collections.abc import Sequence

from hippo_core.files import LabError, root
from hippo_core.lab.grid.expand import load_grid
from hippo_core.lab.grid.progress.status import look
from hippo_core.lab.run.execute import Kernel
from hippo_core.lab.widgets.view import GridView
from hippo_core.results.records import run_folder

OUTPUT = ".output"


def start(
    grid: str, jobs: int = 2, run_id: str = "", only: Sequence[str] = (), models: Sequence[str] = (), kernel: Kernel = "warm"
) -> GridView:
    """Run what is left of a grid and show it, with a button that stops it as Ctrl-C does; what it prints is kept beside its records.

    The arguments are those of `make grid`. LabError where there is no such grid, or one works on that run.
    """
    load_grid(grid)
    run = run_id or grid
    if look(run)[1]:
        raise LabError(f"a grid runs on {run} already: watch({run!r}) shows it; or take another run_id")
    output = run_folder(run) / OUTPUT
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("wb") as file:
        process = subprocess.Popen(
            [*command(grid, run, jobs, kernel), *_repeated("--only", only), *_repeated("--model", models)],
            cwd=root(),
            env={**os.environ, "TTY_COMPATIBLE": "0"},  # a kernel asks for colours, and rich takes the file for a terminal then
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a kernel passes its own Ctrl-C, and its end, on to its session
        )
    return GridView(run, process, output)


def command(grid: str, run_id: str, jobs: int, kernel: Kernel) -> list[str]:
    """The words that run a grid."""
    return [sys.executable, "-m", "hippo_core", "grid", grid, "--run-id", run_id, "--jobs", str(jobs), "--kernel", kernel]


def _repeated(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]
