"""kill -9 at random moments, of everything that runs: nothing that was finished is lost or changed, and the grid ends as if undisturbed."""

import random
import shutil
import time

import psutil
import pytest

from tests.faults.conftest import LONG, ROUNDS, SEED, assert_as_if_undisturbed, finished
from tests.lab.running import LIMIT, ended, is_forked, kernels_of, lab, start

pytestmark = pytest.mark.long

LATEST = 6.0  # seconds from one kill to the next, at most
KILLS = 3  # of one grid; a longer loop runs it again from the start


def runner(running, lab_path):
    """The process that was called."""
    return [psutil.Process(running.pid)]


def kernel(running, lab_path):
    """Any kernel of a cell, forked or not."""
    return [process for process in kernels_of(lab_path) if process not in fork_server(running, lab_path)]


def fork_server(running, lab_path):
    """What kernels are forked from; they end with it."""
    return [process for process in kernels_of(lab_path) if not is_forked(process) and "lab.warm.server" in " ".join(process.cmdline())]


VICTIMS = {"the runner": runner, "a kernel": kernel, "the fork server": fork_server}


@pytest.mark.parametrize("victim", VICTIMS if LONG else ["the runner"])
def test_a_kill_loses_nothing_and_changes_nothing(victim, undisturbed, fresh, temporary):
    print(f"FAULT_SEED={SEED} FAULT_ROUNDS={ROUNDS}")
    draw, kills = random.Random(f"{SEED} {victim}"), 0
    while kills < ROUNDS:
        for name in ("executed", "reports", "data/generated"):
            shutil.rmtree(fresh / name, ignore_errors=True)
        hit, kept = disturbed(fresh, VICTIMS[victim], min(KILLS, ROUNDS - kills), draw, temporary)
        kills += hit
        print(f"{victim}: {kills} kills, {len(kept)} files of finished records were there at the last")
        after = lab(fresh, "grid", "faults", TMPDIR=str(temporary))
        assert "nothing to be done" in after.stdout, after.stdout + after.stderr
        assert_as_if_undisturbed(fresh, undisturbed)
        now = finished(fresh)
        assert {file: now.get(file) for file in kept} == kept
        if list(temporary.iterdir()):  # a kernel that outlived its runner held the folder until just now: the next work takes it away
            assert lab(fresh, "report", "faults", TMPDIR=str(temporary)).returncode == 0


def disturbed(lab_path, victims, kills, draw, temporary):
    """Run the grid to its end with so many kills on the way: how many hit, and the records that were finished at one of them."""
    hit, kept = 0, {}
    for _ in range(kills + 2):
        running = start(lab_path, "faults", TMPDIR=str(temporary))
        try:
            while hit < kills and (victim := await_one(running, lab_path, victims, draw)):
                victim.kill()
                hit += 1
                now = finished(lab_path)
                assert {file: now.get(file) for file in kept} == kept
                kept = now
            end = ended(running)
        finally:
            running.kill()
        if end.returncode == 0:
            return hit, kept
        assert end.returncode == -9 or "once more, alone" in end.stdout, end.stdout + end.stderr
    raise AssertionError(f"not finished after {hit} kills and so many calls: {end.stdout}\n{end.stderr}")


def await_one(running, lab_path, victims, draw):
    """A victim at a moment drawn; None where the grid ends before there is one, or hangs."""
    moment = time.monotonic() + draw.uniform(0, LATEST)
    while running.poll() is None and time.monotonic() < moment + LIMIT:
        if time.monotonic() > moment and (victim := victims(running, lab_path)):
            return draw.choice(victim)
        time.sleep(0.05)
    return None
