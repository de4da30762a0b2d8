"""What a matrix of sleeps comes to, and what is planned and said of it, follows from its rows and parameters."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.consolidation import report
from hippo_core.protocols.consolidation.protocol import SLEEPS
from hippo_core.protocols.consolidation.sleeps_table import damage, half_life, matrix, metrics, stream
from hippo_core.protocols.consolidation.table import SLEEPS_COLUMNS
from hippo_core.results.criteria.tables import TableRows

ASKED = 10  # questions a group
R = [[0.1, 0.1, 0.1], [1.0, 0.1, 0.2], [0.8, 0.9, 0.1], [0.4, 0.6, 0.8]]  # [sleep, group]


def rows_of(values=R, in_context=0.9, nats=3.1, **parameters):
    """A row a sleep, group and question: of each group the first questions are right, so many as `values` says; NaN: not asked."""
    made = []

    def add(probe, sleep, group, number, score, nats=math.nan):
        name = f"{probe if group == 0 else 'told'}{group}.{number}"
        words = {"question_id": name, "world": f"{name.split('.')[0]}.{number // 2}", "probe": probe, "sleep": sleep, "group": group}
        words |= dict.fromkeys(("kind", "rung", "question", "answer", "pred", "read"), "x")
        made.append(words | {"score": score, "f1": score, "nats": nats} | dict.fromkeys(SLEEPS_COLUMNS[-4:], 0.0))

    for sleep, row in enumerate(values):
        for group, share in enumerate(row, 1):
            for number in range(ASKED if share == share else 0):
                add("off", sleep, group, number, float(number < round(share * ASKED)))
                if sleep == 0:
                    add("oracle", 0, group, number, 1.0)
    for number in range(ASKED):
        for sleep, right, loss in ((0, 1.0, 3.0), (len(values) - 1, in_context, nats)):
            add("in_context", sleep, 0, number, float(number < right * ASKED))
            add("text", sleep, 0, number, math.nan, loss + number)
    return pd.DataFrame(made, columns=list(SLEEPS_COLUMNS)).assign(record="r", cell="r", model="hippo-tiny", way="lora", **parameters)


def test_what_a_stream_comes_to_is_counted_by_hand():
    summary = stream(rows_of())
    assert summary["before"] == pytest.approx(0.1)
    assert summary["just_learnt"] == pytest.approx((1.0 + 0.9 + 0.8) / 3)
    assert summary["at_the_end"] == pytest.approx((0.4 + 0.6 + 0.8) / 3)
    assert summary["forgetting_from_max"] == pytest.approx((0.6 + 0.3) / 2)
    assert summary["forgetting_from_initial"] == pytest.approx((0.6 + 0.3) / 2)
    assert summary["first_group_kept"] == pytest.approx(0.4)
    assert summary["half_life"] == 2 and summary["below_before"] == 0 and summary["oracle"] == 1


def test_a_question_that_others_make_up_for_is_not_kept():
    rows = rows_of([[0.0], [0.5]])
    again = rows[(rows["probe"] == "off") & (rows["sleep"] == 1)].assign(sleep=2)
    again["score"] = 1 - again["score"]
    summary = stream(pd.concat([rows, again, again.assign(group=2, question_id="o" + again["question_id"])]))
    assert summary["first_group_kept"] == 0


@pytest.mark.parametrize(("end", "expected"), [(0.6, None), (0.5, 2), (0.0, 2)])
def test_half_life_is_the_first_age_at_which_half_is_left(end, expected):
    assert half_life(np.array([[0.0, 0, 0], [1, 0, 0], [0.8, 1, 0], [end, 0.8, 1]])) == expected


def test_of_sleeps_from_the_base_only_the_diagonal_is_said():
    nan = math.nan
    rows = rows_of([[0.1, 0.1], [0.9, nan], [nan, 0.7]], apart=True)
    summary = stream(rows)
    assert summary["just_learnt"] == pytest.approx(0.8) and "at_the_end" not in summary
    sentence = SLEEPS.sentence(check(apart=True), metrics(SimpleNamespace(slept={"sleeps": 2}), rows, 1.0))
    assert "80%" in sentence and "each from the unchanged model" in sentence


def test_its_sentence_and_report_name_what_was_kept():
    rows = rows_of()
    assert matrix(rows).to_numpy() == pytest.approx(np.array(R))
    lost = damage(rows)
    assert lost["in_context"]["difference"] == pytest.approx(-0.1) and lost["text"]["difference"] == pytest.approx(0.1)
    sentence = SLEEPS.sentence(check(), metrics(SimpleNamespace(slept={"sleeps": 3}), rows, 1.0))
    assert "90% of a group's questions" in sentence and "60% of all after 3 sleeps" in sentence and "40% still is" in sentence
    table = TableRows("sleeps", "sleeps", "question_id", "world", rows, ("score",), ("model", "seed", "suite", "n"))
    comparison, own = report.sleeps_sections([table])
    assert comparison.table is not None and comparison.table["first group kept"].tolist() == ["0.40"]
    assert own.table is not None and own.table["group 1"].tolist() == [0.1, 1.0, 0.8, 0.4]
    assert own.figure and own.figure.startswith(b"\x89PNG")


def check(**values):
    return SLEEPS.check(values, "here")


def test_a_cell_stands_behind_the_one_that_taught_the_store_and_shares_it():
    first, second = (SLEEPS.plan(check(n=20, rehearse_earlier=share)) for share in (0.0, 0.5))
    assert first.needs["store"].parameters == second.needs["store"].parameters
    assert first.inputs != second.inputs and "rehearse_earlier=0.0" in first.label


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"groups": 0}, "groups"), ({"rehearse_earlier": 1.0}, "rehearse_earlier"), ({"preset": "baselines/longctx"}, "no store of its own")],
)
def test_a_wrong_parameter_is_one_clear_line(wrong, message):
    with pytest.raises(LabError, match=message):
        check(**wrong)
