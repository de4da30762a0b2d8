"""Properties of the scores of one answer, and checks that a lenient scorer or a shifted answer file does not pass."""

import math
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hippo_core.errors import LabError
from hippo_core.results import scores
from hippo_core.suites.types import Item, PathScore, Settings, Suite, World

GOLDS = ("Alice", "the harbour", "Mia", "a red kite", "Tuesday")
ITEMS = tuple(Item(f"w/q{i}", "w", f"Question {i}?", (gold,), (f"w/f{i}",), "who", chance=0.2) for i, gold in enumerate(GOLDS))
WORLD = World("w", (), ITEMS)
WORDS = st.text(alphabet="abthen AT.,'’-\n", max_size=20)


def _suite(primary="em_norm", score_path=None) -> Suite:
    return Suite("tiny", "five questions", Settings, lambda random, settings, folder: WORLD, primary, score_path=score_path)


def _rows(predictions=GOLDS, answers=GOLDS, suite=None) -> pd.DataFrame:
    """A row table of the five items; `answers` may be tampered with, scores are those of the suite."""
    return pd.DataFrame(
        {"item_id": item.id, "answer": answer, "pred": pred, **scores.score_item(suite or _suite(), WORLD, item, pred)}
        for item, pred, answer in zip(ITEMS, predictions, answers, strict=True)
    )


@pytest.mark.parametrize(
    "text, expected",
    [
        ("The  Old Mill.", "old mill"),
        ("an apple, a pear", "apple pear"),
        ("“Zoë’s”", "zoës"),
        ("A", "a"),
        ("theatre", "theatre"),
        ("...", ""),
        ("", ""),
        ("1.5 litres, 7:30", "1.5 litres 7:30"),
        ("-5 and 1,000 (50%)", "-5 and 1000 50%"),
        ("a well-known 3-year C++", "wellknown 3year c++"),
        ("\u5317\u4eac\uff0c", "\u5317 \u4eac"),
        ("\U0001f44d!", "\U0001f44d"),
    ],
)
def test_normalise(text, expected):
    assert scores.normalise(text) == expected


@pytest.mark.parametrize(
    ("pred", "expected"),
    [
        ("x^2", "x2"),
        ("x=-5", "x=5"),
        ("t:-5", "t:5"),
        ("C++17", "C17"),
        ("A/B", "AB"),
        ("<5", ">5"),
        ("A-", "A"),
        ("5 \u20ac", "5"),
        ("\u6c14\u6e29-5\u5ea6", "\u6c14\u6e295\u5ea6"),
        ("50%\u7684", "50\u7684"),
        ("\u30b8\u30e7\u30f3-5", "\u30b8\u30e7\u30f35"),
    ],
)
def test_what_calculates_or_compares_is_no_punctuation(pred, expected):
    assert scores.em_norm(pred, [expected]) == scores.em_norm(expected, [pred]) == 0


@settings(deadline=None)
@given(WORDS)
def test_normalising_twice_changes_nothing_more(text):
    assert scores.normalise(scores.normalise(text)) == scores.normalise(text)


@settings(deadline=None)
@given(WORDS, st.lists(WORDS.filter(str.strip), min_size=1, max_size=3))
def test_raw_is_never_above_normalised_nor_normalised_above_f1(pred, answers):
    raw, norm, f1 = scores.em_raw(pred, answers), scores.em_norm(pred, answers), scores.token_f1(pred, answers)
    assert raw <= norm <= f1 <= 1


@settings(deadline=None)
@given(WORDS.filter(str.strip), st.lists(WORDS, max_size=3))
def test_an_accepted_answer_scores_one_wherever_it_stands(answer, others):
    assert scores.em_raw(answer, [*others, answer]) == scores.em_norm(answer, [answer, *others]) == 1


@pytest.mark.parametrize(
    "pred, answers, expected",
    [("red kite", ["red kite"], 1.0), ("red", ["red kite"], 2 / 3), ("kite red", ["red kite"], 1.0), ("red red", ["red kite"], 0.5),
     ("blue", ["red kite"], 0.0), ("red", ["red kite", "red"], 1.0), ("The Red, kite.", ["red kite"], 1.0)],
)  # fmt: skip
def test_token_f1(pred, answers, expected):
    assert scores.token_f1(pred, answers) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "pred, expected",
    [("Alice", 0), ("Alice.", 1), ("Alice!", 1), ("Alice\nBob", 1), ("Dr. Alice", 1), ("Alice\n", 0), ("", 0), ("Alice’s", 0),
     ("Alice,", 1), ("1.5", 0), ("50%", 0), ("C#", 0), ("-5", 0), ("A-", 0), ("Rome.", 1), ("5.", 1)],
)  # fmt: skip
def test_format_violation(pred, expected):
    assert scores.format_violation(pred) == expected


@pytest.mark.parametrize(
    "pred, expected",
    [("I can't say", 1), ("I can’t say", 1), ("i CANNOT tell", 1), ("I won’t answer", 1), ("Sorry, I am unable to", 1), ("I'm unable", 1),
     ("I do not have that", 1), ("As an AI model", 1), ("as a language model", 1), ("as a large language model", 1), ("unknown", 0),
     ("Alice", 0), ("the tin can", 0), ("Ai Weiwei", 0), ("Cannot Street", 0), ("", 0)],
)  # fmt: skip
def test_refusal(pred, expected):
    assert scores.refusal(pred) == expected


@pytest.mark.parametrize("pred, expected", [("unknown", 1), ("Unknown.", 1), ("unknown man", 0), ("", 0)])
def test_abstained(pred, expected):
    assert scores.abstained(pred) == expected


def test_an_item_row_has_the_score_columns_in_order():
    row = scores.score_item(_suite(), WORLD, ITEMS[1], "Harbour")
    assert list(row) == ["em_raw", "em_norm", "f1", "success", "suboptimality", "localisation_error", "score", "chance", "pred_len",
                         "gold_len", "overlong", "format_violation", "refusal", "abstained", "refuted"]  # fmt: skip
    assert (row["em_raw"], row["em_norm"], row["score"], row["chance"]) == (0, 1, 1, 0.2)
    assert (row["pred_len"], row["gold_len"], row["overlong"]) == (1, 2, 0)
    assert math.isnan(row["success"]) and math.isnan(row["suboptimality"])


def test_the_primary_score_is_the_suites():
    path = {"w/q0": PathScore(1.0, 1.25), "w/q1": PathScore(0.0, math.nan)}
    spatial = _suite("success", lambda world, item, pred: path.get(item.id))
    assert scores.score_item(spatial, WORLD, ITEMS[0], "north")["score"] == 1
    assert scores.score_item(spatial, WORLD, ITEMS[1], "the harbour")["score"] == 0
    assert scores.score_item(spatial, WORLD, ITEMS[2], "mia.")["score"] == 1
    assert scores.score_item(_suite("em_raw"), WORLD, ITEMS[2], "mia.")["score"] == 0
    assert scores.score_item(spatial, WORLD, ITEMS[0], "north")["suboptimality"] == 1.25


def test_only_where_something_false_was_told_an_answer_is_refuted_or_not():
    contested = replace(ITEMS[1], refuted=("the mill",))
    refuted = {text: scores.score_item(_suite(), WORLD, contested, text)["refuted"] for text in ("The mill.", "harbour", "unknown")}
    assert refuted == {"The mill.": 1.0, "harbour": 0.0, "unknown": 0.0}
    assert math.isnan(scores.score_item(_suite(), WORLD, ITEMS[1], "The mill.")["refuted"])


# What a strict scorer says of answers that a lenient one lets pass: parts of the answer, its words in another order, nothing, capitals.
HARD_CASES = (
    ("Alice", ("Alice",), 1, 1),
    (" Alice\n", ("Alice",), 1, 1),
    ("ALICE", ("Alice",), 0, 1),
    ("Alice.", ("Alice",), 0, 1),
    ("The Alice", ("Alice",), 0, 1),
    ("Bob", ("Robert", "Bob"), 1, 1),
    ("Alice or Bob", ("Alice",), 0, 0),
    ("not Alice", ("Alice",), 0, 0),
    ("Ali", ("Alice",), 0, 0),
    ("Alices", ("Alice",), 0, 0),
    ("park the", ("car park",), 0, 0),
    ("east north", ("north east",), 0, 0),
    ("", ("Alice",), 0, 0),
    ("...", ("Alice",), 0, 0),
    ("the", ("an",), 0, 0),
    ("...", ("?",), 0, 0),
    ("15", ("1.5",), 0, 0),
    ("5", ("-5",), 0, 0),
    ("12", ("1/2",), 0, 0),
    ("1000", ("1,000",), 0, 1),
    ("C", ("C++",), 0, 0),
    ("Zoe\u0308", ("Zo\u00eb",), 0, 1),
    ("\u5317\u4eac\u3002", ("\u5317\u4eac",), 0, 1),
)


@pytest.mark.parametrize(("prediction", "answers", "raw", "norm"), HARD_CASES)
def test_a_strict_scorer_lets_no_other_answer_pass(prediction, answers, raw, norm):
    assert (scores.em_raw(prediction, answers), scores.em_norm(prediction, answers)) == (raw, norm)


def test_honest_rows_pass_after_a_round_trip_through_csv(tmp_path):
    _rows(("Alice", "harbour", "Bob", "", "tuesday.")).to_csv(tmp_path / "rows.csv", index=False)
    scores.check_rows(_suite(), [WORLD], pd.read_csv(tmp_path / "rows.csv"))


def test_a_shifted_answer_file_is_caught():
    with pytest.raises(LabError, match="has the answer 'Tuesday', the suite says 'Alice'"):
        scores.check_rows(_suite(), [WORLD], _rows(answers=(GOLDS[-1], *GOLDS[:-1])))


def test_scores_of_a_lenient_scorer_are_caught_in_the_rows():
    rows = _rows(("Alice or Bob", *GOLDS[1:])).assign(em_norm=1, score=1)
    with pytest.raises(LabError, match="has em_norm 1, its prediction 'Alice or Bob' earns 0"):
        scores.check_rows(_suite(), [WORLD], rows)


def test_a_forced_answer_is_the_answer_but_for_unknown_and_is_scored_as_it():
    preds, forced = ("unknown", *GOLDS[1:]), ("Alice", *GOLDS[1:])
    rows = _rows(preds).assign(forced=forced, score_forced=1.0)
    scores.check_rows(_suite(), [WORLD], rows)
    with pytest.raises(LabError, match="has score_forced 1, its prediction 'Bob' earns 0"):
        scores.check_rows(_suite(), [WORLD], rows.assign(forced=("Bob", *GOLDS[1:])))
    with pytest.raises(LabError, match="item 'w/q1' was answered 'the harbour', which is no unknown, and forced to 'Mia'"):
        scores.check_rows(_suite(), [WORLD], rows.assign(forced=("Alice", "Mia", *GOLDS[2:])))


def test_a_row_of_an_unknown_item_is_caught():
    with pytest.raises(LabError, match="not in the suite"):
        scores.check_rows(_suite(), [WORLD], _rows().assign(item_id="elsewhere"))


def test_a_suite_brings_several_measures_and_is_judged_by_the_first():
    suite = replace(_suite(), measures={"length": lambda world, item, text: len(text) / 100, "none": lambda *_: math.nan})
    score = scores.score_item(suite, WORLD, ITEMS[0], "north")
    assert score["score"] == score["length"] == 0.05 and math.isnan(score["none"])
