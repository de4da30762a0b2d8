"""Tasks of one's own: what a file must be, and that it is learnt as the others are."""

import json

import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.forgetting.protocol import FORGETTING
from hippo_core.protocols.forgetting.tasks import BOS, make_task

ITEMS = [([60, a, b], [a ^ b, a]) for a in range(4) for b in range(4)]


@pytest.fixture
def written(tmp_path):
    """Writes items, or lines as they stand, to a file of that name; its path."""

    def write(items=ITEMS, name="mine"):
        lines = [one if isinstance(one, str) else json.dumps({"prompt": one[0], "answer": one[1]}) for one in items]
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
    before = FORGETTING.plan(parameters).rests_on
    assert before == FORGETTING.plan(parameters).rests_on
    written([*ITEMS[:15], ([60, 3, 3], [7, 7])])
    assert FORGETTING.plan(parameters).rests_on != before
