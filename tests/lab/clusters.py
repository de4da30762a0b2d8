"""A Dask cluster on this machine: a scheduler and workers, each a process of its own that can be killed."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass
class Cluster:
    """A scheduler at `address`; `add` brings workers."""

    folder: Path
    processes: list = field(default_factory=list)

    @property
    def address(self):
        return str(self.folder / "scheduler.json")

    def start(self):
        self._run("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", self.address)
        deadline = time.monotonic() + 60
        while not Path(self.address).is_file():
            assert time.monotonic() < deadline, (self.folder / "scheduler.log").read_text()
            time.sleep(0.1)

    def add(self, lab_dir, *words):
        """A worker whose checkout is the lab at `place`; returns its process."""
        local = str(self.folder / f"worker-{len(self.processes)}")
        fixed = ("--scheduler-file", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", local)
        return self._run("worker", *fixed, *words, lab_dir=lab_dir)

    def _client(self):
        from distributed import Client  # a second of imports

        return Client(scheduler_file=self.address, set_as_default=False)

    def wait_for(self, count):
        with self._client() as client:
            client.wait_for_workers(count, timeout=60)

    def _run(self, *words, lab_dir=None):
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        if lab_dir:
            env |= {"HIPPO_ROOT": str(lab_dir), "PYTHONPATH": str(lab_dir)}
        log = (self.folder / f"{words[0]}.log").open("a")
        started = subprocess.Popen(
            [sys.executable, "-m", "dask", *words], env=env, cwd=lab_dir, stdout=log, stderr=log, start_new_session=True
        )
        self.processes.append(started)
        return started

    def dismiss(self):
        """End all workers, and wait until the scheduler knows."""
        self._kill(self.processes[1:])
        with self._client() as client:
            deadline = time.monotonic() + 60
            while client.scheduler_info(n_workers=-1)["workers"]:
                assert time.monotonic() < deadline, (self.folder / "scheduler.log").read_text()
                time.sleep(0.1)

    def stop(self):
        self._kill(self.processes)

    def _kill(self, processes):
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(20)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """A scheduler for all tests of a file."""
    made = Cluster(tmp_path_factory.mktemp("dask"))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def cluster(scheduler):
    """The scheduler, without workers."""
    yield scheduler
    scheduler.dismiss()
