"""The owner's side of the fork server: one server for this process, started when it is first needed, and the kernels it has made."""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any

from hippo_core.lab import process_env
from hippo_core.lab.warm import read_line

# For the server: neither imports nor the loading of a model start a thread pool, no GPU is opened, figures go where ipykernel sends them.
AT_IMPORT = {
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "HF_DEACTIVATE_ASYNC_LOAD": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # to ask for a GPU must not open it: a fork could not use it any more
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
}
# Nothing of the folder that it is started in is imported; -P would do that too, but IPython goes by it.
START = "import sys; del sys.path[0]; from hippo_core.lab.warm.server import main; main({})"
PATIENCE = 2.0  # seconds for a server to end by itself


class ForkRefused(Exception):
    """The server forks no kernel; the message says why."""


class KernelsEnded(RuntimeError):
    """This process has ended its kernels and starts no more."""


class ForkedKernel:
    """A kernel that the server has forked, with as much of subprocess.Popen as jupyter_client's LocalProvisioner uses."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int, line: socket.socket) -> None:
        self.pid, self.returncode = pid, None
        self._line, self._text = line, b""

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while the kernel runs. A server that has died takes its kernels with it."""
        if self.returncode is None:
            self._listen(socket.MSG_DONTWAIT)
        return self.returncode

    def wait(self) -> int:
        """The exit status, as soon as there is one."""
        while self.returncode is None:
            self._listen(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal to the kernel's process group; nothing where it has ended."""
        if self.poll() is None:
            with suppress(OSError):
                self._line.send(bytes([number]))

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def _listen(self, flags: int) -> None:
        try:
            received = self._line.recv(4096, flags)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        self._text += received
        if not received or self._text.endswith(b"\n"):
            self.returncode = json.loads(self._text)["ended"] if self._text.endswith(b"\n") else -signal.SIGKILL
            self._line.close()


class ForkServer:
    """A server process and the socket over which it is asked."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._asking = threading.Lock()
        self._control = ours
        command = [sys.executable, "-c", START.format(theirs.fileno())]
        apart: dict[str, Any] = {"stdin": subprocess.DEVNULL, "start_new_session": True}  # Ctrl-C is for the owner
        around = {**os.environ, **AT_IMPORT, "TMPDIR": str(process_env.folder())}
        self.process = subprocess.Popen(command, pass_fds=(theirs.fileno(),), env=around, **apart)
        theirs.close()

    def alive(self) -> bool:
        """Whether it runs still."""
        return self.process.poll() is None

    def launch(self, argv: list[str], env: dict[str, str], cwd: str) -> ForkedKernel:
        """A kernel of these arguments; Refused where the server makes none, or has died."""
        line, theirs = socket.socketpair()
        try:
            with self._asking:
                socket.send_fds(self._control, [b"k"], [theirs.fileno()])
            theirs.close()
            line.sendall(json.dumps({"argv": argv, "env": env, "cwd": cwd, "models": sorted(_wanted)}).encode() + b"\n")
            answer = read_line(line)
        except OSError as error:
            line.close()
            theirs.close()
            raise ForkRefused(f"the fork server does not answer ({error})") from None
        if "pid" not in answer:
            line.close()
            raise ForkRefused(answer.get("refused", "the fork server has died"))
        return ForkedKernel(answer["pid"], line)

    def close(self) -> None:
        """End it and its kernels; one that is busy with its imports does not hear and is killed."""
        self._control.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


_servers: list[ForkServer] = []  # the last is asked; the kernels of those before it go on
_wanted: set[str] = set()
_starting, _ended = threading.Lock(), threading.Event()


def launch(argv: list[str], env: dict[str, str], cwd: str) -> ForkedKernel:
    """A kernel, forked by this process's server, which is started (anew) where none runs or its code is old. ForkRefused where there is no
    way; KernelsEnded after `close`."""
    server = start()
    try:
        return server.launch(argv, env, cwd)
    except ForkRefused:
        return start(but=server).launch(argv, env, cwd)


def start(but: ForkServer | None = None) -> ForkServer:
    """The server of this process, another than `but`; it imports while its owner goes on."""
    with _starting:
        if _ended.is_set():
            raise KernelsEnded("this process has ended its kernels and starts no more")
        if not _servers or _servers[-1] is but or not _servers[-1].alive():
            _servers.append(ForkServer())
        return _servers[-1]


def want(model: str) -> None:
    """From now on servers load this model before they fork, so that kernels need not."""
    _wanted.add(model)


def running() -> bool:
    """Whether this process has a server."""
    with _starting:
        return bool(_servers)


def reopen() -> None:
    """Kernels may be started again: a worker of a cluster is made ready for one grid after another."""
    _ended.clear()


@atexit.register
def close() -> None:
    """End all servers of this process and their kernels. It starts no more, not for a cell either that was about to; until `reopen`."""
    _ended.set()
    with _starting:
        for server in _servers:
            server.close()
        _servers.clear()
