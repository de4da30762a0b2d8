"""The same answers under three policies of saying "unknown": who says it, what it earns, and from which rows the thresholds come."""

import math

import numpy as np
import pandas as pd
import pytest

from hippo_core.results.policies import ABSTAINED, SCORES, with_policies
from tests.results.invented import RAGS, cell, verdict

OVER_RAG = {"difference": {"a": "memory/hei_nw", "b": "best_rag"}, "at_least": 0.05}
CALIBRATED = {"value": {"of": "memory/hei_nw", "metric": "score_calibrated"}, "at_least": 0.5}


def answers(margin, forced, answerable=True, preset="memory/hei_nw", **columns) -> pd.DataFrame:
    """A row an answer: its margin, the score of its forced answer; the score is that of a preset that never says "unknown"."""
    rows = cell(preset, 1.0, n=len(margin), **columns).assign(unknown_margin=margin, score_forced=forced, score=forced, abstained=0.0)
    return rows.assign(**{name: columns.get(name, math.nan) for name in ("evidence",)}, answer=rows["answer"] if answerable else "unknown")


def scores_and_abstentions(rows):
    """The three scores and who said "unknown", of each row."""
    return rows[[*SCORES, *ABSTAINED]].to_numpy(dtype=float).T.tolist()


def test_the_model_may_say_unknown_above_a_margin_of_0_and_never_where_it_may_not():
    rows = pd.concat([answers([0.1, -0.1, 0.1, -0.1], [1, 1, 0, 0]), answers([0.1, -0.1], [0, 0], answerable=False)])
    result = with_policies(rows, rows.iloc[:0])
    assert result["score_may"].tolist() == [0, 1, 0, 0, 1, 0]
    assert result["score_never"].tolist() == [1, 1, 0, 0, 0, 0]
    assert result["abstained_may"].tolist() == [1, 0, 1, 0, 1, 0]
    assert result["score_calibrated"].isna().all() and result["abstained_calibrated"].isna().all()
    assert set(result["calibrated_on"]) == {"no validation questions of this condition"}
    assert result.drop(columns=[*SCORES, *ABSTAINED, "calibrated_on"]).equals(rows)


def test_what_unknown_earns_is_what_it_earned_where_it_was_said():
    rows = answers([1.0, 1.0], [1.0, 1.0]).assign(abstained=[1.0, 0.0], score=[0.25, 1.0])
    assert with_policies(rows, rows.iloc[:0])["score_may"].tolist() == [0.25, 0.0]


def test_rows_of_earlier_versions_have_no_scores_under_a_policy():
    old = cell("memory/hei_nw", 0.5)
    both = pd.concat([old, answers([1.0], [1.0])], ignore_index=True)
    for rows in (old, both):
        result = with_policies(rows, rows)
        earlier = result[: len(old)]
        assert earlier[[*SCORES, "abstained_may", "abstained_calibrated"]].isna().all(axis=None)
        assert set(earlier["calibrated_on"]) == {'the rows do not say how near "unknown" was'}
    assert result[[*SCORES, *ABSTAINED]].iloc[-1].notna().all()


def asked_both(margin, evidence=math.nan, n=20, **columns):
    """Answerable questions whose margins are well below `margin`, and unanswerable ones well above it."""
    known = answers(np.full(n, margin - 1), np.ones(n), evidence=evidence, **columns)
    return pd.concat(
        [known, answers(np.full(n, margin + 1), np.zeros(n), answerable=False, evidence=evidence, **columns)], ignore_index=True
    )


def test_rows_of_earlier_versions_choose_no_threshold_wherever_they_stand():
    asked, old = asked_both(3.0), cell("memory/hei_nw", 0.5)
    wanted = with_policies(asked, asked)[[*SCORES, *ABSTAINED, "calibrated_on"]]
    assert wanted["score_calibrated"].eq(1).all()
    for rows in ([old, asked], [asked, old], [old, old, asked]):
        assert with_policies(asked, pd.concat(rows, ignore_index=True))[wanted.columns].equals(wanted)


@pytest.mark.parametrize("margin", [-5, 3])
def test_the_thresholds_stand_between_what_can_be_answered_and_what_cannot(margin):
    test = answers([margin - 1.2, margin + 1.2], [1, 0])
    result = with_policies(test, asked_both(margin))
    assert result["abstained_calibrated"].tolist() == [0, 1]
    assert result["calibrated_on"].iloc[0].endswith("nats, from 20 answerable and 20 unanswerable validation questions")


def test_little_evidence_is_unknown_and_none_is_less_than_any():
    known, none = (asked_both(-3).iloc[half] for half in (slice(20), slice(20, None)))
    tuning = pd.concat([known.assign(evidence=0.8), none.assign(evidence=0.2)]).assign(unknown_margin=-3.0)
    test = answers([-3.0] * 3, [1, 0, 0]).assign(evidence=[0.9, 0.1, math.nan])
    assert with_policies(test, tuning)["abstained_calibrated"].tolist() == [0, 1, 1]
    assert with_policies(test, tuning.assign(evidence=math.nan))["abstained_calibrated"].tolist() == [0, 0, 0]


def test_unknown_may_cost_the_answerable_questions_2_in_100_and_no_more():
    for lost, expected in ((2, 1), (3, 0)):
        margins = np.where(np.arange(100) < lost, 2.0, -9.0)
        tuning = pd.concat([answers(margins, np.ones(100)), answers(np.full(100, 2.0), np.zeros(100), answerable=False)], ignore_index=True)
        assert with_policies(answers([2.0], [0]), tuning)["abstained_calibrated"].tolist() == [expected]


def test_with_answerable_questions_alone_it_is_never_unknown():
    tuning = answers([-1, 5, 5], [1, 0, 0])
    result = with_policies(answers([7.0], [0]), tuning)
    assert result["abstained_calibrated"].tolist() == [0]
    assert result["calibrated_on"].tolist() == ["never unknown, from 3 answerable validation questions"]


def test_each_condition_has_thresholds_of_its_own_and_no_test_row_has_a_say():
    conditions = {"preset": "baselines/core", "preset_overrides": "k=2", "encoder": "minilm", "model": "other", "suite": "semantic",
                  "suite_overrides": "n_facts=8", "regime": "immediate", "profile": "hard"}  # fmt: skip
    for name, value in conditions.items():
        usual = dict.fromkeys(["preset_overrides", "suite_overrides"], "")
        other = asked_both(3).assign(**usual | {name: value})
        tuning = pd.concat([asked_both(-5).assign(**usual), other], ignore_index=True)
        test = pd.concat([answers([-3.0], [0]).assign(**usual), answers([-3.0], [0]).assign(**usual | {name: value})], ignore_index=True)
        result = with_policies(test, tuning)["abstained_calibrated"].tolist()
        assert result == [1, 0], name
        altered = test.assign(answer="unknown", score=1 - test["score"], score_forced=1 - test["score_forced"])
        assert with_policies(altered, tuning)["abstained_calibrated"].tolist() == result


def test_the_unanswerable_profile_counts_to_its_own_and_others_fall_back_on_the_default_one():
    known, none = asked_both(-5).iloc[:20], asked_both(-5).iloc[20:]
    usual = pd.concat([known, none.assign(profile="unanswerable")])
    explored = pd.concat(
        [asked_both(3).iloc[:20].assign(profile="explore"), asked_both(3).iloc[20:].assign(profile="explore_unanswerable")]
    )
    test = answers([-3.0], [0])
    for profile, expected in {"default": 1, "unanswerable": 1, "reworded": 1, "explore": 0, "explore_unanswerable": 0}.items():
        result = with_policies(test.assign(profile=profile), pd.concat([usual, explored]))
        assert result["abstained_calibrated"].tolist() == [expected], profile
        assert ("of profile default" in result["calibrated_on"].iloc[0]) == (profile == "reworded")
    switched = pd.concat([known, none.assign(suite_overrides="unanswerable=true")])
    assert with_policies(test, switched)["abstained_calibrated"].tolist() == [1]


def test_a_criterion_under_a_policy_is_judged_with_what_calibrated_it_and_else_says_why_not():
    test = answers(np.where(np.arange(200) < 150, -6.0, 6.0), np.arange(200) < 150)
    result = verdict(CALIBRATED, test, validation=asked_both(0))
    assert (result.verdict, result.value, result.metric) == ("met", 0.75, "score_calibrated")
    assert "from 20 answerable and 20 unanswerable validation questions" in result.reason
    unjudged = verdict(CALIBRATED, test)
    assert unjudged.verdict == "not judged"
    assert unjudged.reason == "no score_calibrated of memory/hei_nw: no validation questions of this condition"
    assert verdict(CALIBRATED | {"value": {"of": "memory/hei_nw", "metric": "score_never"}}, test).value == 0.75
    assert "how near" in verdict(CALIBRATED, cell("memory/hei_nw", 0.5)).reason


def test_the_best_rag_is_chosen_under_the_policy_of_the_criterion():
    """The first rag is the better one where it may say nothing is known, the second where it may not."""

    def rag(name, margin, rate, **columns):
        return answers(np.full(200, margin), np.arange(200) < 200 * rate, preset=name, encoder="", **columns)

    cells = [rag(RAGS[0], 1.0, 0.9), rag(RAGS[1], -1.0, 0.6)]
    pair = {"a": "memory/hei_nw", "b": "best_rag"}
    mine = answers(np.full(200, -1.0), np.ones(200))
    for metric, best in {"score_may": RAGS[1], "score_never": RAGS[0], "score": RAGS[0]}.items():
        given = verdict(OVER_RAG | {"difference": {**pair, "metric": metric}}, mine, *cells, validation=pd.concat(cells))
        assert f"best_rag is {best}, chosen on validation worlds" in given.reason.replace(" (own)", ""), metric
