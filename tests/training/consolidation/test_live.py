"""What a live memory's sleep leaves in its folder: all of it or what was there before, whatever comes in between."""

import errno
import json
import os
import signal

import pytest
import torch

from hippo_core import files
from hippo_core.errors import LabError
from hippo_core.store.trace import Trace
from hippo_core.training.consolidation import live
from hippo_core.training.consolidation import sleep as sleeping
from hippo_core.training.consolidation.lineage import LINEAGE, Consolidation
from hippo_core.training.consolidation.update_rules.base import FILE
from tests.training.consolidation.conftest import TEXTS, keep_little
from tests.training.consolidation.test_ways import logits, weights_of

TRACES = [Trace("w", f"{number}", text, id=number) for number, text in enumerate(TEXTS, 1)]


@pytest.fixture(autouse=True)
def little_is_kept(monkeypatch):
    keep_little(monkeypatch, own=True)


def learn(lm, folder, traces=tuple(TRACES[:1]), update_rule="sparse", steps=1):
    list(live.learn(lm, traces, update_rule, steps, folder))


def asleep(lm, folder):
    update_rule = live.load_update(lm, folder)
    asleep_logits = logits(lm)
    update_rule.detach()
    return asleep_logits


@pytest.fixture
def slept(lm, tmp_path):
    """A folder with an earlier sleep in it, and what must not change: its answers, and the model."""
    learn(lm, tmp_path / "consolidated")
    before, weights = asleep(lm, tmp_path / "consolidated"), weights_of(lm)

    def unchanged():
        assert torch.equal(asleep(lm, tmp_path / "consolidated"), before)
        current = weights_of(lm)
        assert current.keys() == weights.keys() and all(torch.equal(weight, weights[name]) for name, weight in current.items())
        return True

    return tmp_path / "consolidated", unchanged


def no_number(model, batch):
    return batch.weights.sum() * torch.nan, torch.tensor(torch.nan)


def test_a_sleep_that_fails_says_why_and_leaves_the_earlier_one(lm, slept, monkeypatch):
    folder, unchanged = slept
    no_steps = {"steps": 0}, "steps is 1 or more, got 0"
    for wrong, why in (({"traces": ()}, "none of 0 traces"), ({"update_rule": "loar"}, "unknown way"), no_steps):
        with pytest.raises(LabError, match=why):
            learn(lm, folder, **wrong)
    with monkeypatch.context() as broken:
        broken.setattr(sleeping, "answer_loss", no_number)
        with pytest.raises(LabError, match="the loss of step 0 is nan: lower the rate"):
            learn(lm, folder, TRACES)
    assert unchanged()
    with monkeypatch.context() as broken:
        broken.setattr(files.os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            learn(lm, folder, TRACES)
    assert unchanged()
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [files.MARK, LINEAGE, json.loads((folder / LINEAGE).read_text())["folder"]]
    )


def full(_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("moment", ["training", "new_folder", "write_sealed", "clear"])
def test_a_kill_leaves_the_earlier_sleep_or_the_new_one_whole(lm, slept, moment):
    folder, unchanged = slept
    child = os.fork()
    if not child:
        if moment != "training":
            setattr(live, moment, killed)
        for done in live.learn(lm, TRACES, "sparse", 2, folder):
            if done and moment == "training":
                killed()
        os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    rehearsed = Consolidation(lm, folder).consolidated.sentences
    if moment == "clear":  # what is named is the new one, and the earlier one only takes room
        assert len(rehearsed) == 3
        assert asleep(lm, folder).isfinite().all()
    else:
        assert len(rehearsed) == 1 and unchanged()
    learn(lm, folder)
    assert len([path for path in folder.iterdir() if path.is_dir()]) == 1


def killed(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_damaged_sleep_is_refused_and_can_be_removed(lm, slept):
    folder, unchanged = slept
    lineage = (folder / LINEAGE).read_text()
    made = json.loads(lineage)
    weights = folder / made["folder"] / FILE
    intact, before = weights.read_bytes(), logits(lm)

    def refused(why, text=lineage, content=intact):
        (folder / LINEAGE).write_text(text)
        weights.write_bytes(content)
        with pytest.raises(LabError, match=why):
            live.load_update(lm, folder)
        assert torch.equal(logits(lm), before)

    def sealed(**other):
        files.write_sealed(folder / LINEAGE, {name: value for name, value in {**made, **other}.items() if name != "seal"})
        return (folder / LINEAGE).read_text()

    refused("its seal does not fit; sleep again", lineage[:-20])
    refused("its seal does not fit; sleep again", lineage.replace('"steps": 1', '"steps": 2'))
    refused("is damaged, or an earlier version's", sealed(recipe={}, folder=None))
    refused("was learnt by other with other weights than hippo-tiny has now", sealed(model={"name": "other", "weights": ""}))
    refused("is damaged: expected .* bytes, found .*; sleep again", content=intact[:-4])
    refused("is damaged: expected SHA-256", content=intact[:-1] + bytes([intact[-1] ^ 1]))
    weights.write_bytes(intact)
    (folder / LINEAGE).write_text(lineage)
    assert unchanged()
    Consolidation(lm, folder).remove()
    assert not folder.exists()


def test_memories_that_share_a_model_take_turns(lm, tmp_path):
    """The update of one is neither beneath nor in place of the other's."""
    traces_of, alone, answers, before, weights = ((TRACES[0],), TRACES[1:]), [], [], logits(lm), weights_of(lm)
    for traces in traces_of:
        learn(lm, tmp_path / "alone", traces, "lora")
        alone.append(asleep(lm, tmp_path / "alone"))
    memories = [Consolidation(lm, tmp_path / name) for name in "ab"]
    for memory, traces in zip(memories, traces_of, strict=True):
        list(memory.learn(traces, "lora", 1))
    for memory in (*memories, *memories):
        assert memory.fits("Who?")
        with memory.on():
            answers.append(logits(lm))
        assert torch.equal(logits(lm), before)
    assert not torch.equal(*alone) and all(map(torch.equal, answers, [*alone, *alone]))
    for memory in memories:
        memory.detach()
    left = weights_of(lm)
    assert left.keys() == weights.keys() and all(torch.equal(weight, weights[name]) for name, weight in left.items())


def test_a_model_that_is_busy_says_so(lm, tmp_path):
    first, second = (Consolidation(lm, tmp_path / name) for name in "ab")
    before, learning = logits(lm), first.learn(TRACES, "sparse", 2)
    assert [next(learning), next(learning)] == [0, 1]
    for ask in (first.fits, second.fits, lambda _: next(second.learn(TRACES, "lora", 1)), lambda _: first.detach()):
        with pytest.raises(LabError, match="hippo-tiny is busy: a sleep rehearses into it"):
            ask("Who?")
    learning.close()
    assert torch.equal(logits(lm), before) and not first.fits("Who?") and not second.fits("Who?")
    with first.on(), pytest.raises(LabError, match="hippo-tiny is busy: it answers as a sleep made it"):
        second.fits("Who?")


def content(folder):
    """Every file below a folder, through no link."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("what", ["a folder", "a link", "a hidden file"])
def test_what_the_lab_did_not_make_is_never_removed(lm, tmp_path, what):
    folder, own = tmp_path / "consolidated", tmp_path / "elsewhere"
    for folder_path in (folder / "mine", own):
        folder_path.mkdir(parents=True)
        (folder_path / "diary.txt").write_text("Monday")
    if what == "a link":
        (folder / "0123456789abcdef").symlink_to(own)
        files.mark(own)
    if what == "a hidden file":
        (folder / ".lineage.json.old").write_text("mine")
    before, consolidation = content(tmp_path), Consolidation(lm, folder)
    for change in (consolidation.tidy, lambda: learn(lm, folder), lambda: learn(lm, folder)):
        change()
        assert before.items() <= content(tmp_path).items()
    consolidation.remove()
    assert content(tmp_path) == before


@pytest.mark.parametrize("name", ["mine", "..", ".", "mine/0123456789abcdef", "../elsewhere"])
def test_a_sealed_lineage_that_names_a_folder_of_the_users_removes_none(lm, tmp_path, name):
    folder = tmp_path / "consolidated"
    for folder_path in (folder / "mine/0123456789abcdef", tmp_path / "elsewhere"):
        folder_path.mkdir(parents=True)
        (folder_path / "diary.txt").write_text("Monday")
    before = content(tmp_path)
    files.write_sealed(folder / LINEAGE, {"folder": name})
    Consolidation(lm, folder).remove()
    assert content(tmp_path) == before


def test_a_lineage_file_of_the_users_is_neither_read_nor_replaced_nor_removed(lm, tmp_path):
    (tmp_path / LINEAGE).write_text('{"of": "the Marlow family"}')
    before, consolidation = content(tmp_path), Consolidation(lm, tmp_path)
    consolidation.tidy()
    for call in (lambda: learn(lm, tmp_path), lambda: consolidation.fits("Who?"), lambda: consolidation.consolidated):
        with pytest.raises(LabError, match="was not written by the lab"):
            call()
    consolidation.remove()
    assert content(tmp_path) == before
