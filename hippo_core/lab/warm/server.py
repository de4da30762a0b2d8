"""The fork server: it imports what experiments need, then becomes a Jupyter kernel, in a fork, as often as it is asked.

`main(FD)` runs it, where FD is one end of a socket pair of its owner. A message on it is one byte with one
descriptor: a socket for one order alone. Over that socket come the order (a line of JSON) and later the numbers of signals to send, and
go the answer (a line of JSON) and, at the kernel's end, its exit status (another line). Where the owner closes its end of an order's
socket, that kernel is killed; where it closes FD, or dies, all are.

No CUDA is initialised here and no thread runs at a fork: a forked thread pool would hang, a forked CUDA context fail.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hippo_core import source_code
from hippo_core.lab.warm import read_line

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


@dataclass
class Server:
    """The loop. `control` is the owner's socket. A kernel's process leads a group and a session of its own."""

    control: socket.socket
    kernels: dict[socket.socket, int] = field(default_factory=dict)  # the socket of each order, and the process of its kernel
    tried: set[str] = field(default_factory=set)  # names of models that were to be loaded
    source: int = 0  # the newest change of the package's source when it was imported

    def serve(self) -> dict[str, Any] | None:
        """Take orders until the owner is gone. In a fork this returns the order to be carried out, in the server None."""
        wake, woken = socket.socketpair()
        for end in (wake, woken):
            end.setblocking(False)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            readable = _readable([self.control, wake, *self.kernels])
            if wake in readable:
                with suppress(BlockingIOError):
                    while wake.recv(4096):
                        pass
                self._reap()
            for line in readable:
                if line in self.kernels:
                    self._signal(line)
            if self.control in readable:
                _, descriptors, _, _ = socket.recv_fds(self.control, 1, 1)
                if not descriptors:
                    return self._end()
                if order := self._take(socket.socket(fileno=descriptors[0])):
                    signal.set_wakeup_fd(-1)  # before its socket goes
                    for end in (wake, woken, self.control, *self.kernels):
                        end.close()
                    return order

    def _take(self, line: socket.socket) -> dict[str, Any] | None:
        """Carry out one order: fork, or say why not. Returns the order in the fork only."""
        order = read_line(line)
        if not order:  # the owner left while it was asking
            line.close()
            return None
        self._load_models(order["models"])
        if refusal := self._refusal():
            _reply(line, refused=refusal)
            line.close()
            return None
        forker, pid = os.getpid(), os.fork()
        if pid == 0:
            line.close()
            return order | {"forker": forker}
        self.kernels[line] = pid
        _reply(line, pid=pid)
        return None

    def _load_models(self, names: list[str]) -> None:
        """Load these models, so that forks have them; where one cannot be loaded, the kernel that asks for it will say why."""
        if self.tried.issuperset(names):
            return
        import torch
        from tqdm import tqdm

        from hippo_core.models.load import preload
        from hippo_core.models.spec import load_spec

        usual, tqdm.monitor_interval = tqdm.monitor_interval, 0  # or the first progress bar starts a thread
        for name in [name for name in names if name not in self.tried]:
            self.tried.add(name)
            with suppress(Exception):
                spec = load_spec(name)
                if not torch.cuda.is_available():
                    preload(spec)
                    gc.freeze()
        tqdm.monitor_interval = usual

    def _refusal(self) -> str:
        """Why no kernel may be forked now, or nothing."""
        torch = sys.modules.get("torch")
        if newest_source() != self.source:
            return "the code has changed since the fork server imported it"
        if torch and torch.cuda.is_initialized():
            return "CUDA is initialised in the fork server"
        threads = _threads()
        return f"{threads} threads run in the fork server" if threads > 1 else ""

    def _signal(self, line: socket.socket) -> None:
        numbers = line.recv(64)
        for number in numbers or (signal.SIGKILL,):
            _send(self.kernels[line], number)
        if not numbers:
            del self.kernels[line]
            line.close()

    def _reap(self) -> None:
        running = {pid: line for line, pid in self.kernels.items()}
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if line := running.get(ended[0]):
                    del self.kernels[line]
                    _reply(line, ended=os.waitstatus_to_exitcode(ended[1]))
                    line.close()

    def _end(self) -> None:
        """Nobody is left to work for; when this process has ended, its kernels have, so that what they held is free."""
        signal.set_wakeup_fd(-1)
        for pid in self.kernels.values():
            _send(pid, signal.SIGKILL)
        for pid in self.kernels.values():
            with suppress(ChildProcessError):  # it was reaped
                os.waitpid(pid, 0)


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


def _readable(ends: list[socket.socket]) -> list[socket.socket]:
    """Those of the sockets that have something to be read, as soon as one has; select.select would know no descriptor above 1023."""
    watched, poll = {end.fileno(): end for end in ends}, select.poll()
    for descriptor in watched:
        poll.register(descriptor, select.POLLIN)
    return [watched[descriptor] for descriptor, _ in poll.poll()]


def _send(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:  # it has not yet made its group, or has just ended
        os.kill(pid, number)


def _threads() -> int:
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.is_dir() else 1


def _reply(end: socket.socket, **words: Any) -> None:
    with suppress(OSError):  # the owner has gone; that is seen where its socket is read
        end.sendall(json.dumps(words).encode() + b"\n")


def main(descriptor: int) -> None:
    """Import, then serve."""
    control = socket.socket(fileno=descriptor)
    source = newest_source()
    for name in MODULES:
        importlib.import_module(name)
    source_code.closure(name for name in MODULES if name.startswith("hippo_core."))  # parsed once, for the checksums of all forks
    gc.collect()
    gc.freeze()
    if order := Server(control, source=source).serve():
        become(order)
    leave()
