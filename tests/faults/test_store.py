"""kill -9 and a full disk while a store is written, rehearsed and deleted from: what was acknowledged is there, nothing is there by half,
and what was deleted is never back, in no file."""

import os
import random
import re
import shutil
import subprocess
import sys
from itertools import count

import pytest

from hippo_core.files import root
from hippo_core.methods.base import Memory, MemorySettings
from hippo_core.store import Identity, TraceStore
from hippo_core.store.codec import Undecoded
from hippo_core.store.file import StoreFile
from hippo_core.store.trace import Decision, Statement, Trace
from tests.faults.conftest import ROUNDS, SEED
from tests.faults.mounts import fill, mounted, small_disk
from tests.faults.victims import Count, killed, killed_at_each
from tests.store.made import IDENTITY

KILLS = 10 * ROUNDS
SIZES = (1, 7, 100)  # traces of a batch
LATEST = 0.2  # seconds from a victim's first words to the kill, at most
MARKED = Identity("made", "0" * 64, "hei_nw", Undecoded({}))  # payloads are bytes, in which a mark can be looked for
MARK = re.compile(rb"<(\d+)/(\d+)>")
WRITER = Memory(None, MemorySettings())


TEACHER = """
import os, sys
from dataclasses import replace
from hippo_core.store import TraceStore
from hippo_core.store.file import StoreFile
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


def acknowledged_of(lines):
    """Sizes of the batches that were acknowledged, by number, and how many replays were."""
    words = [line.split() for line in lines if line.endswith("\n")]
    appended = {int(number): int(size) for kind, number, size in words if kind == "told"}
    return appended, max((int(number) for kind, number, _ in words if kind == "replayed"), default=0)


def assert_complete(store, appended, replays):
    """What was acknowledged is there; of what was not, one batch at most, and that one whole. Uses and decay are those of whole replays."""
    traces_by_number = {}
    for trace in store.traces():
        traces_by_number.setdefault(trace.time, []).append(trace)
    assert set(appended) <= set(traces_by_number)
    assert len(set(traces_by_number) - set(appended)) <= 1
    assert {number: len(traces_by_number[number]) for number in appended} == appended
    assert [decision.trace_id for decision in store.decisions()] == [trace.id for trace in store.traces()]
    done = len(store.history())
    assert replays <= done <= replays + 1
    for number, traces in traces_by_number.items():
        assert len({(trace.uses, trace.salience) for trace in traces}) == 1
        assert [trace.source for trace in traces] == [f"{number}/{index}" for index in range(len(traces))]


def append_some(store, draw, number):
    """Traces with a mark in their words and one in their payload, and what was decided about them."""
    world, provenance, size = f"w{number % 3}", f"source {draw.randrange(4)}", draw.choice(SIZES)
    traces = []
    for index in range(size):
        mark = f"<{number}/{index}>"
        words, payload = f"{'a fact ' * 20}{mark}", f"vector {mark}".encode() * 4
        traces.append(Trace(world, mark, words, provenance=provenance, time=number, payload=payload))
    with store.together():
        ids, about = store.append(traces), {"provenance": provenance}
        statements = [Statement(trace.source, world, trace.text, number) for trace in traces]
        store.log([Decision(trace, 1.0, {}, {}, "insert", own, about) for trace, own in zip(statements, ids, strict=True)])


def replay(store, draw, number):
    """Uses, decay, other payloads, in one batch."""
    replayed = some(store, draw)
    with store.maintenance("replay"):
        store.use([trace.id for trace in replayed])
        store.decay(0.01)
        store.update_payloads({trace.id: trace.payload + b"." for trace in replayed})


def forget(store, draw, number):
    """Remove some traces for good."""
    WRITER.delete(store, [trace.id for trace in some(store, draw)])


def forget_a_source(store, draw, number):
    """Remove all that came from one source for good."""
    WRITER.delete(store, provenance=f"source {draw.randrange(4)}")


def forget_a_world(store, draw, number):
    store.erase_world(f"w{draw.randrange(3)}")
    store.compact()


def delete(store, draw, number):
    """Some become tombstones, which can be brought back until they are purged."""
    store.delete([trace.id for trace in some(store, draw)])


def evict(store, draw, number):
    store.evict(300)


def rollback(store, draw, number):
    if store.history():
        store.rollback()


def purge(store, draw, number):
    store.purge()


def some(store, draw):
    traces = store.traces()
    return draw.sample(traces, min(len(traces), draw.choice((1, 5, 50))))


OFTEN = {append_some: 6, replay: 3, forget: 3, forget_a_source: 2, forget_a_world: 1, delete: 2, evict: 1, rollback: 1, purge: 1}


def step(store, number):
    """What is done as the `number`-th thing, drawn from it and the seed: the same to every store in the same state."""
    draw = random.Random(f"{SEED} {number}")
    [kind] = draw.choices(list(OFTEN), list(OFTEN.values()))
    yield kind.__name__
    kind(store, draw, number)


def all_of(store):
    """Every row of a store's file, tombstones and what can be undone among them."""
    return [store.file.rows(f"SELECT * FROM {table} ORDER BY id") for table in ("traces", "decisions", "batches", "undo")]


def marks(content):
    """The marks in bytes, or in rows."""
    return {tuple(map(int, mark)) for mark in MARK.findall(content if isinstance(content, bytes) else repr(content).encode())}


def on_the_disk(folder):
    """The marks in all that lies in a folder, whatever the file."""
    return marks(b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file()))


def left_in_a_close(folder):
    """Whether a closing writer was killed as it went over to another journal: a reader is told to open the store for writing first."""
    return any(folder.rglob("*-journal"))


def test_after_a_kill_a_store_is_as_one_that_was_never_killed(tmp_path, quick):
    print(f"FAULT_SEED={SEED} KILLS={KILLS}")
    counted, draw, number = Count("a store"), random.Random(SEED), 0
    left, untold = set(), set()  # marks that are on the disk until somebody writes, and the numbers of what may never have been told
    TraceStore.create(tmp_path, "s1", MARKED).close()

    def work(say):
        for now in count(number):
            if now % 8 == 0 or now == number:  # it is closed and opened on the way too
                say("opening")
                store = TraceStore.open(tmp_path, "s1", MARKED)
            doing = step(store, now)
            say("begun", next(doing))
            next(doing, None)
            say("done")
            if now % 8 == 7:
                store.close()

    with TraceStore.create(quick, "s1", MARKED) as undisturbed:
        while counted.kills < KILLS:
            words = killed(work, draw.uniform(0, LATEST))
            begun = [kind for word, *kinds in words for kind in kinds if word == "begun"]
            acknowledged = [word for word, *_ in words].count("done")
            for done in range(number, number + acknowledged):
                assert len(list(step(undisturbed, done))) == 1
            number += acknowledged
            unheard = begun[-1] if len(begun) > acknowledged else None
            expected, there = all_of(undisturbed), on_the_disk(tmp_path)
            may = marks(expected) | {mark for mark in left if not begun or mark[0] in untold}
            assert {mark for mark in there if mark[0] != number} <= may  # what was acknowledged as removed is in no file, opened or not
            writes = draw.random() < 0.5 or left_in_a_close(tmp_path)  # who writes next puts things right: this process, or a victim
            with TraceStore.open(tmp_path, "s1", MARKED, read_only=not writes) as store:
                contents = all_of(store)
            if done := contents != expected:
                assert unheard
                list(step(undisturbed, number))
                expected = all_of(undisturbed)
            assert contents == expected
            assert not writes or on_the_disk(tmp_path) == marks(expected)
            left, untold = (set(), set()) if writes else (there, untold | {number})
            number += unheard is not None  # done or not, it is not tried again
            counted.add(unheard, done)
    print(f"{counted}; {number} things done or tried")


@pytest.mark.parametrize("kind", [forget, forget_a_world])
def test_a_deletion_is_all_or_nothing_whatever_statement_it_is_killed_at(kind, quick):
    with TraceStore.create(quick / "told", "s1", MARKED) as store:
        for number in range(3):
            append_some(store, random.Random(f"{number}"), number)
        store.update_payloads({trace.id: trace.payload + b"." for trace in store.traces()})
        store.delete([1, 2])
        before = all_of(store)
        with store.copy(quick / "undisturbed") as undisturbed:
            kind(undisturbed, random.Random(2), 4)
            after = all_of(undisturbed)
    assert {trace[0] for trace in after[0]} < {trace[0] for trace in before[0]}
    assert not (marks(before[0]) - marks(after[0])) & marks(after)  # nor words and payloads of what is gone, in what can be undone

    def prepare(number):
        store = TraceStore.open(shutil.copytree(quick / "told", quick / f"{number}"), "s1", MARKED)
        store.file.rows("PRAGMA secure_delete = OFF")  # which some builds of SQLite have on, so that they overwrite what is deleted
        return lambda say: [kind(store, random.Random(2), 4), say("done")]

    states = []
    for number, words in killed_at_each(prepare, (StoreFile, "rows")):
        folder = quick / f"{number}"
        assert ["done"] not in words or on_the_disk(folder) == marks(after)
        with TraceStore.open(folder, "s1", MARKED) as store:
            states.append(all_of(store))
            assert on_the_disk(folder) == marks(states[-1])
    kept = states.count(before)
    assert 0 < kept < len(states)
    assert states == [before] * kept + [after] * (len(states) - kept)


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
    appended, replays = acknowledged_of(lines.splitlines(keepends=True))
    with TraceStore.open(copy, "s1", IDENTITY) as store:
        assert_complete(store, appended, replays)
        assert len(appended) > 0
