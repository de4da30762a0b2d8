"""Many threads read notebooks at once: a collection in the middle of parsing one may let another begin to parse."""

import gc
import sys
import threading

import pytest

from hippo_core.lab.run import notebook_files


class Busy:
    """In a cycle with itself; when that is collected other threads may run."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        sum(range(200))


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_many_threads_read_notebooks_at_once():
    paths = [notebook_files.notebook_path(name) for name in notebook_files.notebook_names()]
    alone, results = [notebook_files.defaults(path) for path in paths], []

    def read():
        for _ in range(60):
            Busy()
            results.append([notebook_files.defaults(path) for path in paths])

    readers = [threading.Thread(target=read) for _ in range(8)]
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)  # the interpreter changes between threads as often as it can, in collections too
    gc.set_threshold(20, 2, 2)
    try:
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*thresholds)
    assert results == [alone] * 60 * 8
