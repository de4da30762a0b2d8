"""kill -9 of Dask workers at random moments, while new ones join: the grid ends in one call, as if undisturbed on one machine."""

import random
import shutil
import subprocess
import time

import pytest

from tests.faults.conftest import LONG, ROUNDS, SEED, assert_as_if_undisturbed, finished
from tests.lab.clusters import cluster, scheduler  # noqa: F401
from tests.lab.running import COMMAND, LIMIT, ended, environment

LATEST = 8.0  # seconds from one kill to the next, at most
KILLS = 3  # of one grid; a longer loop runs it again from the start


@pytest.mark.skipif(not LONG, reason="`make test-faults` kills workers at random")
def test_killed_workers_lose_nothing_and_change_nothing(cluster, undisturbed, fresh):  # noqa: F811
    print(f"FAULT_SEED={SEED} FAULT_ROUNDS={ROUNDS}")
    draw, kills = random.Random(f"{SEED} workers"), 0
    workers = [cluster.add(fresh), cluster.add(fresh)]
    cluster.wait_for(2)
    while kills < ROUNDS:
        for name in ("executed", "reports", "data/generated"):
            shutil.rmtree(fresh / name, ignore_errors=True)
        kills += disturbed(fresh, cluster, workers, min(KILLS, ROUNDS - kills), draw)
        assert_as_if_undisturbed(fresh, undisturbed)


def disturbed(lab_path, cluster, workers, kills, draw):  # noqa: F811
    """Run the grid on the cluster with so many kills on the way, a new worker after each; how many hit before the grid had ended."""
    words = [*COMMAND, "grid", "faults", "--executor", "dask", "--scheduler", cluster.address, "--kernel", "cold"]
    pipe = subprocess.PIPE
    running = subprocess.Popen(words, cwd=lab_path, env=environment(lab_path), text=True, stdout=pipe, stderr=pipe)
    hit, kept, until = 0, {}, time.monotonic() + LIMIT
    try:
        while running.poll() is None and time.monotonic() < until:
            time.sleep(draw.uniform(0.5, LATEST))
            if hit < kills and running.poll() is None and list((lab_path / "executed").rglob(".running")):
                victim = draw.choice(workers)
                victim.kill()
                workers[workers.index(victim)] = cluster.add(lab_path)
                hit += 1
                now = finished(lab_path)
                assert {file: now.get(file) for file in kept} == kept
                kept = now
        end = ended(running)
    finally:
        running.kill()
    assert end.returncode == 0, end.stdout + end.stderr
    now = finished(lab_path)
    assert {file: now.get(file) for file in kept} == kept
    return hit
