"""A kernel that is still being made, in a thread, while its owner goes on.

A fork server that has just been started imports for some ten seconds before it forks. JupyterLab drops a cell that is run while it waits
for the kernel to be started; messages to a kernel that has been started wait in its sockets until it listens.
"""

import os
import signal
import subprocess
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

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
