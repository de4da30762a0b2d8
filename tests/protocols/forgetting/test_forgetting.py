"""What a matrix of tasks comes to, and what is planned and said of it, follows from its rows and parameters."""

import math

import numpy as np
import pandas as pd
import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.forgetting import report
from hippo_core.protocols.forgetting.protocol import FORGETTING
from hippo_core.protocols.forgetting.run import matched, moment
from hippo_core.protocols.forgetting.table import COLUMNS, ROWS, matrix, spent, summaries
from hippo_core.results.criteria.tables import TableRows

TASKS = ("copy", "reverse", "parity")
R = [[0.0, 0.1, 0.5], [1.0, 0.2, 0.5], [0.4, 0.9, 0.6], [0.3, 0.7, 0.5]]  # [phase, task]


def rows_of(values=R, known=(True, True, False), inits=("1", "2"), method="none"):
    made = []
    for init in inits:
        for phase, row in enumerate(values):
            for index, accuracy in enumerate(row):
                steps = 100.0 + int(init) if known[index] and phase == index + 1 else math.nan
                named = {"entry": f"{phase}/{TASKS[index]}", "init": init, "phase": phase, "task": TASKS[index], "own": index + 1}
                spent_ = {"steps_to_99": steps, "seconds_to_99": steps / 10, "taken": 200, "seconds": 20.0}
                made.append(named | {"loss": 1 - accuracy, "accuracy": accuracy} | spent_)
    return pd.DataFrame(made, columns=list(COLUMNS)).assign(record=method, cell=method, method=method, model="formal")


def sections(rows):
    return report.sections([TableRows("forgetting", "forget", "entry", "init", rows, ("accuracy", "loss"), ("model", "seed"))])


def test_the_matrix_has_a_row_a_phase_and_a_column_a_task():
    result = matrix(rows_of())
    assert result.to_numpy() == pytest.approx(np.array(R))
    assert (list(result.index), list(result.columns)) == ([0, 1, 2, 3], list(TASKS))


def test_what_a_matrix_comes_to_is_counted_by_hand():
    summary = summaries(rows_of()).loc["1"]
    assert summary["average_accuracy"] == pytest.approx(0.5)
    assert summary["just_learnt"] == pytest.approx(0.95)
    assert summary["kept"] == pytest.approx(1.0 / 1.9)
    assert summary["forgetting_from_max"] == summary["forgetting_from_initial"] == pytest.approx((0.7 + 0.2) / 2)
    assert summary["backward_transfer"] == pytest.approx(-0.45)
    assert summary["forward_transfer"] == pytest.approx((0.1 + 0.1) / 2)


def test_the_maximum_may_lie_after_a_tasks_own_phase():
    late = [[0, 0, 0], [0.8, 0, 0], [0.9, 0.5, 0], [0.4, 0.5, 0.5]]
    summary = summaries(rows_of(late)).loc["1"]
    assert summary["forgetting_from_max"] == pytest.approx((0.5 + 0.0) / 2)
    assert summary["forgetting_from_initial"] == pytest.approx((0.4 + 0.0) / 2)


def test_a_task_that_was_not_learnt_is_not_forgotten():
    summary = summaries(rows_of(known=(False, True, False))).loc["1"]
    assert summary["kept"] == pytest.approx(0.7 / 0.9) and summary["just_learnt"] == pytest.approx(0.9)
    assert math.isnan(summaries(rows_of(known=(False, False, True))).loc["1"]["kept"])


def test_what_learning_took_is_a_median_with_its_range():
    first, _, last = spent(rows_of(inits=("1", "2", "6")))
    assert first == {"task": "copy", "learnt": 3, "of": 3, "steps_to_99": [102, 101, 106], "seconds_to_99": [10.2, 10.1, 10.6]}
    assert last["learnt"] == 0 and last["steps_to_99"] is None


def test_its_sentence_and_report_name_what_was_kept_and_what_was_not_learnt():
    sentence = FORGETTING.sentence(check(), ROWS.metrics(None, rows_of(), 1.0))  # type: ignore[misc]
    assert "0.53 is kept" in sentence and "not learnt to 99% by all: parity" in sentence
    better = [[*row[:1], *row[1:]] for row in R[:3]] + [[1.0, 0.9, 0.5]]
    both = pd.concat([rows_of(), rows_of(better, method="replay")])
    left, comparison, took, *own = sections(both)
    assert left.figure.startswith(b"\x89PNG")
    assert comparison.table["method"].tolist() == ["replay", "none"]  # best first
    kept, right = (comparison.table[f"{name}, less that of none"].tolist() for name in ("kept", "average accuracy"))
    assert kept[0].startswith("+0.47") and right[0].startswith("+0.30") and kept[1] == right[1] == "–"
    assert comparison.table["rank"].tolist() == ["1 (1 to 1)", "2 (2 to 2)"]
    assert comparison.table["kept rests on"].tolist() == ["4 of 4", "4 of 4"]
    assert sections(rows_of(known=(True, False, True)))[1].table["kept rests on"].tolist() == ["2 of 4"]
    assert took.table["learnt by"].tolist()[:3] == ["2 of 2", "2 of 2", "0 of 2"]
    assert all(section.figure.startswith(b"\x89PNG") for section in own)
    assert [(section.title, section.group) for section in own] == [("none", "After each phase"), ("replay", "After each phase")]


def test_what_is_left_is_said_in_words_beside_a_plain_model_and_the_upper_bound():
    ends = {"none": R[-1], "joint": [1.0, 0.9, 0.5], "l2": [0.2, 0.9, 0.3], "replay": [0.6, 0.9, 0.6], "lora": [0.9, 0.7, 0.2]}
    cells = [rows_of([*R[:3], end], method=method) for method, end in ends.items()]
    left = report.in_words(cells, list(ends))
    learnt, plain, joint, best, unshown, kept, _ = left.findings
    assert "of all 5 ways together: copy by 10 of 10, reverse by 10 of 10, parity by 0 of 10." in learnt
    assert plain.startswith("A plain model (none) keeps 0.53 [0.53 to 0.53] of what it learnt, and is right in 0.50 [0.50 to 0.50]")
    assert "(joint), the upper bound, keeps 1.00" in joint and "0.80" in joint
    assert "Of 3 other ways" in best and "is replay: it keeps 0.79" in best  # lora keeps more of what it learnt, and answers less of all
    assert unshown == "Not right more often than the plain model in every initialisation: l2."
    nothing = report.in_words([rows_of(known=(False, False, False))], ["none"])
    assert nothing.figure is None and nothing.findings[2] == "Kept, most first: –."
    order = ["joint: 1.00", "lora: 0.84", "replay: 0.79", "l2: 0.58", "none: 0.53"]
    assert sorted(order, key=kept.index) == order
    assert report.in_words(cells[:1], ["none"]).findings[1] == plain and len(report.in_words(cells[:1], ["none"]).findings) == 4


@pytest.mark.parametrize(("gains", "listed"), [([-0.1, *[0.2] * 9], "none of these."), ([0.3, *[-0.1, 0.2] * 4, 0.3], "replay.")])
def test_ten_initialisations_have_an_interval_by_which_a_gain_is_shown(gains, listed):
    inits = [str(init) for init in range(10)]
    better = rows_of(inits=inits, method="replay")
    better["accuracy"] += [gains[int(init)] for init in better["init"]]
    finding = report.in_words([rows_of(inits=inits), better], ["none", "replay"]).findings[3]
    assert "95% interval" in finding and finding.endswith(f": {listed}")


def test_a_control_is_neither_the_upper_bound_nor_a_rival():
    cells = [rows_of(method="joint").assign(control="one_token"), rows_of(method="replay").assign(control="none")]
    findings = " ".join(report.in_words(cells, ["joint, control one_token", "replay"]).findings)
    assert "upper bound" not in findings and "plain model" not in findings and "Of 1 other ways" in findings and "is replay" in findings


def test_the_plain_model_is_the_one_of_the_usual_architecture():
    banded = rows_of(method="none").assign(fc1=256, fc2=None, sort=0)
    control = rows_of(method="none").assign(fc1=None, fc2=None, sort=0, control="one_token")
    plain = rows_of([*R[:3], [0.2, 0.1, 0.3]], method="none").assign(fc1=None, fc2=None, sort=0)
    assert report.first_plain([banded, control, plain]) == 2 and report.first_plain([banded, control]) == 0
    assert report.first_plain([rows_of(method="joint")]) is None
    texts = report.in_words([banded, plain], ["none, fc1 256", "none"]).findings
    assert texts[1].startswith("A plain model (none) keeps 0.16") and "Of 1 other ways" in texts[2] and "is none, fc1 256" in texts[2]


def test_a_value_that_others_do_not_have_at_all_is_said():
    cells = [rows_of(method="none").assign(record=str(number), fc1=band) for number, band in enumerate((None, None, 256))]
    assert "none, fc1 256:" in sections(pd.concat(cells))[0].findings[-2]


def test_a_cell_is_called_by_what_others_were_not_told():
    values = [("none", "0.05", "uniform"), ("replay", "0.05", "uniform"), ("replay", "0.5", "uniform"), ("replay", "0.05", "ca2")]
    cells = [{"method": method, "stored": stored, "policy": policy} for method, stored, policy in values]
    assert report.names(cells) == ["none", "replay", "replay, stored 0.5", "replay, policy ca2"]
    values = (("lwf", "0.1"), ("replay", "0.1"), ("replay", "0.5"))
    cells = [{"method": method, "stored": stored, "steps": "9"} for method, stored in values]
    assert report.names(cells) == ["lwf", "replay, stored 0.1", "replay, stored 0.5"]  # neither is the usual one; lwf stores nothing


def at_levels(rows, loss, accuracy, earlier):
    """The rows with what was answered in each phase at a training loss of .5: of the phase's own task, and of earlier ones."""
    own, later = rows["phase"] == rows["own"], rows["phase"] > rows["own"]
    rows.loc[own, ["loss_at_0.5", "accuracy_at_0.5"]] = [loss, accuracy]
    rows.loc[later, "accuracy_at_0.5"] = earlier
    rows.loc[own & (rows["task"] == "parity"), ["loss_at_0.5", "accuracy_at_0.5"]] = math.nan  # training did not come so far
    return rows


def test_cells_are_compared_at_equal_training_loss():
    plain, better = at_levels(rows_of(), 0.6, 0.7, 0.2), at_levels(rows_of(method="replay"), 0.4, 0.75, 0.5)
    better.loc[(better["init"] == "2") & (better["task"] == "reverse"), "loss_at_0.5"] = math.nan
    levels = ROWS.metrics(None, plain, 1.0)["at_equal_training_loss"][:3]  # type: ignore[misc]
    reached = [(line["task"], line["training_loss"], line["reached"]) for line in levels]
    assert reached == [("copy", 0.5, 2), ("reverse", 0.5, 2), ("parity", 0.5, 0)]
    assert (levels[0]["loss"], levels[0]["earlier"], levels[1]["earlier"], levels[2]["loss"]) == (0.6, None, 0.2, None)
    lines = sections(pd.concat([plain, better]))[2].table
    assert lines["reached by"].tolist() == ["4 of 6", "3 of 6"]
    assert lines["validation loss, less that of none"].tolist() == ["–", "−0.20 [−0.20 to −0.20]"]
    assert lines["accuracy on earlier tasks, less that of none"].tolist()[1].startswith("+0.30")


def test_older_cells_have_nothing_at_equal_training_loss():
    old = rows_of().drop(columns=[name for name in COLUMNS if "_at_" in name])
    assert [section.title for section in sections(old)][1:3] == ["Tasks in sequence", "What learning took"]


def test_a_rank_is_among_cells_of_the_same_initialisation():
    cells = [pd.DataFrame({"average_accuracy": values}, index=["1", "2"]) for values in ((0.5, 0.9), (0.6, 0.2), (0.6, 0.1))]
    assert report.ranks(cells).to_numpy().tolist() == [[3.0, 1.0], [1.5, 2.0], [1.5, 3.0]]


def check(**values):
    return FORGETTING.check(values, "here")


def test_a_cell_stands_alone_and_says_what_differs():
    cell = FORGETTING.plan(check(method="replay", stored=0.5, seed=2))
    assert not cell.needs and not cell.models and cell.label == "forgetting replay stored=0.5"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"stored": 1.5}, "stored"),
        ({"tasks": ["copy", "copy"]}, "different tasks"),
        ({"tasks": []}, "at least one"),
        ({"method": "x"}, "none"),
    ],
)
def test_a_wrong_parameter_is_one_clear_line(wrong, message):
    with pytest.raises(LabError, match=message):
        check(**wrong)


@pytest.mark.parametrize(
    ("training", "level", "expected"),
    [
        ([0.7, 0.4, 0.2], 0.5, 2 / 3),
        ([0.7, 0.4, 0.2], 0.2, 2.0),
        ([0.7, 0.3, 0.6, 0.1], 0.5, 0.5),  # the first time
        ([0.7, 0.4, 0.2], 0.1, math.nan),  # never
        ([0.4, 0.3], 0.5, math.nan),  # from the beginning
    ],
)
def test_the_moment_at_which_a_loss_falls_to_a_level(training, level, expected):
    assert moment(training, level) == pytest.approx(expected, nan_ok=True)


def evaluation(step, models, training, copy, parity):
    tasks = {name: {"nats": nats, "right": [1 - value for value in nats]} for name, nats in (("copy", copy), ("parity", parity))}
    return {"step": step, "models": models, "training": training, **tasks}


def test_all_tasks_of_a_model_at_a_level():
    evaluations = [
        evaluation(0, [0, 1], [0.7, 0.9], [0.1, 0.2], [0.8, 0.9]),
        evaluation(10, [0, 1], [0.5, 0.7], [0.5, 0.5], [0.6, 0.7]),
        evaluation(10, [0, 1], [0.5, 0.7], [0.3, 0.4], [0.6, 0.7]),  # once more, after a kill
        evaluation(20, [1], [0.3], [0.8], [0.4]),  # the other has learnt it
    ]
    first = matched(evaluations, 0, ("copy", "parity"), (0.6, 0.4))
    assert first["copy"] == pytest.approx(
        {"loss_at_0.6": 0.2, "accuracy_at_0.6": 0.8, "loss_at_0.4": math.nan, "accuracy_at_0.4": math.nan}, nan_ok=True
    )
    second = matched(evaluations, 1, ("copy", "parity"), (0.6, 0.4))
    assert second["copy"]["loss_at_0.6"] == pytest.approx(0.4 + 0.25 * 0.4)
    assert second["parity"]["accuracy_at_0.4"] == pytest.approx(0.25 * 0.3 + 0.75 * 0.6)
