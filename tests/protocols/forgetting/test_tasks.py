"""Tasks are enumerated whole and split in halves; the loss is at the places of answers alone."""

import json

import numpy as np
import pytest
import torch

from hippo_core.errors import LabError
from hippo_core.protocols.forgetting.parameters import NAMES
from hippo_core.protocols.forgetting.protocol import FORGETTING
from hippo_core.protocols.forgetting.tasks import BOS, CUES, EQ, FORMAL, MODULAR, SEP, Corpus, make_task

P = 97


def row(name, position, **settings):
    return make_task(name, **settings).tokens[position].tolist()


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
    full, part = make_task("copy"), make_task("copy", subset=0.25)
    assert part.train.tolist() == full.train[:32].tolist()
    assert part.test.tolist() == full.test.tolist() and part.val.tolist() == full.val.tolist()


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


def test_an_unknown_task_is_one_line_with_the_legal_ones():
    with pytest.raises(LabError, match=r"unknown task 'dyck'; legal: PATH\.jsonl, add, copy"):
        make_task("dyck")
    with pytest.raises(LabError, match=r"unknown a grid: task 'dyck'; legal: PATH\.jsonl, add, copy"):
        FORGETTING.check({"tasks": ["copy", "dyck"]}, "a grid")  # before a kernel starts
    assert set(NAMES) == CUES.keys()


ITEMS = [([60, a, b], [a ^ b, a]) for a in range(4) for b in range(4)]


@pytest.fixture
def written(tmp_path):
    """Writes items, or lines as they stand, to a file of that name; its path."""

    def write(items=ITEMS, name="mine"):
        lines = [item if isinstance(item, str) else json.dumps({"prompt": item[0], "answer": item[1]}) for item in items]
        path = tmp_path / f"{name}.jsonl"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return str(path)

    return write


def test_a_file_is_a_task_with_its_own_cue(written):
    task = make_task(written())
    assert (task.name, task.cue, task.first, task.answers) == ("mine", 60, 2, 2)
    assert task.tokens[6].tolist() == [60, 1, 2, 3, 1]
    assert sorted([*task.train, *task.val, *task.test]) == list(range(16)) and len(task.train) == 8
    assert make_task(written(), "one_token").cue == BOS
    assert make_task(written(), "shuffled").tokens.tolist() != task.tokens.tolist()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ("no json", r"mine.jsonl:5: expected \{"),
        ('{"prompt": [60, 1, 0.5], "answer": [1, 2]}', "mine.jsonl:5.*prompt.2"),
        ('{"prompt": [60, 1, -1], "answer": [1, 2]}', "mine.jsonl:5.*prompt.2"),
        ('{"prompt": [60, 1, 9], "answer": []}', "mine.jsonl:5.*answer"),
        (([60, 1, 9, 9], [1, 2]), "mine.jsonl:5: expected a prompt of length 3, as in the first item, got 4"),
        (([60, 1, 9], [1]), "an answer of length 2.*got 1"),
        (([61, 1, 9], [1, 2]), "the cue 60.*got 61"),
        (([60, 0, 0], [9, 9]), "mine.jsonl:5: the prompt of line 1 again"),
    ],
)
def test_a_wrong_line_is_named(written, changed, message):
    with pytest.raises(LabError, match=message):
        make_task(written([*ITEMS[:4], changed, *ITEMS[5:]]))


def test_too_few_items_and_no_file(written, tmp_path):
    with pytest.raises(LabError, match="expected at least 8 items, got 7"):
        make_task(written(ITEMS[:7]))
    with pytest.raises(LabError, match=r"no such task file: nowhere\.jsonl"):
        FORGETTING.check({"tasks": ["nowhere.jsonl"]}, "here")
    with pytest.raises(LabError, match="expected different tasks"):
        FORGETTING.check({"tasks": [written(), str(tmp_path / "folder" / "mine.jsonl")]}, "here")


def test_tokens_that_the_model_does_not_know_are_refused(written, course):
    with pytest.raises(LabError, match="task mine has the token 400, preset tiny knows 0 to 104"):
        course(tasks=[written([*ITEMS[:15], ([60, 3, 400], [1, 2])])])


def test_it_is_learnt_and_its_content_decides_which_cell_it_is(written, course):
    rows = course(tasks=[written(), "majority"], steps=5).run()
    assert {row["task"] for row in rows} == {"mine", "majority"}
    parameters = FORGETTING.check({"tasks": [written()]}, "here")
    before = FORGETTING.plan(parameters).inputs
    assert before == FORGETTING.plan(parameters).inputs
    written([*ITEMS[:15], ([60, 3, 3], [7, 7])])
    assert FORGETTING.plan(parameters).inputs != before
