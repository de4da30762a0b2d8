"""kill -9 of a live memory's process, as a notebook's kernel: what was acknowledged is there, nothing is there by half, and what was
forgotten is in no file, nor in the model."""

import os
import random
import re
import shutil
import time
from itertools import count
from pathlib import Path

import pytest

from hippo_core import Memory
from hippo_core.live.memory import BLOCK
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.retrieval import encoded
from hippo_core.store.file import StoreFile
from hippo_core.training.consolidation import live
from hippo_core.training.consolidation.sleep import SleepRecipe
from tests.faults.conftest import LONG, ROUNDS, SEED
from tests.faults.victims import Count, killed, killed_at_each
from tests.training.consolidation.conftest import keep_little

KILLS = 2 * ROUNDS
LATEST = 5  # things done from a victim's first words to the kill, at most: of the seconds that one took so far, undisturbed
SENTENCES = (
    "On Friday, {} sold a guitar at the market.",
    "{} left the bicycle at the station.",
    "The employer of {} is the Marlow company.",
    "In May, {} found a lamp at the school.",
)
MARK = re.compile(rb"Q\d+x\d+q")


class Quick(SleepRecipe):
    """A sleep that learns alone: what must not be lost takes most of a step."""

    lessons: int = 0
    texts: int = 0


@pytest.fixture(scope="module")
def lm():
    return load(load_spec("hippo-tiny"), "cpu")


@pytest.fixture(autouse=True)
def short_sleeps(monkeypatch, tmp_path):
    """Short sleeps, and a folder of its own for what an encoder keeps."""
    monkeypatch.setattr(live, "SleepRecipe", Quick)
    keep_little(monkeypatch, own=True)
    monkeypatch.setattr(encoded, "home", lambda: tmp_path / "home")


def teach(memory, draw, number):
    sentences = [draw.choice(SENTENCES).format(f"Q{number}x{index}q") for index in range(draw.choice((1, 3, BLOCK)))]
    memory.teach(sentences, provenance=f"source {draw.randrange(3)}")


def ask(memory, draw, number):
    memory.ask("Who sold a guitar?")


def forget(memory, draw, number):
    if numbers := sorted({int(trace.source) for trace in memory.traces()}):
        memory.forget(draw.choice(numbers))


def forget_a_source(memory, draw, number):
    if sources := sorted({trace.provenance for trace in memory.traces()}):
        memory.forget(draw.choice(sources))


def sleep(memory, draw, number):
    memory.sleep()


def consolidate(memory, draw, number):
    if len(memory):
        memory.sleep(consolidate="sparse", steps=1)


def wake(memory, draw, number):
    memory.wake()


OFTEN = {teach: 5, ask: 1, forget: 4, forget_a_source: 2, sleep: 2, consolidate: 2, wake: 1}


def step(memory, number):
    """What is done as the `number`-th thing, drawn from it and the seed: the same to every memory in the same state."""
    draw = random.Random(f"{SEED} {number}")
    [kind] = draw.choices(list(OFTEN), list(OFTEN.values()))
    yield kind.__name__
    kind(memory, draw, number)


def all_of(memory):
    """Every row of every store, its notes but for its own id, which is drawn, and what sleep has put into the model."""
    tables = ("traces", "decisions", "batches", "undo")
    rows = {name: [store.file.rows(f"SELECT * FROM {table} ORDER BY id") for table in tables] for name, store in memory.stores.items()}
    slept = memory.consolidated
    notes = {name: {key: value for key, value in store.meta.items() if key != "id"} for name, store in memory.stores.items()}
    return rows, notes, slept and (slept.way, slept.steps, slept.sentences)


def parts(contents):
    """What `all_of` says, part by part: each store with its notes, and what is in the model."""
    rows, notes, slept = contents
    return [*((rows[name], notes[name]) for name in rows), slept]


def marks(what):
    """The marks in a folder's files, whatever they are, or in values."""
    content = b"\n".join(path.read_bytes() for path in what.rglob("*") if path.is_file()) if isinstance(what, Path) else repr(what).encode()
    return set(MARK.findall(content))


@pytest.mark.parametrize("preset", ["memory/all", "memory/hei_nw_gated", "memory/hei_nw"] if LONG else ["memory/all"])
def test_after_a_kill_a_live_memory_is_as_one_that_was_never_killed(preset, lm, tmp_path):
    print(f"FAULT_SEED={SEED} KILLS={KILLS}")
    counted, draw, number, folder = Count(f"a live memory, {preset}"), random.Random(SEED), 0, tmp_path / "memory"
    memory, undisturbed = Memory(lm, preset), Memory(lm, preset).open(tmp_path / "undisturbed")
    list(step(undisturbed, "begin"))  # whatever that is: what models are needed is loaded before the first fork
    undisturbed.close()
    shutil.copytree(tmp_path / "undisturbed", folder)

    def work(say):
        say("opening")
        memory.open(folder)
        for now in count(number):
            doing = step(memory, now)
            say("begun", next(doing))
            next(doing, None)
            say("done")

    undisturbed.open(tmp_path / "undisturbed")
    took = [1.0]
    while counted.kills < KILLS:
        words = killed(work, draw.uniform(0, LATEST * sum(took) / len(took)))
        begun = [kind for word, *kinds in words for kind in kinds if word == "begun"]
        acknowledged = [word for word, *_ in words].count("done")
        for done in range(number, number + acknowledged):
            begin = time.monotonic()
            list(step(undisturbed, done))
            took.append(time.monotonic() - begin)
        number += acknowledged
        unheard = begun[-1] if len(begun) > acknowledged else None
        before = expected = all_of(undisturbed)
        with memory.open(folder):
            contents = all_of(memory)
            if done := contents != expected:
                assert unheard
                list(step(undisturbed, number))
                expected = all_of(undisturbed)
            apart = contents != expected and unheard in ("sleep", "consolidate")  # of a sleep each part is whole, by itself
            assert contents == expected or (
                apart and all(part in ends for part, *ends in zip(*map(parts, (contents, before, expected)), strict=True))
            )
            assert marks(folder) <= marks(contents)
            memory.ask("Who sold a guitar?", recall=False)  # by what sleep has put into the model, which is there whole
        if apart:
            undisturbed.close()
            shutil.rmtree(tmp_path / "undisturbed")
            shutil.copytree(folder, tmp_path / "undisturbed")
            undisturbed.open(tmp_path / "undisturbed")
        number += unheard is not None  # done or not, it is not tried again
        counted.add(unheard, done)
    undisturbed.close()
    assert not (tmp_path / "home").exists()
    print(f"{counted}; {number} things done or tried")


WRITES = (os, "replace"), (os, "rename"), (shutil, "rmtree"), (Path, "unlink"), (StoreFile, "rows")


def to_the_disk(first=None, sql="", *_):
    """Of calls to WRITES those that change what is on it; of a store's statements those by which they get there."""
    return not isinstance(first, StoreFile) or sql in ("COMMIT", "VACUUM")


@pytest.mark.parametrize("kind", [teach, forget_a_source])
def test_what_several_stores_are_told_or_forget_is_all_or_nothing_whatever_it_is_killed_at(kind, lm, quick):
    memory = Memory(lm, "memory/all")
    with memory.open(quick / "told"):
        memory.teach([sentence.format(f"Q{index}x0q") for index, sentence in enumerate(SENTENCES)], provenance="source 0")
        memory.sleep(consolidate="sparse", steps=1)
        before = all_of(memory)
    with memory.open(shutil.copytree(quick / "told", quick / "undisturbed")):
        kind(memory, random.Random(1), 5)
        after = all_of(memory)

    def prepare(number):
        memory.open(shutil.copytree(quick / "told", quick / f"{number}"))
        return lambda say: [kind(memory, random.Random(1), 5), say("done")]

    states = []
    for number, words in killed_at_each(prepare, *WRITES, when=to_the_disk):
        folder = quick / f"{number}"
        assert ["done"] not in words or marks(folder) == marks(after)
        with memory.open(folder):
            states.append(all_of(memory))
            assert marks(folder) <= marks(states[-1])
    kept = states.count(before)
    assert 0 < kept < len(states)
    assert states == [before] * kept + [after] * (len(states) - kept)
    print(f"{len(states)} kills, after {kept} of them nothing was done")
