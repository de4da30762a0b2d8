"""What a plan cannot show is known from its worlds alone, is what the best data cannot show either, and excuses nothing else."""

import numpy as np
import pandas as pd
import pytest

from hippo_core.results.criteria import Criteria, judge
from hippo_core.results.criteria.power import planned_claims, read_declared, sentence, underpowered, write_declared
from hippo_core.results.statistics.paired import least_p, permutation_test
from tests.results.invented import A_OVER_B, HEAD, cell

# a control, so that its rival may score nothing
CLAIM = {"question": "?", "text": "t", "family": "f", "about": "control", "difference": A_OVER_B["difference"], "at_least": 0.01}
WORLDS = {"semantic": 14, "episodic": 13, "episodic_cross": 13, "babi": 11, "spatial": 11}
ALPHA = 0.05 / 32  # so that ten worlds can be too few


def claims_on(suites, **fields) -> Criteria:
    return Criteria.model_validate(
        HEAD | {"alpha": ALPHA, "criteria": [CLAIM | {"id": suite, "suites": [suite]} | fields for suite in suites]}
    )


def rows(rates, worlds=WORLDS, presets=("memory/hei_nw", "baselines/core")) -> pd.DataFrame:
    """Cells of a memory and of core, five questions a world; `rates` by suite: how often the memory is right, core being wrong always."""
    conditions = [(suite, preset, rate if preset == presets[0] else 0.0) for suite, rate in rates.items() for preset in presets]
    return pd.concat([cell(preset, rate, n=5 * worlds[suite], suite=suite) for suite, preset, rate in conditions], ignore_index=True)


def plan_of(table) -> pd.DataFrame:
    """The cells of a table as they are planned, their numbers not known yet."""
    plan = table.drop_duplicates("cell").drop(columns=["score", "rung", "hops", "kind", "latency_ms"])
    return plan.assign(item_id="", world="", n_worlds=plan["n"] // 5)


@pytest.mark.parametrize("n_worlds", [2, 5, 14, 20])
def test_no_data_have_a_smaller_p_than_the_least(n_worlds):
    random = np.random.default_rng(n_worlds)
    p_values = [permutation_test(random.random(n_worlds) + shift, range(n_worlds)) for shift in (0.0, -0.5, 1.0)]
    assert min(p_values) >= least_p(n_worlds)
    assert n_worlds > 14 or min(p_values) == least_p(n_worlds)


def test_the_least_p_of_a_plan_is_that_of_the_best_data():
    criteria, best = claims_on(WORLDS), rows(dict.fromkeys(WORLDS, 1.0))
    planned = {claim.id: claim for claim in planned_claims(criteria, plan_of(best))}
    judged = {result.id: result for result in judge(criteria, best)}
    assert {name: result.p_holm for name, result in judged.items()} == {name: claim.least_p for name, claim in planned.items()}
    assert {name: claim.n_worlds for name, claim in planned.items()} == WORLDS
    few = {claim.id for claim in underpowered(criteria, list(planned.values()))}
    assert few == {name for name, result in judged.items() if result.verdict != "met"} == {"babi", "spatial"}


def test_what_a_plan_will_not_judge_makes_no_claim_harder():
    suites = ["spatial", "episodic"]
    alone = planned_claims(claims_on(suites), plan_of(rows(dict.fromkeys(suites, 1.0))))
    others = [
        CLAIM | {"id": "absent", "suites": ["semantic"]},  # no cells
        CLAIM | {"id": "small", "suites": ["episodic"], "min_items": 66},
        CLAIM | {"id": "rung", "suites": ["episodic"], "where": {"rung": ["exact"]}},  # how many items is not known
        CLAIM | {"id": "other", "suites": ["episodic"], "family": "g"},
        {**CLAIM, "id": "equal", "suites": ["episodic"], "at_least": None, "not_below": -0.05},
    ]
    claims_as_data = [criterion.model_dump(exclude_none=True) for criterion in claims_on(suites).criteria]
    more = planned_claims(
        Criteria.model_validate(HEAD | {"criteria": [*claims_as_data, *others]}), plan_of(rows(dict.fromkeys(suites, 1.0)))
    )
    assert [claim for claim in more if claim.family == "f"] == alone
    assert [(claim.id, claim.n_claims) for claim in more if claim.family == "g"] == [("other", 1)]


def test_the_best_of_a_group_may_be_any_of_its_cells():
    criteria = claims_on(["episodic"], difference={"a": "memory/hei_nw", "b": "best_core"})
    table = rows({"episodic": 1.0}, presets=("memory/hei_nw", "baselines/core", "baselines/span_short"))
    [claim] = planned_claims(criteria, plan_of(table))
    assert set(claim.cells) == set(table["cell"])


def test_a_sentence_names_them_and_the_worlds_that_would_do():
    criteria = claims_on(WORLDS)
    claims = planned_claims(criteria, plan_of(rows(dict.fromkeys(WORLDS, 1.0))))
    text = sentence(criteria, underpowered(criteria, claims))
    assert text == "2 claims cannot be shown with so few worlds, whatever the data: babi, spatial; at least 13 worlds would be needed"
    assert 5 * least_p(13) <= criteria.alpha < 5 * least_p(12)
    assert sentence(criteria, []) == ""


def declared(worlds=WORLDS):
    criteria = claims_on(WORLDS)
    return underpowered(criteria, planned_claims(criteria, plan_of(rows(dict.fromkeys(WORLDS, 1.0), worlds))))


def verdicts(rates, declared_claims, worlds=WORLDS):
    return {result.id: result for result in judge(claims_on(WORLDS), rows(rates, worlds), declared=declared_claims)}


def test_what_was_declared_is_not_judged_where_only_its_p_is_missing():
    by_id = verdicts(dict.fromkeys(WORLDS, 1.0), declared())
    assert by_id["spatial"].verdict == by_id["babi"].verdict == "not judged"
    assert "declared before the run: 11 worlds allow no p below 0.002 after Holm's correction over 5 claims" in by_id["spatial"].reason
    assert {by_id[name].verdict for name in ("semantic", "episodic", "episodic_cross")} == {"met"}


def test_without_a_declaration_it_is_not_shown():
    by_id = verdicts(dict.fromkeys(WORLDS, 1.0), [claim for claim in declared() if claim.id != "babi"])
    assert (by_id["babi"].verdict, by_id["spatial"].verdict) == ("not shown", "not judged")


def test_a_declaration_excuses_no_other_shortfall():
    by_id = verdicts(dict.fromkeys(WORLDS, 1.0) | {"spatial": 0.0, "babi": 0.04}, declared())
    assert by_id["spatial"].verdict == "not met" and "does not meet the target" in by_id["spatial"].reason
    assert by_id["babi"].verdict == "not shown" and "lower bound" in by_id["babi"].reason


def test_a_declaration_is_no_hindrance_and_holds_for_its_model_and_its_worlds_only():
    assert verdicts({"babi": 1.0}, declared())["babi"].verdict == "met"  # no other claim of the family could be judged
    few = declared({**WORLDS, "spatial": 10})
    assert verdicts(dict.fromkeys(WORLDS, 1.0), few)["spatial"].verdict == "not shown"  # it rests on eleven worlds, of ten it was said
    other = judge(claims_on(WORLDS), rows(dict.fromkeys(WORLDS, 1.0)).assign(model="other"), declared=declared())
    assert {result.verdict for result in other} == {"met", "not shown"}


def test_it_is_read_as_it_was_written(tmp_path):
    write_declared(tmp_path / "power.json", declared())
    assert read_declared(tmp_path / "power.json") == declared()
    assert read_declared(tmp_path / "none.json") == []
