"""The extension point of jupyter_client: kernels of a kernelspec that names `hippo-warm` are forked, and talk by ipc.

Every kernel has a folder of its own for its sockets, in that of its owner: by TCP two kernels can race for a port, and with
jupyter_client's own ipc default all kernels of a process share one path until they have connection files.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from jupyter_client.launcher import launch_kernel
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from hippo_core.lab.process_env import folder
from hippo_core.lab.warm import client
from hippo_core.lab.warm.client import ForkedKernel, KernelsEnded

Made = ForkedKernel | subprocess.Popen[bytes]
FAILED = 1  # the exit status of a kernel that could not be made


class StartingKernel:
    """What `make` returns, as soon as it does, with as much of subprocess.Popen as jupyter_client's LocalProvisioner uses. Until then it
    runs; one that is killed before it is made is killed when it is."""

    stdin = stdout = stderr = None

    def __init__(self, make: Callable[[], Made]) -> None:
        self._made: Future[Made] = Future()
        self._killed = threading.Event()
        threading.Thread(target=self._make, args=(make,), daemon=True, name="starting a kernel").start()

    @property
    def pid(self) -> int | None:
        """The process, once there is one."""
        made = self._now()
        return made.pid if made else None

    @property
    def returncode(self) -> int | None:
        """The exit status, if it has ended."""
        return self.poll()

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while the kernel runs or is being made."""
        if self._killed.is_set():
            return -signal.SIGKILL
        if not self._made.done():
            return None
        return FAILED if self._made.exception() else self._made.result().poll()

    def wait(self) -> int:
        """The exit status, as soon as there is one."""
        if self._killed.is_set():
            return -signal.SIGKILL
        return FAILED if self._made.exception() else self._made.result().wait()

    def send_signal(self, number: int) -> None:
        """Send a signal to the kernel's process group. Before it is made an interrupt has nothing to interrupt, and an end is its end."""
        if made := self._now():
            _send(made, number)
        elif number in (signal.SIGKILL, signal.SIGTERM) and not self._made.done():
            self._killed.set()
            self._made.add_done_callback(_end)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def _now(self) -> Made | None:
        return self._made.result() if self._made.done() and not self._made.exception() else None

    def _make(self, make: Callable[[], Made]) -> None:
        try:
            self._made.set_result(make())
        except Exception as error:  # whatever it is, there is no kernel; who asked for it has gone on
            if not (self._killed.is_set() or isinstance(error, KernelsEnded)):  # neither is news to who asked for it
                warnings.warn(f"no kernel could be started: {error}", stacklevel=2)
            self._made.set_exception(error)


def _send(made: Made, number: int) -> None:
    if isinstance(made, ForkedKernel):
        made.send_signal(number)
        return
    with suppress(ProcessLookupError):
        os.killpg(made.pid, number)  # an ordinary kernel leads a group of its own


def _end(made: Future[Made]) -> None:
    if not made.exception():
        _send(made.result(), signal.SIGKILL)
        made.result().wait()


class WarmProvisioner(LocalProvisioner):
    """LocalProvisioner, but that the process is a fork of this process's fork server."""

    sockets: str | None = None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Give the kernel's sockets a place; then as usual."""
        manager = self.parent
        if manager is not None and self.sockets is None:
            self.sockets = tempfile.mkdtemp(dir=folder())
            manager.transport, manager.ip = "ipc", str(Path(self.sockets) / "k")
            manager.cache_ports = False
        return await super().pre_launch(**kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Have it forked, or started as an ordinary process where that is refused, and go on at once: its messages wait for it."""
        client.start()
        self.process = StartingKernel(partial(_made, cmd, kwargs))
        self.pid, self.pgid = None, None  # signals go by StartingKernel, which knows whether there is a process
        return self.connection_info

    async def cleanup(self, restart: bool = False) -> None:
        """As usual, and the sockets' folder goes."""
        await super().cleanup(restart)
        if self.sockets and not restart:
            shutil.rmtree(self.sockets, ignore_errors=True)
            self.sockets = None


def _made(cmd: list[str], kwargs: dict[str, Any]) -> Made:
    """The kernel of a command: a fork, or an ordinary process where that is refused."""
    try:
        if cmd[:3] != [sys.executable, "-m", "ipykernel_launcher"]:
            raise client.ForkRefused(f"expected a command of this Python's ipykernel_launcher, got {' '.join(cmd[:3])}")
        if redirected := [name for name in ("stdin", "stdout", "stderr") if kwargs.get(name) is not None]:
            raise client.ForkRefused(f"{', '.join(redirected)} of its own")
        return client.launch(cmd[3:], dict(kwargs["env"]), str(kwargs.get("cwd") or Path.cwd()))
    except client.ForkRefused as error:
        warnings.warn(f"a cold kernel is started: {error}", stacklevel=2)
        return launch_kernel(cmd, **LocalProvisioner._scrub_kwargs(kwargs))
