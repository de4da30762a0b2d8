"""Run a command without a shell: input on its standard input, a limit of time and of output, and nothing of it left when it ends."""

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from hippo_core.providers.retry import CallFailed

MOST = 8 * 2**20  # bytes of output
LEFT = 2.0  # seconds for the pipes to empty once all of the group is dead


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended: its exit status (negative: the signal that ended it) and what it printed."""

    status: int
    output: bytes
    errors: bytes


def run(argv: Sequence[str], text: str, environment: Mapping[str, str], timeout: float, most: int = MOST) -> Ran:
    """Run a command in a session of its own and in an empty folder; its whole process group is killed when it ends. CallFailed where it
    cannot be started, takes longer than `timeout` seconds, or prints more than `most` bytes."""
    with tempfile.TemporaryDirectory(prefix="hippo-call-") as folder, tempfile.TemporaryFile() as given:
        given.write(text.encode())
        given.seek(0)
        try:
            process = subprocess.Popen(
                argv, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, env=dict(environment), start_new_session=True
            )
        except OSError as error:
            raise CallFailed(f"{argv[0]} cannot be started: {error.strerror}") from None
        assert process.stdout and process.stderr
        readers = [_Reader(process.stdout, most), _Reader(process.stderr, most)]
        try:
            _wait(process, readers, timeout)
        finally:
            with suppress(ProcessLookupError, PermissionError):  # the leader is not reaped yet, so the number is still its group's
                os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
            for reader in readers:
                reader.join(LEFT)
        return Ran(status, bytes(readers[0].content), bytes(readers[1].content))


def _wait(process: subprocess.Popen[bytes], readers: "Sequence[_Reader]", timeout: float) -> None:
    deadline, pause = time.monotonic() + timeout, 0.002
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if any(reader.full for reader in readers):
            break
        if time.monotonic() > deadline:
            raise CallFailed(f"no answer within {timeout:g} s", retry=True)
        time.sleep(pause)
        pause = min(0.05, pause * 1.5)
    for reader in readers:  # a child that ended may have left output in the pipe
        if not reader.full:
            reader.join(0.2)  # a grandchild may hold it open: no longer
    if any(reader.full for reader in readers):
        raise CallFailed(f"more than {readers[0].most:,} bytes of output")


class _Reader(threading.Thread):
    """Empties a pipe while the command runs, so that it never waits for us; stops at `most` bytes."""

    def __init__(self, pipe: IO[bytes], most: int) -> None:
        super().__init__(daemon=True)
        self.pipe, self.most, self.content, self.full = pipe, most, bytearray(), False
        self.start()

    def run(self) -> None:
        """Read until the pipe is closed or the limit is reached."""
        with self.pipe:
            while piece := os.read(self.pipe.fileno(), 65536):
                self.content += piece
                if len(self.content) > self.most:
                    self.full = True
                    return
