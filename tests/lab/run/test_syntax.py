"""Source as a syntax tree: the same in one thread and in many at once."""

import gc
import sys
import threading
from contextlib import contextmanager

import pytest

from hippo_core.lab.run import notebook_files


class Busy:
    """In a cycle with itself; when that is collected other threads may run."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        sum(range(200))


@contextmanager
def restless():
    """The interpreter changes between threads as often as it can, in collections too."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(20, 2, 2)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*thresholds)


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_many_threads_read_notebooks_at_once():
    paths = [notebook_files.notebook_path(name) for name in notebook_files.notebook_names()]
    alone = [notebook_files.defaults(path) for path in paths]
    results, rounds, threads = [], 60, 8

    def read():
        for _ in range(rounds):
            Busy()
            results.append([notebook_files.defaults(path) for path in paths])

    readers = [threading.Thread(target=read) for _ in range(threads)]
    with restless():
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
    assert results == [alone] * rounds * threads
