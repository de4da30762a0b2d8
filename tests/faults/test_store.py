"""kill -9 and a full disk while a store is written: what was acknowledged is there, and nothing is there by half."""

import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter

from hippo_core.files import root
from hippo_core.store import TraceStore
from tests.faults.conftest import ROUNDS, SEED
from tests.faults.mounts import fill, mounted, small_disk
from tests.store.made import IDENTITY

KILLS = 5 * ROUNDS
SIZES = (1, 7, 300)  # traces of a batch
LATEST = 0.3  # seconds from the first acknowledgement to the kill, at most
TEACHER = """
import os, sys
from dataclasses import replace
from hippo_core.store import TraceStore
from hippo_core.store.trace import Decision, Statement
from tests.store.made import IDENTITY, trace

folder, size = sys.argv[1], int(sys.argv[2])
with TraceStore.open(folder, "s1", IDENTITY) as store:
    batch = 1 + max((found.time for found in store.traces()), default=0)
    while True:
        with store.together():
            told = [trace(f"{batch}/{place}", text="a fact " * 20, time=batch, salience=1.0) for place in range(size)]
            ids = store.append(told)
            store.log([Decision(Statement(f.source, f.world, f.text, batch), 1.0, {}, {}, "insert", i) for f, i in zip(told, ids)])
        print("told", batch, size, flush=True)
        with store.maintenance("replay"):
            store.use(ids)
            store.decay(0.01)
        print("replayed", len(store.history()), 0, flush=True)
        batch += 1
"""


def teacher(folder, size, before=()):
    """A process that tells batches of so many traces, rehearses each, and says what the disk has."""
    command, around = [*before, sys.executable, "-c", TEACHER, str(folder), str(size)], {**os.environ, "PYTHONPATH": str(root())}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=root(), stdout=pipe, stderr=pipe, text=True, env=around)


def said(lines):
    """Sizes of the batches that were acknowledged, by number, and how many replays were."""
    words = [line.split() for line in lines if line.endswith("\n")]
    told = {int(number): int(size) for kind, number, size in words if kind == "told"}
    return told, max((int(number) for kind, number, _ in words if kind == "replayed"), default=0)


def assert_whole(store, told, replays):
    """What was acknowledged is there; of what was not, one batch at most, and that one whole. Uses and decay are those of whole replays."""
    found = {}
    for trace in store.traces():
        found.setdefault(trace.time, []).append(trace)
    assert set(told) <= set(found)
    assert len(set(found) - set(told)) <= 1
    assert {number: len(found[number]) for number in told} == told
    assert [decision.trace_id for decision in store.decisions()] == [trace.id for trace in store.traces()]
    done = len(store.history())
    assert replays <= done <= replays + 1
    for number, traces in found.items():
        assert len({(trace.uses, trace.salience) for trace in traces}) == 1
        assert [trace.source for trace in traces] == [f"{number}/{place}" for place in range(len(traces))]


def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path):
    print(f"FAULT_SEED={SEED} KILLS={KILLS}")
    draw, told, replays, unheard = random.Random(SEED), {}, 0, 0
    TraceStore.create(tmp_path, "s1", IDENTITY).close()
    for number in range(KILLS):
        running = teacher(tmp_path, SIZES[number % len(SIZES)])
        first = running.stdout.readline()
        time.sleep(draw.uniform(0, LATEST))
        running.kill()
        rest, trouble = running.communicate(timeout=60)
        assert first, trouble
        batches, done = said([first, *rest.splitlines(keepends=True)])
        told, replays = {**told, **batches}, max(replays, done)
        with TraceStore.open(tmp_path, "s1", IDENTITY) as store:
            assert_whole(store, told, replays)
            unheard += store.size() > sum(told.values())
            told, replays = Counter(trace.time for trace in store.traces()), len(store.history())
    print(
        f"{KILLS} kills, {unheard} of them after a commit that was not yet acknowledged; {len(told)} batches, {sum(told.values())} traces"
    )


def test_a_full_disk_keeps_what_was_acknowledged(tmp_path):
    disk, copy = tmp_path / "disk", tmp_path / "copy"
    TraceStore.create(copy, "s1", IDENTITY).close()
    with mounted(small_disk(disk, 2048), f"cp -r {copy}/hei_nw {disk}") as (before, namespace):
        seen = namespace / disk.relative_to("/")
        fill(seen, leave=600)
        running = teacher(disk, 50, before)
        lines, trouble = running.communicate(timeout=120)
        assert running.returncode == 1
        assert trouble.splitlines()[-1].startswith("OSError: [Errno 28] No space left on device")
        shutil.copytree(seen / "hei_nw", copy / "hei_nw", dirs_exist_ok=True)
    told, replays = said(lines.splitlines(keepends=True))
    with TraceStore.open(copy, "s1", IDENTITY) as store:
        assert_whole(store, told, replays)
        assert len(told) > 0
