"""Run a command without a shell: input on its standard input, a limit of time and of output, and nothing of it left when it ends."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from hippo_core.providers.retry import CallFailed

MOST = 8 * 2**20  # bytes of output


class Ran(NamedTuple):
    """How a command ended: its exit status (negative: the signal that ended it) and what it printed."""

    status: int
    output: bytes
    errors: bytes


def run(argv: Sequence[str], text: str, environment: Mapping[str, str], timeout: float, most: int = MOST) -> Ran:
    """Run a command in a session of its own and in an empty folder; its whole process group is killed when it ends. It prints into files,
    so that it never waits for a reader. CallFailed where it cannot be started, takes longer than `timeout` seconds, or prints more than
    `most` bytes."""
    file = tempfile.TemporaryFile
    with tempfile.TemporaryDirectory(prefix="hippo-call-") as folder, file() as given, file() as output, file() as errors:
        given.write(text.encode())
        given.seek(0)
        try:
            process = subprocess.Popen(
                argv, stdin=given, stdout=output, stderr=errors, cwd=folder, env=dict(environment), start_new_session=True
            )
        except OSError as error:
            raise CallFailed(f"{argv[0]} cannot be started: {error.strerror}") from None
        deadline, pause, ended, printed = time.monotonic() + timeout, 0.002, False, 0
        try:
            while not ended and printed <= most and time.monotonic() <= deadline:
                time.sleep(pause)
                pause = min(0.02, pause * 1.5)
                ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
                printed = max(os.fstat(part.fileno()).st_size for part in (output, errors))
        finally:
            with suppress(ProcessLookupError, PermissionError):  # the leader is not reaped yet, so the number is still its group's
                os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
        if printed > most:
            raise CallFailed(f"more than {most:,} bytes of output")
        if not ended:
            raise CallFailed(f"no answer within {timeout:g} s", retry=True)
        output.seek(0)
        errors.seek(0)
        return Ran(status, output.read(), errors.read())
