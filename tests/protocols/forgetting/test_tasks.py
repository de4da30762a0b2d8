"""Tasks are enumerated whole and split in halves; the loss is at the places of answers alone."""

import numpy as np
import pytest
import torch

from hippo_core.errors import LabError
from hippo_core.protocols.forgetting.tasks import BOS, CUES, EQ, FORMAL, MODULAR, SEP, Corpus, SequenceTask, make_task

P = 97


def row(name, place, **told):
    return make_task(name, **told).tokens[place].tolist()


def test_layouts_and_answers_by_hand():
    bits = [0, 0, 0, 0, 1, 0, 1, 1]  # item 11
    assert row("parity", 11) == [CUES["parity"], *bits, EQ, 1]
    assert row("copy", 11) == [CUES["copy"], *bits, SEP, *bits]
    assert row("reverse", 11) == [CUES["reverse"], *bits, SEP, *reversed(bits)]
    assert row("majority", 0b111100010) == [CUES["majority"], 1, 1, 1, 1, 0, 0, 0, 1, 0, EQ, 1]
    assert row("majority", 0b111100000) == [CUES["majority"], 1, 1, 1, 1, 0, 0, 0, 0, 0, EQ, 0]


@pytest.mark.parametrize(("name", "answer"), [("add", 5), ("sub", 2 * 50 - 95 + P - 3), ("mul", 50 * 52 % P), ("squares", 5204 % P)])
def test_arithmetic_by_hand(name, answer):
    expected = {"add": 102 % P, "sub": -2 % P}.get(name, answer)
    assert row(name, 50 * P + 52) == [BOS, 50, CUES[name], 52, EQ, expected]


@pytest.mark.parametrize(("name", "items", "first"), [("parity", 256, 9), ("copy", 256, 9), ("majority", 512, 10), ("mul", 9409, 4)])
def test_every_item_is_there_once_and_in_one_split(name, items, first):
    task = make_task(name)
    assert len({tuple(row) for row in task.tokens.tolist()}) == items
    assert sorted(np.concatenate([task.train, task.val, task.test])) == list(range(items))
    assert len(task.train) == items // 2 and abs(len(task.val) - len(task.test)) <= 1
    assert task.first == first  # -p of the protocol


def test_the_split_is_that_of_seed_42_for_all_tasks_of_a_size():
    assert make_task("copy").train.tolist() == np.random.RandomState(42).permutation(256)[:128].tolist()
    assert make_task("copy").test.tolist() == make_task("reverse").test.tolist()


def test_a_subset_is_learnt_from_and_the_same_items_are_held_out():
    whole, part = make_task("copy"), make_task("copy", subset=0.25)
    assert part.train.tolist() == whole.train[:32].tolist()
    assert part.test.tolist() == whole.test.tolist() and part.val.tolist() == whole.val.tolist()


def test_each_task_has_a_cue_of_its_own_but_in_the_control():
    for family in (FORMAL, MODULAR):
        assert len({make_task(name).cue for name in family}) == len(family)
        assert len({make_task(name, "one_token").cue for name in family}) == 1
    own, shared = make_task("copy").tokens, make_task("copy", "one_token").tokens
    assert (own[:, 1:] == shared[:, 1:]).all()


def test_shuffled_answers_are_the_same_answers_of_other_items():
    true, shuffled = make_task("copy"), make_task("copy", "shuffled")
    assert (true.tokens[:, :10] == shuffled.tokens[:, :10]).all()
    answers = [sorted(map(tuple, task.tokens[:, 10:].tolist())) for task in (true, shuffled)]
    assert answers[0] == answers[1] and (true.tokens != shuffled.tokens).any()


def test_a_batch_predicts_answers_and_nothing_else():
    corpus = Corpus([make_task("copy"), make_task("parity")])
    copied, odd = 11, 256 + 11
    batch = corpus.batch(torch.tensor([copied, odd, -1]))
    assert batch.at.tolist()[:2] == [list(range(9, 17)), [9] * 8]
    assert batch.answers[0].tolist() == make_task("copy").tokens[11, 10:].tolist() and batch.answers[1, 0] == 1
    assert batch.weights.sum(1).tolist() == [1, 1, 0] and batch.weights[1].tolist() == [1] + [0] * 7
    assert corpus.batch(torch.tensor([odd])).tokens.shape == (1, 10)  # what comes after is not run


def test_loss_positions_outside_the_sequence_are_refused():
    rows = np.zeros((4, 6), dtype=np.int64)
    some = np.arange(2)
    with pytest.raises(LabError, match="predicted at place 5, its sequence has such places from 0 to 4"):
        SequenceTask("mine", rows, 0, 5, some, some, some)


def test_an_unknown_task_is_one_line_with_the_legal_ones():
    with pytest.raises(LabError, match=r"unknown task 'dyck'; legal: PATH\.jsonl, add, copy"):
        make_task("dyck")
