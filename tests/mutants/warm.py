"""Runs pytest in forks of a process that has imported other packages already, so that a mutant's tests begin in a second, not in ten.

It reads one request a line, {"place", "environment", "arguments", "log", "limit"}, and prints the exit code; "late" where there was no end.
It is a script, not a module of `tests`: nothing of the lab's may be imported before a fork.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Sequence


def run(place: str, environment: dict[str, str], arguments: list[str], log: str) -> int:
    """pytest's exit code in the tree at `place`; what it prints goes to the file `log`."""
    os.setsid()
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.chdir(place)
    os.environ |= environment
    sys.path.insert(0, place)
    import pytest

    return int(pytest.main(arguments))


def ended(child: int, limit: float) -> str:
    """How a fork ended, all that it started with it."""
    until = time.monotonic() + limit
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            _kill(child)
            return str(os.waitstatus_to_exitcode(status))
        time.sleep(0.05)
    _kill(child)
    os.waitpid(child, 0)
    return "late"


def _kill(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def main(packages: Sequence[str]) -> None:
    """Import these packages and serve until the input ends."""
    sys.path.remove(os.path.dirname(os.path.abspath(__file__)))
    os.environ.setdefault("TRITON_INTERPRET", "1")  # as tests/conftest.py, which comes too late here
    for name in packages:
        importlib.import_module(name)
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        limit = request.pop("limit")
        child = os.fork()
        if not child:
            code = 70
            try:
                code = run(**request)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        print(ended(child, limit), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
