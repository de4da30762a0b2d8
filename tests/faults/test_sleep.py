"""kill -9 of a sleep at any moment: what is in the model is an earlier sleep's or its own, whole; and it goes on to the undisturbed end."""

import json
import random
import shutil
import signal
import time
from functools import cache
from itertools import count

import pytest

from hippo_core.files import new_folder, sha256
from hippo_core.store.trace import Trace
from hippo_core.training.consolidation import live
from hippo_core.training.consolidation.lineage import LINEAGE
from hippo_core.training.consolidation.sleep import Sleep, shuffled
from hippo_core.training.consolidation.update_rules import make_update_rule
from hippo_core.training.consolidation.update_rules.base import FILE
from hippo_core.training.train import train
from tests.faults.conftest import LONG, ROUNDS, SEED
from tests.faults.test_memory import Quick, lm, short_sleeps  # noqa: F401
from tests.faults.victims import Count, killed
from tests.training.consolidation.conftest import TEXTS

KILLS = 3 * ROUNDS
LATEST = 1.5  # sleeps from a victim's first words to the kill, at most: of the seconds that the latest undisturbed one took
WRITING = 0.1  # seconds from the end of the training to the kill, at most
TRACES = [Trace("w", f"{number}", text, id=number) for number, text in enumerate(TEXTS, 1)]
rare = pytest.mark.skipif(not LONG, reason="`make test-faults` kills sleeps at random, tests/training/consolidation one at each write")


def learn(lm, number, folder, trained=lambda: None):  # noqa: F811
    """The `number`-th sleep: traces, way and steps are drawn from it and the seed. `trained` is called before anything is written."""
    draw = random.Random(f"{SEED} {number}")
    traces, update_rule, steps = draw.sample(TRACES, draw.choice((1, 2, 3))), draw.choice(("lora", "sparse")), draw.choice((1, 2, 3))
    for done in live.learn(lm, traces, update_rule, steps, folder):
        if done == steps:
            trained()


def state(folder):
    """What a sleep left: the checksum of its weights, and what it says of itself."""
    if not (folder / LINEAGE).exists():
        return None
    lineage = json.loads((folder / LINEAGE).read_text())
    del lineage["at"], lineage["seal"]  # which is of the time and the folder, too
    return sha256(folder / lineage.pop("folder") / FILE), lineage


@rare
def test_a_killed_sleep_leaves_the_earlier_one_or_its_own_whole(lm, tmp_path, quick):  # noqa: F811
    print(f"FAULT_SEED={SEED} KILLS={KILLS}")
    counted, draw, number, folder, took = Count("a live sleep"), random.Random(SEED), 0, tmp_path / "consolidated", [0.0]

    @cache
    def undisturbed(number):
        begin = time.monotonic()
        learn(lm, number, quick / f"{number}")
        took.append(time.monotonic() - begin)
        return state(quick / f"{number}")

    def work(say):
        for now in count(number):
            if not late:
                say("begun", "sleep")
            learn(lm, now, folder, lambda: say("trained"))
            say("done")

    before = undisturbed(0)
    learn(lm, 0, folder)
    while counted.kills < KILLS:
        number, late = number + 1, draw.random() < 0.5  # half of the kills come as what was learnt is written
        acknowledged = [word for word, *_ in killed(work, draw.uniform(0, WRITING if late else LATEST * took[-1]))].count("done")
        number += acknowledged
        before = undisturbed(number - 1) if acknowledged else before
        current = state(folder)
        if done := current != before:
            before = undisturbed(number)
        assert current == before
        update_rule = live.load_update(lm, folder)
        update_rule.detach()
        counted.add("sleep", done)
    learn(lm, number, folder)
    assert state(folder) == undisturbed(number)
    assert len([path for path in folder.iterdir() if path.is_dir()]) == 1
    print(counted)


@rare
def test_a_sleep_that_is_killed_goes_on_to_the_undisturbed_end(lm, tmp_path):  # noqa: F811
    print(f"FAULT_SEED={SEED} KILLS={KILLS}")
    counted, draw, number, ends = Count("a sleep with checkpoints"), random.Random(f"{SEED} going on"), 1, 0

    def train_to_end(number, checkpoint_dir, out):
        update_rule = make_update_rule("lora", lm, 4, 2)
        try:
            recipe = Quick(way="lora", rank=4, first_block=2, steps=4, questions=8, seed=number)
            trained = Sleep(recipe, lm, update_rule, TRACES, shuffled(len(TRACES), f"{SEED} {number}"))
            train(trained, checkpoint_dir, lambda _: None, every=1)
            with new_folder(out) as new:
                update_rule.save(new)
        finally:
            update_rule.detach()

    def work(say):
        say("begun", "sleep")
        train_to_end(number, tmp_path / "workshop", tmp_path / f"{number}")
        say("done")
        signal.pause()

    def undisturbed(number):
        out, begin = tmp_path / f"undisturbed {number}", time.monotonic()
        train_to_end(number, tmp_path / f"workshop {number}", out)
        return sha256(out / FILE), time.monotonic() - begin

    _, took = undisturbed(0)
    while counted.kills < KILLS:
        acknowledged = ["done"] in killed(work, draw.uniform(0, LATEST * took))
        counted.add(None if acknowledged else "sleep", (tmp_path / f"{number}").exists() and not acknowledged)
        if (tmp_path / f"{number}").exists():
            end, took = undisturbed(number)
            assert sha256(tmp_path / f"{number}" / FILE) == end
            shutil.rmtree(tmp_path / "workshop")
            number, ends = number + 1, ends + 1
    print(f"{counted}; {ends} ends, each with the weights of an undisturbed one")
