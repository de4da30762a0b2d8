"""What is planned, judged and reported of a consolidation, and of sleeps in a row, follows from their parameters and their rows."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.consolidation import report
from hippo_core.protocols.consolidation.protocol import CONSOLIDATION, SLEEPS
from hippo_core.protocols.consolidation.sleeps_table import damage, half_life, matrix, stream
from hippo_core.protocols.consolidation.sleeps_table import metrics as sleeps_metrics
from hippo_core.protocols.consolidation.table import PROBES, SLEEPS_COLUMNS, SPENT, TITLES, changes, metrics
from hippo_core.results.criteria import judge_tables, load_criteria
from hippo_core.results.criteria.tables import TableRows
from hippo_core.results.formatting import NONE

MANY = 400
FIFTY = {"n": 50, "steps": 1000}
ALL_OF_FIFTY = {
    *("consolidation_50", "consolidation_of_recall", "consolidation_of_rag"),
    *("consolidation_sanity", "consolidation_other_suites", "consolidation_text"),
}
PARAMETERS = {"model": "hippo-tiny", "suite": "consolidation", "n": 20, "seed": 1, "way": "lora", "cycles": 1, "policy": "uniform"}
PARAMETERS |= {"wordings": 40, "restatements": 0.0, "distilled": 0.0, "steps": 100}


def rows_of(record="r", replay=True, off=1.0, in_context=1.0, others=1.0, nats=3.0, **parameters):
    """A row a question, probe and stage: before, every probe but that with the memory off is right."""
    rows = []
    for probe in PROBES:
        about = probe if probe in ("in_context", "other_suites", "text") else "told"
        share = {"off": off, "in_context": in_context, "other_suites": others}.get(probe, 1.0)
        for number in range(MANY):
            asked = {"question_id": f"{about}{number}", "world": f"{about}{number // 2}", "probe": probe}
            before, after = float(probe != "off"), float(number < share * MANY)
            for stage, score, loss in (("pre", before, 3.0 + 1e-5 * number), ("post_1", after, nats)):
                rows.append(asked | {"stage": stage, "score": math.nan if probe == "text" else score, "nats": loss})
    words = {"kind": "who", "rung": "exact", "question": "?", "answer": "a", "pred": "b"}
    numbers = dict.fromkeys(("abstained", "prompt_tokens", "generated_tokens", "latency_ms"), 1.0) | dict.fromkeys(SPENT, 2.0)
    return pd.DataFrame(rows).assign(**words, **numbers, **(PARAMETERS | parameters), replay=replay, record=record, cell=record)


def table(*cells):
    return TableRows("consolidation", "consolidate", "question_id", "world", pd.concat(cells), ("score",), ("model", "seed", "suite", "n"))


def check(**values):
    return CONSOLIDATION.check(values, "here")


def test_a_cell_stands_behind_the_one_that_taught_the_store_and_shares_it_with_other_ways():
    first, second = (CONSOLIDATION.plan(check(n=20, way=update_rule)) for update_rule in ("lora", "sparse"))
    assert first.needs["store"].step == second.needs["store"].step == "teach"
    assert first.needs["store"].parameters == second.needs["store"].parameters
    assert first.inputs != second.inputs and "sparse" in second.label
    assert CONSOLIDATION.plan(check(n=20, wordings=5)).inputs != first.inputs


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"way": "surgery"}, "way"),
        ({"cycles": 4}, "cycles"),
        ({"lost": 2.0}, "lost"),
        ({"preset": "baselines/longctx"}, "no store of its own"),
        ({"suite": "nowhere"}, "unknown suite"),
        ({"way": "gated_groups"}, "learns in groups"),
        ({"groups": 0}, "groups"),
        ({"rehearse_earlier": 1.0}, "rehearse_earlier"),
    ],
)
def test_a_wrong_parameter_is_one_clear_line(wrong, message):
    experiment = SLEEPS if wrong.keys() & {"groups", "rehearse_earlier"} else CONSOLIDATION
    with pytest.raises(LabError, match=message):
        experiment.check(wrong, "here")


def test_every_difference_is_paired_with_before():
    differences = changes(rows_of(off=0.5, nats=3.5))
    assert differences["off"]["post_1"]["difference"] == pytest.approx(0.5)
    assert (differences["off"]["post_1"]["won"], differences["off"]["post_1"]["lost"]) == (MANY / 2, 0)
    assert differences["in_context"]["post_1"]["difference"] == 0
    assert differences["text"]["post_1"]["difference"] == pytest.approx(0.5, abs=0.01)


def test_the_gate_passes_an_uplift_and_no_other():
    def judged(rows, mode="ci", least=0.05):
        return report._uplift(rows[rows["probe"] == "off"], mode, least, 0.05)

    assert judged(rows_of(off=0.8)).passed and not judged(rows_of(off=0.0)).passed
    few = rows_of(off=0.005)
    assert judged(few, "fixed", 0.004).passed and not judged(few, "ci", 0.004).passed
    assert not judged(rows_of(off=0.8), least=0.9).passed
    assert str(judged(rows_of(off=0.0))).startswith("FAIL")


def test_a_run_without_consolidation_cannot_be_judged():
    with pytest.raises(LabError, match="no consolidation"):
        report.uplifts("nothing")
    with pytest.raises(LabError, match="alpha"):
        report.uplifts("nothing", alpha=0)


@pytest.mark.parametrize(
    ("changed", "met"),
    [
        ({}, {"consolidation"}),
        ({"off": 0.0}, set()),
        (FIFTY, ALL_OF_FIFTY),
        (FIFTY | {"off": 0.85}, ALL_OF_FIFTY - {"consolidation_of_recall", "consolidation_of_rag"}),
        (FIFTY | {"in_context": 0.8}, ALL_OF_FIFTY - {"consolidation_sanity"}),
        (FIFTY | {"others": 0.9}, ALL_OF_FIFTY - {"consolidation_other_suites"}),
        (FIFTY | {"nats": 3.2}, ALL_OF_FIFTY - {"consolidation_text"}),
        (FIFTY | {"steps": 500}, set()),
        ({"n": 200, "steps": 1200, "off": 0.6}, {"consolidation_200"}),
    ],
)
def test_criteria_follow_what_was_won_and_lost_and_pool_no_numbers_of_facts_or_steps(changed, met):
    verdicts = judge_tables(load_criteria(), [table(rows_of(**changed), rows_of("other", n=70, off=0.0, in_context=0.0))])
    by_id = {judged.id: judged.verdict for judged in verdicts}
    assert {name for name, verdict in by_id.items() if verdict == "met"} == met, by_id
    assert len(by_id) == 8


@pytest.mark.parametrize("other", [{"restatements": 0.25}, {"distilled": 1.0}])
def test_criteria_are_about_questions_alone(other):
    plain, failed = rows_of(**FIFTY), rows_of("other", **FIFTY, **other, off=0.0, in_context=0.0, nats=4.0)
    alone, both, without = (judge_tables(load_criteria(), [table(*cells)]) for cells in ([plain], [plain, failed], [failed]))
    assert [(verdict.id, verdict.verdict) for verdict in both] == [(verdict.id, verdict.verdict) for verdict in alone]
    assert {verdict.verdict for verdict in without} == {"not judged"}


def test_a_report_has_a_line_for_each_way_with_its_seeds_pooled():
    cells = [rows_of("a"), rows_of("b", seed=2, off=0.5), rows_of("c", way="sparse", off=0.25, in_context=0.75)]
    section = report.by_update_rule(table(*cells))
    assert section.table is not None
    lines = section.table.set_index("way")
    assert list(lines["questions"]) == [2 * MANY, MANY] and list(lines["worlds"]) == [MANY, MANY / 2]
    assert list(lines["won"]) == [1.5 * MANY, MANY / 4] and list(lines["memory off, before"]) == [0, 0]
    assert lines["after"].str.startswith(("0.75 (", "0.25 (")).all() and lines["B3 / B1"].str.startswith(("0.75", "0.25")).all()
    assert lines.loc["sparse", TITLES["in_context"]].startswith("\u22120.25 (") and list(lines["tokens a fact"]) == [2, 2]
    assert section.figure and section.figure.startswith(b"\x89PNG")


def test_records_without_costs_are_reported_without_them():
    section = report.by_update_rule(table(rows_of().drop(columns=list(SPENT))))
    assert section.table is not None and not [name for name in section.table if name.endswith("a fact")]


def test_a_report_has_a_line_for_each_probe_of_each_cell():
    _, section = report.sections([table(rows_of("a"), rows_of("b", way="sparse", off=0.1))])
    assert section.table is not None and len(section.table) == 2 * len(PROBES)
    assert set(section.table["way"]) == {"lora", "sparse"}
    assert "+1.00 (" in section.sentence and section.figure and section.figure.startswith(b"\x89PNG")
    asked = ~section.table["asked with"].str.startswith("plain text")
    assert not (section.table.loc[asked, "95% interval"] == NONE).any()


def test_its_sentence_names_what_was_won_and_lost():
    measured = metrics(SimpleNamespace(slept={"seconds": 12.0}, parameters=check()), rows_of(off=0.5), 1.0)
    off = {stage: interval["mean"] for stage, interval in measured["metrics"]["off"].items()}
    named = {name: measured[name] for name in ("pre_em", "post_1_em", "delta_after_replay", "suite", "preset")}
    changed = {"pre_em": off["pre"], "post_1_em": off["post_1"], "delta_after_replay": off["post_1"] - off["pre"]}
    assert named == changed | {"suite": "consolidation", "preset": "memory/hei_nw"} and named["delta_after_replay"]
    sentence = CONSOLIDATION.sentence(check(), measured)
    assert "50% of 400" in sentence and "0% before" in sentence and "+0.0 points" in sentence


ASKED = 10  # questions a group
R = [[0.1, 0.1, 0.1], [1.0, 0.1, 0.2], [0.8, 0.9, 0.1], [0.4, 0.6, 0.8]]  # [sleep, group]


def sleeps_of(values=R, in_context=0.9, nats=3.1, **parameters):
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
    summary = stream(sleeps_of())
    assert summary["before"] == pytest.approx(0.1)
    assert summary["just_learnt"] == pytest.approx((1.0 + 0.9 + 0.8) / 3)
    assert summary["at_the_end"] == pytest.approx((0.4 + 0.6 + 0.8) / 3)
    assert summary["forgetting_from_max"] == pytest.approx((0.6 + 0.3) / 2)
    assert summary["forgetting_from_initial"] == pytest.approx((0.6 + 0.3) / 2)
    assert summary["first_group_kept"] == pytest.approx(0.4)
    assert summary["half_life"] == 2 and summary["below_before"] == 0 and summary["oracle"] == 1


def test_a_question_that_others_make_up_for_is_not_kept():
    rows = sleeps_of([[0.0], [0.5]])
    again = rows[(rows["probe"] == "off") & (rows["sleep"] == 1)].assign(sleep=2)
    again["score"] = 1 - again["score"]
    summary = stream(pd.concat([rows, again, again.assign(group=2, question_id="o" + again["question_id"])]))
    assert summary["first_group_kept"] == 0


@pytest.mark.parametrize(("end", "expected"), [(0.6, None), (0.5, 2), (0.0, 2)])
def test_half_life_is_the_first_age_at_which_half_is_left(end, expected):
    assert half_life(np.array([[0.0, 0, 0], [1, 0, 0], [0.8, 1, 0], [end, 0.8, 1]])) == expected


def test_of_sleeps_from_the_base_only_the_diagonal_is_said():
    nan = math.nan
    rows = sleeps_of([[0.1, 0.1], [0.9, nan], [nan, 0.7]], apart=True)
    summary = stream(rows)
    assert summary["just_learnt"] == pytest.approx(0.8) and "at_the_end" not in summary
    sentence = SLEEPS.sentence(SLEEPS.check({"apart": True}, "here"), sleeps_metrics(SimpleNamespace(slept={"sleeps": 2}), rows, 1.0))
    assert "80%" in sentence and "each from the unchanged model" in sentence


def test_the_sentence_and_report_of_sleeps_name_what_was_kept():
    rows = sleeps_of()
    assert matrix(rows).to_numpy() == pytest.approx(np.array(R))
    lost = damage(rows)
    assert lost["in_context"]["difference"] == pytest.approx(-0.1) and lost["text"]["difference"] == pytest.approx(0.1)
    sentence = SLEEPS.sentence(SLEEPS.check({}, "here"), sleeps_metrics(SimpleNamespace(slept={"sleeps": 3}), rows, 1.0))
    assert "90% of a group's questions" in sentence and "60% of all after 3 sleeps" in sentence and "40% still is" in sentence
    table = TableRows("sleeps", "sleeps", "question_id", "world", rows, ("score",), ("model", "seed", "suite", "n"))
    comparison, own = report.sleeps_sections([table])
    assert comparison.table is not None and comparison.table["first group kept"].tolist() == ["0.40"]
    assert own.table is not None and own.table["group 1"].tolist() == [0.1, 1.0, 0.8, 0.4]
    assert own.figure and own.figure.startswith(b"\x89PNG")


def test_sleeps_stand_behind_the_cell_that_taught_the_store_and_share_it():
    first, second = (SLEEPS.plan(SLEEPS.check({"n": 20, "rehearse_earlier": share}, "here")) for share in (0.0, 0.5))
    assert first.needs["store"].parameters == second.needs["store"].parameters
    assert first.inputs != second.inputs and "rehearse_earlier=0.0" in first.label
