"""The fit of how far "unknown" is held back: what it asks, how it chooses, and that params/models say what was chosen."""

import json

import pytest

from hippo_core.files import root
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.suites.types import Fact, Item, World
from recipes import abstention
from recipes.abstention import AbstentionOutcome, chosen, others_of, table_of

RIGHT, WRONG, UNKNOWN = (1.0, 0), (0.0, 0), (0.0, 1)
FITTED = sorted((root() / "data/weights").glob("*/abstention.json"))


@pytest.fixture(scope="module")
def tiny():
    return load(load_spec("hippo-tiny"), device="cpu")


def known(kind, *margins, penalised=RIGHT):
    """Answerable questions to which the model says "unknown" up to these margins."""
    return [AbstentionOutcome(kind, True, margin, UNKNOWN if margin > 0 else penalised, penalised) for margin in margins]


def unknowable(kind, *margins):
    return [AbstentionOutcome(kind, False, margin, (1.0, 1) if margin > 0 else WRONG, WRONG) for margin in margins]


def test_the_most_right_answers_in_the_mean_over_kinds_and_the_lowest_of_equal_ones():
    asked = known("large", *[0.2] * 9, 5.2) + known("small", 1.2)
    assert chosen(table_of(asked + unknowable("a", *[20.0] * 3))) == 5.5
    assert chosen(table_of(known("large", *[0.2] * 10) + known("small", 1.2, penalised=WRONG))) == 0.5
    assert chosen(table_of(known("a", -1.0))) == 0.0


def test_no_kind_of_unanswerable_questions_loses_more_than_a_twentieth():
    asked = known("a", 0.7, 2.2)
    steady = unknowable("b", *[20.0] * 40)
    assert chosen(table_of(asked + steady + unknowable("c", *[20.0] * 19, 2.1))) == 2.5
    assert chosen(table_of(asked + steady + unknowable("c", *[20.0] * 18, 2.1, 2.1))) == 2.0 - 1.0
    assert chosen(table_of(asked + steady + unknowable("c", 0.1))) == 0.0


def test_other_facts_do_not_answer_the_question():
    texts = [
        "Ada drinks tea.",
        "Ada drinks milk.",
        "Bo lives in Rome.",
        "Bo met Cy.",
        "Cy has tea at noon.",
        "It is Rome, Bo says.",
        "Dee ran.",
    ]
    facts = tuple(
        Fact(f"f{time}", "w", text, dict(zip(("who", "verb"), text.split(), strict=False)), time) for time, text in enumerate(texts)
    )
    taught, cue = ("f0", "f1", "f3", "f4"), {"who": "Ada", "verb": "drinks"}
    item = Item("q", "w", "What does Ada drink?", ("tea",), ("f0",), "own", cue=cue, taught=taught)
    assert [fact.id for fact in others_of(World("w", facts, (item,)), item)] == ["f3"]
    again, taught = {"f6": "f2"}, ("f2", "f5", "f6")
    item = Item("q", "w", "Where does Bo live?", ("Turin",), ("f2",), "own", refuted=("Rome",), retold=again, taught=taught)
    assert others_of(World("w", facts, (item,)), item) == ()


def test_what_is_measured_is_what_the_penalties_do(tiny):
    """The answers under a penalty are those that the margins tell."""
    asked = list(abstention.cases(tiny, {"episodic": (6, True), "notes": (12, True)}))
    assert {(case.kind, case.answerable) for case in asked} >= {("episodic", True), ("episodic", False), ("notes", True), ("notes", False)}
    assert all(set(case.item.gold_facts) == {fact.id for fact in case.facts} for case in asked if case.answerable)
    for name in ("episodic", "notes"):
        some = [case for case in asked if case.suite.name == name]
        judged_outcomes = abstention.outcomes(tiny, some)
        margins = sorted(outcome.margin for outcome in judged_outcomes if outcome.margin > 0)
        assert margins
        middle = margins[len(margins) // 2] + 1e-3
        assert [outcome.at(middle) for outcome in judged_outcomes] == [
            abstention.judged(case, text) for case, text in answers(tiny, some, middle)
        ]


def answers(lm, cases, penalty):
    from hippo_core.delivery.text import TextDelivery
    from hippo_core.delivery.types import Question

    questions = [Question.of_texts(case.item.question, [fact.text for fact in case.facts], penalty) for case in cases]
    return zip(cases, [answer.text for answer in TextDelivery(lm).ask(questions, cases[0].suite.answer_budget)], strict=True)


def test_a_suite_without_its_file_is_skipped_with_the_reason(tiny, monkeypatch):
    monkeypatch.delenv("HIPPO_DATA", raising=False)
    lines = []
    assert list(abstention.cases(tiny, {"squad": (4, True)}, lines.append)) == []
    assert lines[0].startswith("squad: skipped, squad missing")


@pytest.mark.parametrize("path", FITTED, ids=lambda path: path.parent.name)
def test_params_say_what_was_chosen(path):
    made, model = json.loads(path.read_text(encoding="utf-8")), path.parent.name
    assert load_spec(model).abstention_penalty == made["penalty"] == chosen(abstention.pd.DataFrame(made["validation"]))
