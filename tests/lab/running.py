"""A lab's commands run as a user runs them, each within a time limit, and the processes that they start."""

import os
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO

import psutil
import pytest

COMMAND = [sys.executable, "-m", "hippo_core"]
LIMIT = 300  # seconds that a command may take, on a busy machine


def environment(lab_dir, **more):
    """What commands of a lab have around them; their kernels import the lab's own copy of the library."""
    return {**os.environ, "HIPPO_ROOT": str(lab_dir), "PYTHONPATH": str(lab_dir), "OMP_NUM_THREADS": "1", **more}


def lab(lab_dir, *words, limit=LIMIT, before=(), **more):
    """Run a command of a lab to its end; `before` are words of a command that runs it, `more` goes into its environment."""
    command, pipe = [*before, *COMMAND, *words], subprocess.PIPE
    running = subprocess.Popen(command, cwd=lab_dir, env=environment(lab_dir, **more), stdout=pipe, stderr=pipe, text=True)
    return ended(running, limit)


def here(lab_dir, *words):
    """The same in this process, which saves the start of another: for commands that end before anything runs."""
    from hippo_core.__main__ import main
    from hippo_core.lab.run import fingerprints
    from hippo_core.protocols.base.qa import parameters

    out, trouble, code, before = StringIO(), StringIO(), 0, signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(trouble):
        patch.setenv("HIPPO_ROOT", str(lab_dir))
        patch.chdir(lab_dir)
        patch.setattr(sys, "argv", ["hippo_core", *words])
        parameters.forget()
        fingerprints.forget()
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        finally:
            signal.signal(signal.SIGTERM, before)
    parameters.forget()
    fingerprints.forget()
    return subprocess.CompletedProcess(words, code, out.getvalue(), trouble.getvalue())


def start(lab_dir, grid="quick", before=(), **more):
    """A grid in the background, given back when its first kernel is there. It hears Ctrl-C, even where the tests themselves do not."""
    hears_ctrl_c, pipe = partial(signal.signal, signal.SIGINT, signal.SIG_DFL), subprocess.PIPE
    command, around = [*before, *COMMAND, "grid", grid], environment(lab_dir, **more)
    running = subprocess.Popen(command, cwd=lab_dir, env=around, text=True, preexec_fn=hears_ctrl_c, stdout=pipe, stderr=pipe)
    until = time.monotonic() + LIMIT
    while running.poll() is None and not any(is_forked(kernel) for kernel in kernels_of(lab_dir)):
        if time.monotonic() > until:
            running.kill()
            ended(running)
            pytest.fail(f"no kernel of {grid} came within {LIMIT} s")
        time.sleep(0.1)
    return running


def ended(running, limit=LIMIT):
    """How a command has ended and what it said; where it does not end in time it is killed, and the test has failed."""
    try:
        output = running.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        running.kill()
        output = running.communicate(timeout=60)  # what holds its output ends with it
        pytest.fail(f"not ended after {limit} s: {' '.join(running.args)}\n{output[0]}\n{output[1]}")
    return subprocess.CompletedProcess(running.args, running.returncode, *output)


def kernels_of(lab_dir):
    """The kernels that run for a lab, ordinary ones and forked ones, and those that fork them."""
    processes = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            if ("ipykernel" in words or "lab.warm.server" in words) and process.environ().get("HIPPO_ROOT") == str(lab_dir):
                processes.append(process)
        except psutil.Error:
            continue
    return processes


def is_forked(kernel):
    """Whether a fork server is its parent."""
    try:
        return "lab.warm.server" in " ".join(kernel.parent().cmdline())
    except (psutil.Error, AttributeError):
        return False


def none_left(lab_dir, patience=60):
    """Whether all kernels of a lab, and what forks them, end in time; a server that is busy with its imports ends after them."""
    until = time.monotonic() + patience
    while (left := kernels_of(lab_dir)) and time.monotonic() < until:
        time.sleep(0.2)
    return not left
