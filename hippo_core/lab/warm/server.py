"""The fork server: it imports what experiments need, then becomes a Jupyter kernel, in a fork, as often as it is asked.

`main(FD)` runs it, where FD is one end of a socket pair of its owner. An order is a line of JSON on it, and so is the answer: the process
of the kernel, or why there is none. Who has the number of a process signals it and sees its end; the server waits for none of its forks.
Where the owner closes FD, or dies, all kernels are killed.

No CUDA is initialised here and no thread runs at a fork: a forked thread pool would hang, a forked CUDA context fail.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from hippo_core import source_code
from hippo_core.lab.warm import read_line, send_signal

MODULES = (
    "hippo_core.models",  # before the others: it keeps one of them quiet
    *("torch", "transformers.models.llama.modeling_llama", "peft", "pandas", "scipy.stats", "matplotlib.pyplot", "seaborn", "scrapbook"),
    *("IPython.core.interactiveshell", "ipykernel.kernelapp", "ipykernel.ipkernel"),
    *("hippo_core.lab.run.notebook", "hippo_core.models.load", "hippo_core.evaluation.run", "hippo_core.protocols.questions.run"),
    *("hippo_core.protocols.questions.protocol", "hippo_core.methods.presets"),
    *(
        f"hippo_core.methods.{name}"
        for name in ("baselines", "controls", "composite", "rag.rerank", "episodic.writing", "episodic.replaying")
    ),
    *("PIL.BmpImagePlugin", "PIL.GifImagePlugin", "PIL.JpegImagePlugin", "PIL.PpmImagePlugin", "pyarrow.pandas_compat"),
    *("hippo_core.suites.datasets.build", "hippo_core.results.records", "hippo_core.protocols.questions.figures.plots"),
)
PR_SET_PDEATHSIG = 1
LAST_WORDS = 5.0  # seconds


def serve(control: socket.socket, source: int) -> dict[str, Any] | None:
    """Take orders until the owner is gone. In a fork this returns the order to be carried out, in the server None. `source`: the newest
    change of the package's source when it was imported."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a kernel that has ended is gone at once
    tried: set[str] = set()
    while order := read_line(control):
        _load_models(set(order["models"]) - tried)
        tried.update(order["models"])
        answer: dict[str, Any] = {"refused": refusal(source)}
        if not answer["refused"]:
            forker, pid = os.getpid(), os.fork()
            if pid == 0:
                control.close()
                return order | {"forker": forker}
            answer = {"pid": pid}
        with suppress(OSError):  # the owner has gone, which the next reading shows
            control.sendall(json.dumps(answer).encode() + b"\n")
    for kernel in psutil.Process().children():
        send_signal(kernel.pid, signal.SIGKILL)
    with suppress(ChildProcessError):  # nobody is left: when this process has ended, its kernels have, so that what they held is free
        os.waitpid(-1, 0)
    return None


def _load_models(names: Iterable[str]) -> None:
    """Load these models, so that forks have them; where one cannot be loaded, the kernel that asks for it will say why."""
    if not names:
        return
    import torch
    from tqdm import tqdm

    from hippo_core.models.load import preload
    from hippo_core.models.spec import load_spec

    usual, tqdm.monitor_interval = tqdm.monitor_interval, 0  # or the first progress bar starts a thread
    for name in sorted(names):
        with suppress(Exception):
            spec = load_spec(name)
            if not torch.cuda.is_available():
                preload(spec)
                gc.freeze()
    tqdm.monitor_interval = usual


def refusal(source: int) -> str:
    """Why no kernel may be forked now, or nothing."""
    torch = sys.modules.get("torch")
    if newest_source() != source:
        return "the code has changed since the fork server imported it"
    if torch and torch.cuda.is_initialized():
        return "CUDA is initialised in the fork server"
    threads = _threads()
    return f"{threads} threads run in the fork server" if threads > 1 else ""


def become(order: dict[str, Any]) -> None:
    """Be the kernel that an order asks for: `argv` (of IPKernelApp), `env`, `cwd`; `forker` is the server's process."""
    import numpy
    from ipykernel.kernelapp import IPKernelApp

    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != order["forker"]:  # it died before that
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(order["env"] | {"JPY_PARENT_PID": str(order["forker"])})
    tempfile.tempdir = None  # asked for anew, of these surroundings
    numpy.random.seed()  # noqa: NPY002 - the one that notebooks share; Python's own is seeded anew at a fork
    os.chdir(order["cwd"])
    sys.argv = ["ipykernel_launcher", *order["argv"]]
    if torch := sys.modules.get("torch"):  # it was imported with the server's surroundings
        torch.set_num_threads(int(order["env"].get("OMP_NUM_THREADS") or torch.get_num_threads()))
    app = IPKernelApp.instance(parent_handle=order["forker"])  # ends with the server, where nothing else ends it
    app.initialize(order["argv"])
    app.start()
    app.control_thread.join(LAST_WORDS)  # it has told the kernel to end and is still saying so; its sockets go next


def leave() -> None:
    """End server or fork as an interpreter ends, but that modules are not taken apart: with so many that takes half a second."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(0)


def newest_source() -> int:
    """When a file of the package was last changed, in nanoseconds; a server whose code is older than that is of no use."""
    package = Path(__file__).parents[2]
    return max(path.stat().st_mtime_ns for kind in ("py", "yaml") for path in package.rglob(f"*.{kind}"))


def _threads() -> int:
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.is_dir() else 1


def main(descriptor: int) -> None:
    """Import, then serve."""
    control = socket.socket(fileno=descriptor)
    source = newest_source()
    for name in MODULES:
        importlib.import_module(name)
    source_code.closure(name for name in MODULES if name.startswith("hippo_core."))  # parsed once, for the checksums of all forks
    gc.collect()
    gc.freeze()
    if order := serve(control, source):
        become(order)
    leave()
