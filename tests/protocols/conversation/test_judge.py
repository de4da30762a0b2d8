"""The judge: a failure is a missing value, and its numbers are shown only where people who rate blind agree."""

import json

import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.conversation.aggregate import aggregate
from hippo_core.protocols.conversation.judge import judge, read_ratings, sample
from hippo_core.protocols.conversation.lines import read_lines
from hippo_core.protocols.conversation.rating import rate
from tests.protocols.conversation.parrot import Parrot, evaluate, execute
from tests.protocols.conversation.test_commands import table


@pytest.fixture
def scored(dialogues, parrot, tmp_path):
    execute(tmp_path / "raw.jsonl", dialogues, ("full", "none"), parrot)
    return evaluate(tmp_path / "raw.jsonl", dialogues, tmp_path / "scored.jsonl")


def by_length(prompt):
    """Better for longer answers, so that the ratings vary."""
    answer = prompt.split("<answer>")[1].partition("</answer>")[0]
    return json.dumps({"coherence": min(5, len(answer) // 3), "fluency": 3, "reasoning": f"{len(answer)} letters"})


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ('{"coherence": 4, "fluency": 5}', {"coherence": 4, "fluency": 5, "reasoning": ""}),
        (
            'Well: {"coherence": 4, "fluency": 5, "reasoning": "fits {so far}"} done',
            {"coherence": 4, "fluency": 5, "reasoning": "fits {so far}"},
        ),
        ('{"coherence": 6, "fluency": 5}', None),
        ('{"coherence": 4.5, "fluency": 5}', None),
        ('{"coherence": true, "fluency": 5}', None),
        ('{"coherence": 4}', None),
        ("4 and 5", None),
        ('{"coherence": 4, "flu', None),
    ],
)
def test_only_whole_numbers_from_1_to_5_are_ratings(text, due):
    assert read_ratings(text) == due


def test_a_judgement_that_fails_is_missing_and_is_tried_again(scored, dialogues, tmp_path):
    path = tmp_path / "judged.jsonl"
    assert judge(scored, dialogues, Parrot(fails=(2,), says=by_length), path) == 1
    assert judge(scored[:3], dialogues, Parrot(says=lambda prompt: "fine!"), path) == 1
    failed = [row for row in read_lines(path) if row["error"]]
    assert len(failed) == 2 and {row["coherence"] for row in failed} == {None} and failed[0]["answer_id"] == scored[1]["answer_id"]
    last = Parrot(says=by_length)
    assert judge(scored, dialogues, last, path) == 0 and len(last.prompts) == 1
    assert read_lines(path)[0]["reasoning"] == f"{len(scored[0]['text'])} letters" and failed[0]["reasoning"] is None


def ratings_of(judged, change=lambda value: value):
    return [{"answer_id": row["answer_id"], "rater": "ann", "coherence": change(row["coherence"]), "fluency": 3} for row in judged]


def test_a_judge_is_shown_only_where_people_agree(scored, dialogues, tmp_path):
    judge(scored, dialogues, Parrot(says=by_length), tmp_path / "judged.jsonl")
    judged = read_lines(tmp_path / "judged.jsonl")
    for ratings, text, shown in (
        ([], "coherence: not shown: nobody has rated", False),
        (ratings_of(judged[:5]), "not shown: 5 rated answers, at least 20 are needed", False),
        (ratings_of(judged, lambda value: 6 - value), "not shown: kappa -", False),
        (ratings_of(judged), "coherence: shown; weighted kappa 1.00", True),
    ):
        aggregate(scored, tmp_path, judged, ratings)
        assert text in (tmp_path / "report.md").read_text()
        assert [row["coherence"][:1] != "–" for row in table(tmp_path, "Techniques")] == [shown, shown]
        assert [row["fluency"] for row in table(tmp_path, "Techniques")] == ["–", "–"]  # all the same: chance agrees as well


def test_two_judges_are_not_mixed(scored, tmp_path):
    judged = [{"answer_id": "a", "judge": name, "coherence": 1, "fluency": 1, "error": None} for name in ("x", "y")]
    with pytest.raises(LabError, match="2 judges"):
        aggregate(scored, tmp_path, judged)


def test_a_fifth_is_rated_blind_and_kept_at_once(scored, dialogues, tmp_path):
    chosen = sample(scored)
    assert len(chosen) == 10 and chosen == sample(scored) and chosen != sample(scored, seed=1)
    page = rate(tmp_path, dialogues, "ann")
    for number, answer in enumerate(chosen[:3]):
        assert f"{number + 1} of 10" in page.shown and answer["text"] in page.shown
        assert not any(word in page.shown for word in ("parrot", "full", "none", answer["answer_id"]))
        page.scales["coherence"].value = 2
        assert page.save.disabled
        page.scales["fluency"].value = 5
        page.save.click()
    assert read_lines(tmp_path / "ratings-ann.jsonl") == [
        {"answer_id": answer["answer_id"], "rater": "ann", "coherence": 2, "fluency": 5} for answer in chosen[:3]
    ]
    again = rate(tmp_path, dialogues, "ann")
    assert "4 of 10" in again.shown and len(again.waiting) == 7
    assert "1 of 10" in rate(tmp_path, dialogues, "ben").shown
    with pytest.raises(LabError, match="a rater's name"):
        rate(tmp_path, dialogues, "../ann")
