"""Each rule of a verdict decides as written; the whole file on a whole run, and on disk."""

import json
import math

import pandas as pd
import pytest

from hippo_core.results.criteria import Criteria, Verdict, judge, load_criteria, write_criteria
from tests.results.invented import A_OVER_B, HEAD, RAGS, cell, verdict


@pytest.mark.parametrize(
    "fields, rate_a, rate_b, expected",
    [
        ({"at_least": 0.1}, 0.6, 0.3, "met"),
        ({"at_least": 0.1}, 0.35, 0.3, "not met"),
        ({"at_least": 0}, 0.305, 0.3, "not shown"),  # reached, but one item of 200 shows nothing
        ({"not_below": -0.05}, 0.3, 0.3, "met"),
        ({"not_below": -0.05}, 0.3, 0.31, "met"),
        ({"not_below": -0.05}, 0.26, 0.3, "not shown"),  # reached, but the interval goes below
        ({"not_below": -0.05}, 0.1, 0.3, "not met"),
        ({"within": [-0.01, 0.01]}, 0.3, 0.3, "met"),
        ({"within": [-0.01, 0.01]}, 0.33, 0.3, "not met"),
    ],
)
def test_differences(fields, rate_a, rate_b, expected):
    fields = {"difference": A_OVER_B["difference"]} | fields
    assert verdict(fields, cell("memory/hei_nw", rate_a), cell("baselines/core", rate_b)).verdict == expected


@pytest.mark.parametrize(
    "fields, rate, expected",
    [
        ({"at_least": 0.8}, 0.9, "met"),
        ({"at_least": 0.8}, 0.7, "not met"),
        ({"at_least": 0.8, "margin": 0.02}, 0.805, "not shown"),  # reached, but the lower bound is not within the margin
        ({"at_most": 0.6}, 0.5, "met"),
        ({"at_most": 0.6}, 0.7, "not met"),
        ({"at_most": 0.6, "margin": 0.02}, 0.595, "not shown"),  # reached, but the upper bound is not within the margin
        ({"at_most_chance_plus": 0.1}, 0.1, "met"),
        ({"at_most_chance_plus": 0.1}, 0.3, "not met"),
        ({"within": [0.2, 0.4]}, 0.3, "met"),
        ({"within": [0.2, 0.4]}, 0.5, "not met"),
    ],
)
def test_values(fields, rate, expected):
    assert verdict({"value": {"of": "baselines/core"}} | fields, cell("baselines/core", rate)).verdict == expected


@pytest.mark.parametrize(("rate", "word"), [(0.98, "met"), (0.92, "not shown"), (0.88, "not met")])
def test_a_value_that_is_there_but_uncertain_is_not_shown_and_the_rule_stands_beside_it(rate, word):
    result = verdict({"value": {"of": "baselines/core"}, "at_least": 0.9}, cell("baselines/core", rate, n=50))
    assert (result.verdict, result.met_when) == (word, "at least 0.90; its interval above 0.85")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"difference": A_OVER_B["difference"], "at_least": 0.1}, "at least +0.10; its interval above 0, p ≤ 0.05"),
        ({"difference": A_OVER_B["difference"], "not_below": -0.025}, "at least −0.025; its interval above −0.05"),
        ({"difference": A_OVER_B["difference"], "within": [-0.01, 0.01]}, "−0.01 to +0.01; its interval inside −0.06 to +0.06"),
        ({"ratio": A_OVER_B["difference"], "at_most": 0.9}, "at most 0.90 times b's; its interval below 1, p ≤ 0.05"),
        ({"value": {"of": "baselines/core"}, "at_most_chance_plus": 0.1}, "at most +0.10 above a guess; its interval below +0.15"),
    ],
)
def test_a_rule_in_words_says_what_decides(fields, words):
    assert verdict(fields, cell("memory/hei_nw", 0.6), cell("baselines/core", 0.3)).met_when == words


@pytest.mark.parametrize("target, slow, expected", [(0.5, 0.4, "met"), (0.5, 0.9, "not met"), (1.1, 1.0, "met"), (1.1, 1.3, "not met")])
def test_ratios(target, slow, expected):
    other = cell("baselines/core", 0.5)
    mine = other.assign(preset="memory/hei_nw", cell="m", latency_ms=other["latency_ms"] * slow)
    result = verdict({"ratio": {"a": "memory/hei_nw", "b": "baselines/core", "metric": "latency_ms"}, "at_most": target}, mine, other)
    assert result.verdict == expected and result.value == pytest.approx(slow)


def test_what_must_be_the_same_may_differ_nowhere():
    other = cell("baselines/core", 0.5).assign(answered=lambda rows: range(len(rows)))
    mine = other.assign(preset="memory/hei_nw", cell="m")
    fields = {"difference": A_OVER_B["difference"] | {"metric": "answered"}, "same": True}
    result = verdict(fields, mine, other)
    assert (result.verdict, result.value) == ("met", 1.0)
    changed = mine.assign(answered=mine["answered"].where(mine["item_id"] != mine["item_id"].iloc[7], -1))
    result = verdict(fields, changed, other)
    assert result.verdict == "not met" and 0.99 < result.value < 1


@pytest.mark.parametrize(("apart", "expected"), [(0.9e-4, "met"), (1.1e-4, "not met"), (math.nan, "not judged")])
def test_what_must_be_the_same_may_differ_by_the_tolerance_and_no_more(apart, expected):
    other = cell("baselines/core", 0.5).assign(first_logprob=-0.25)
    mine = other.assign(preset="memory/hei_nw", cell="m", first_logprob=-0.25 + apart)
    fields = {"difference": A_OVER_B["difference"] | {"metric": "first_logprob"}, "same": True, "tolerance": 1e-4}
    assert verdict(fields, mine, other).verdict == expected


@pytest.mark.parametrize(("rate", "judged"), [(0.0, False), (0.1, False), (0.15, False), (0.16, True)])
@pytest.mark.parametrize("fields", [{"at_least": 0.05}, {"not_below": -0.05}], ids=str)
def test_a_claim_against_a_rival_at_chance_is_not_judged_but_a_control_is(fields, rate, judged):
    """A guess is right in a tenth of the cases."""
    fields = {"difference": A_OVER_B["difference"]} | fields
    cells = cell("memory/hei_nw", 0.6), cell("baselines/core", rate)
    result, control = verdict(fields, *cells), verdict(fields | {"about": "control"}, *cells)
    assert (result.verdict, control.verdict) == ("met" if judged else "not judged", "met")
    if not judged:
        assert result.reason.startswith(f"the rival baselines/core is at chance ({rate:.2f}; a guess: 0.10)")
        assert math.isnan(result.p_holm) and result.value == pytest.approx(0.6 - rate)  # its numbers stand there all the same


def test_a_rival_at_chance_counts_by_its_answers_whatever_is_compared():
    fields = {"ratio": {"a": "memory/hei_nw", "b": "baselines/core", "metric": "latency_ms"}, "at_most": 2.0}
    assert verdict(fields, cell("memory/hei_nw", 0.6), cell("baselines/core", 0.1)).verdict == "not judged"
    assert verdict(fields, cell("memory/hei_nw", 0.6), cell("baselines/core", 0.6)).verdict == "met"
    named = {"difference": A_OVER_B["difference"] | {"metric": "score_may"}, "at_least": 0.0}
    rows = [cell("memory/hei_nw", 0.9), cell("baselines/core", 0.5)]
    low = [table.assign(score_may=table["score"] * (table["preset"] != "baselines/core")) for table in rows]
    assert verdict(named, *low).verdict == "not judged"  # under the policy that is compared it answers nothing


def test_claims_with_a_rival_at_chance_do_not_count_in_their_family():
    claim = {"question": "?", "text": "t", "family": "f", "about": "claim", "difference": A_OVER_B["difference"], "at_least": 0}
    fields = [claim | {"id": suite, "suites": [suite]} for suite in ("episodic", "semantic")]
    rows = [cell("memory/hei_nw", 0.6, suite=suite) for suite in ("episodic", "semantic")]
    rows += [cell("baselines/core", 0.3), cell("baselines/core", 0.0, suite="semantic")]
    verdicts = judge(Criteria.model_validate(HEAD | {"criteria": fields}), pd.concat(rows))
    assert [result.verdict for result in verdicts] == ["met", "not judged"] and verdicts[0].p_holm == verdicts[0].p


def test_a_side_may_be_judged_by_a_column_of_its_own():
    rows = cell("memory/hei_nw", 0.6)
    rows = rows.assign(mine=rows["score"], yours=cell("memory/hei_nw", 0.7)["score"])
    a, b = ({"preset": "memory/hei_nw", "metric": metric} for metric in ("mine", "yours"))
    fields = {"difference": {"a": a, "b": b}, "not_below": -0.2}
    result = verdict(fields, rows)
    assert result.value == pytest.approx(-0.1)
    assert (result.a, result.b) == ("memory/hei_nw, mine", "memory/hei_nw, yours")
    missing = verdict(fields, rows.drop(columns="yours"))
    assert missing.verdict == "not judged" and "no measurement of yours" in missing.reason


def test_a_reason_names_the_bound_that_is_crossed():
    result = verdict({"difference": A_OVER_B["difference"], "at_least": 0}, cell("memory/hei_nw", 0.305), cell("baselines/core", 0.3))
    assert result.reason == "0.005 meets the target (at least 0) but this is not shown: lower bound -0.005 is not above 0.000"


def test_a_verdict_carries_its_numbers():
    result = verdict(A_OVER_B, cell("memory/hei_nw", 0.6), cell("baselines/core", 0.3))
    assert (result.n, result.n_worlds, result.only_a, result.only_b) == (200, 40, 60, 0)
    assert result.value == pytest.approx(0.3) and result.low < 0.3 < result.high
    assert result.p == result.p_holm < 0.001 and result.n_needed < 200
    assert result.cells == ("memory/hei_nw/episodic/200_1337/delayed", "baselines/core/episodic/200_1337/delayed")  # a first


def test_holm_runs_over_the_claims_of_a_family_that_could_be_judged():
    claim = {"question": "?", "text": "t", "family": "f", "about": "claim", "difference": A_OVER_B["difference"]}
    fields = [
        claim | {"id": "small", "suites": ["episodic"], "at_least": 0.01},
        claim | {"id": "large", "suites": ["semantic"], "at_least": 0.01},
        claim | {"id": "absent", "suites": ["babi"], "at_least": 0.01},
        claim | {"id": "equal", "suites": ["episodic"], "not_below": -0.05},
        claim | {"id": "other", "suites": ["episodic"], "at_least": 0.01, "family": "g"},
    ]
    rates = {"episodic": 0.37, "semantic": 0.9}
    rows = [cell("memory/hei_nw", rate, suite=suite) for suite, rate in rates.items()]
    rows += [cell("baselines/core", 0.3, suite=suite) for suite in rates]
    by_id = {result.id: result for result in judge(Criteria.model_validate(HEAD | {"criteria": fields}), pd.concat(rows))}
    assert by_id["large"].p_holm == pytest.approx(2 * by_id["large"].p)
    assert by_id["small"].p_holm == max(by_id["small"].p, by_id["large"].p_holm)
    assert by_id["other"].p_holm == by_id["other"].p
    assert math.isnan(by_id["equal"].p_holm) and "absent" not in by_id


def among_others(n: int, others: int, rate: float = 0.6) -> Verdict:
    """A claim on n questions, five a world, in a family with others that nothing speaks for."""
    claim = {"question": "?", "text": "t", "family": "f", "about": "claim", "difference": A_OVER_B["difference"], "at_least": 0.01}
    suites = ["episodic", *(f"suite_{number}" for number in range(others))]
    fields = [claim | {"id": suite, "suites": [suite]} for suite in suites]
    rows = [cell("baselines/core", 0.2, n=n, suite=suite) for suite in suites]
    rows += [cell("memory/hei_nw", rate if suite == "episodic" else 0.2, n=n, suite=suite) for suite in suites]
    return judge(Criteria.model_validate(HEAD | {"criteria": fields}), pd.concat(rows))[0]


def test_a_claim_that_does_not_survive_holm_is_not_shown():
    assert among_others(200, 0, rate=0.23).verdict == "met"
    result = among_others(200, 4, rate=0.23)
    assert result.verdict == "not shown" and "Holm" in result.reason and result.p < 0.05 < result.p_holm


def test_few_worlds_alone_excuse_no_claim():
    assert among_others(50, 24, rate=0.9).verdict == "met"  # ten worlds and 25 claims: 25 * 2 / 2**10 < .05
    many = among_others(50, 25, rate=0.9)
    assert many.verdict == "not shown" and "Holm" in many.reason and many.p_holm >= 26 * 2 / 2**10


def test_a_claim_on_fewer_than_ten_worlds_is_not_judged():
    result = among_others(45, 0, rate=0.9)
    assert (result.verdict, result.reason) == ("not judged", "45 items in 9 worlds are too few: at least 0 items and 10 worlds")


def _run() -> pd.DataFrame:
    suites = ("episodic", "episodic_cross")
    rates = {"baselines/core": 0.1, "baselines/span_short": 0.1, "controls/random_facts": 0.15, "controls/oracle": 0.95}
    rates |= dict.fromkeys(RAGS, 0.8)
    shown, columns = {"baselines/core": 0.7, "baselines/span_short": 0.9}, {"em_norm": 0.3, "em_raw": 0.3}
    later = [cell(preset, rate, suite=suite, **columns) for suite in suites for preset, rate in rates.items()]
    now = [cell(preset, rate, regime="immediate", **columns) for preset, rate in shown.items()]
    return pd.concat([*later, *now], ignore_index=True)


def test_the_files_are_judged_whole():
    by_id = {result.id: result for result in judge(load_criteria(), _run())}
    due = ["oracle_ceiling/episodic", "window_over_random/episodic", "oracle_over_random", "rag_delayed/episodic", "delayed_floor/episodic",
           "gold_in_prompt/episodic", "refusals_baseline/episodic", "not_saturated/episodic"]  # fmt: skip
    assert [by_id[name].verdict for name in due] == ["met"] * len(due)
    assert by_id["rag_exact/episodic"].verdict == "not judged" and by_id["rag_exact/episodic"].reason
    assert "delayed_recall" not in by_id  # it is about a memory, of which the run has no row


def test_verdicts_on_disk_are_strict_json(tmp_path):
    verdicts = judge(load_criteria(), _run())
    write_criteria(tmp_path / "criteria.json", verdicts)
    content = json.loads((tmp_path / "criteria.json").read_text(), parse_constant=lambda name: pytest.fail(f"{name} in the file"))
    assert [entry["id"] for entry in content["criteria"]] == [entry.id for entry in verdicts]
    absent = next(entry for entry in content["criteria"] if entry["id"] == "rag_exact/episodic")
    assert absent["value"] is None and absent["p_holm"] is None and absent["cells"] == []
    assert {"text", "value", "low", "high", "n", "target", "verdict", "cells", "question", "reason"} <= set(absent)
