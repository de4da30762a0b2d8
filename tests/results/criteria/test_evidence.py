"""Which rows speak for a criterion, and when they are too few or do not fit together."""

import math

import numpy as np
import pandas as pd
import pytest

from hippo_core.errors import LabError
from hippo_core.results.criteria import Criteria, judge, load_criteria
from hippo_core.results.criteria.criterion import Condition
from tests.results.invented import A_OVER_B, RAGS, cell, criteria, verdict


def test_seeds_are_pooled_and_the_largest_size_of_each_counts():
    rates = {"memory/hei_nw": 0.6, "baselines/core": 0.3}
    cells = [cell(preset, rate, n, seed) for preset, rate in rates.items() for n in (50, 200) for seed in (1, 2)]
    result = verdict(A_OVER_B, *cells)
    assert (result.n, result.n_worlds) == (400, 80)
    assert all("/200_" in name for name in result.cells)


def test_each_model_is_judged_apart():
    strong = [cell("memory/hei_nw", 0.6, model="big"), cell("baselines/core", 0.3, model="big")]
    weak = [cell("memory/hei_nw", 0.3), cell("baselines/core", 0.3)]
    results = judge(criteria(**A_OVER_B), pd.concat([*weak, *strong]))
    assert [(result.model, result.verdict) for result in results] == [("big", "met"), ("tiny", "not met")]


def test_a_preset_without_window_stands_for_both_regimes():
    fields = {"difference": {"a": "controls/oracle", "b": "baselines/span_short"}, "not_below": -0.05, "regime": "immediate"}
    oracle, later = cell("controls/oracle", 0.9), cell("baselines/span_short", 0.1)
    now = cell("baselines/span_short", 0.8, regime="immediate")
    result = verdict(fields, oracle, now, later)
    assert result.verdict == "met" and result.value == pytest.approx(0.1)
    assert judge(criteria(**fields), pd.concat([oracle, later])) == []  # nobody asked what the window is worth


def test_a_preset_of_ones_own_that_uses_the_window_stands_for_the_regime_of_its_rows_only(other_lab):
    fields = {"value": {"of": "mine/recent"}, "at_least": 0.5, "regime": "immediate"}
    assert judge(criteria(**fields), cell("mine/recent", 0.9)) == []
    assert verdict(fields, cell("mine/recent", 0.9, regime="immediate")).verdict == "met"


def test_other_overrides_profiles_and_stages_stay_out():
    fields = {
        "preset_overrides": "k=5",
        "suite_overrides": "n_facts=8",
        "encoder": "minilm",
        "profile": "hard",
        "stage": "pre",
        "step": "x",
    }
    other = [cell("memory/hei_nw", 0.1, **{name: value}) for name, value in fields.items()]
    rows = [cell("memory/hei_nw", 0.6), cell("baselines/core", 0.3), *other]
    assert verdict(A_OVER_B, *rows).value == pytest.approx(0.3)


def test_stages_and_overrides_can_be_compared():
    conditions = {"a": {"preset": "memory/hei_nw", "stage": "post_1"}, "b": {"preset": "memory/hei_nw", "stage": "pre"}}
    fields = {"difference": conditions, "at_least": 0.03}
    assert verdict(fields, cell("memory/hei_nw", 0.5, stage="post_1"), cell("memory/hei_nw", 0.3, stage="pre")).value == pytest.approx(0.2)
    fields = {"difference": {"a": "memory/hei_nw", "b": {"preset": "memory/hei_nw", "overrides": "gate=off"}}, "not_below": -0.01}
    on, off = cell("memory/hei_nw", 0.5), cell("memory/hei_nw", 0.5, preset_overrides="gate=off", cell="off")
    assert verdict(fields, on, off).verdict == "met"


OVER_RAG = {"difference": {"a": "memory/hei_nw", "b": "best_rag"}, "at_least": 0.05}
UNDER_ORACLE = {"difference": {"a": "best_rag", "b": "controls/oracle"}, "not_below": -0.1, "margin": 0.1}


def rags(*rates, names=RAGS, **columns):
    return [cell(name, rate, **columns) for name, rate in zip(names, rates, strict=True)]


def tuned(*rates, **columns):
    """Validation rows of the three rags."""
    return pd.concat(rags(*rates, n=80, **columns), ignore_index=True)


def test_the_best_rag_is_the_one_chosen_on_validation_worlds():
    result = verdict(OVER_RAG, cell("memory/hei_nw", 0.9), *rags(0.5, 0.7, 0.6), validation=tuned(0.1, 0.2, 0.3))
    assert result.value == pytest.approx(0.3) and "rag_hybrid, chosen on validation worlds" in result.reason


def test_a_few_validation_worlds_choose_nothing():
    few = pd.concat(rags(0.1, 0.2, 0.3, n=75), ignore_index=True)
    assert "rag_dense, the highest of 3" in verdict(OVER_RAG, cell("memory/hei_nw", 0.9), *rags(0.5, 0.7, 0.6), validation=few).reason


@pytest.mark.parametrize("chosen", [False, True], ids=["on test worlds", "on validation worlds"])
def test_costs_are_judged_against_the_best_and_not_against_the_dearest(chosen):
    cheaper = {"ratio": {"a": "memory/hei_nw", "b": "best_rag", "metric": "latency_ms"}, "at_most": 0.99}
    spread = np.tile([0.9, 1.1], 100)
    cells = [cell(name, rate).assign(latency_ms=ms * spread) for name, rate, ms in zip(RAGS, (0.5, 0.7, 0.6), (9.0, 2.0, 1.0), strict=True)]
    validation = pd.concat(cells, ignore_index=True) if chosen else None
    result = verdict(cheaper, cell("memory/hei_nw", 0.9).assign(latency_ms=4.0 * spread), *cells, validation=validation)
    assert result.value == pytest.approx(2.0) and "rag_dense" in result.reason and result.verdict == "not met"
    assert ("chosen on validation worlds" in result.reason) == chosen


def right_on(rows, **rungs):
    """The rows of a cell with this share of each rung's items right, and of others none."""
    rank = rows.groupby("rung").cumcount() / rows.groupby("rung")["rung"].transform("size")
    return rows.assign(score=(rank < rows["rung"].map(rungs).fillna(0.0)).astype(float))


@pytest.mark.parametrize("where", [{"rung": ["paraphrase"]}, {"kind": ["what"]}, {"hops": [2]}], ids=str)
def test_the_best_rag_of_some_items_is_the_one_of_all_validation_items(where):
    """One is best on the items that a criterion is about, another on all: it is the other that counts."""
    every = [cell(name, 0.0, n=800) for name in RAGS]
    shares = [{"paraphrase": 0.6}, {"paraphrase": 0.2, "exact": 0.9, "partial": 0.9}, {"paraphrase": 0.5}]
    rows = [right_on(table, **some) for table, some in zip(every, shares, strict=True)]
    memory = right_on(cell("memory/hei_nw", 0.0, n=800), paraphrase=0.9)
    mark = {"kind": lambda of: np.where(of["rung"] == "paraphrase", "what", "who"), "hops": lambda of: 1 + (of["rung"] == "paraphrase")}
    memory, *rows = (table.assign(**{name: mark[name] for name in where if name in mark}) for table in (memory, *rows))
    result = verdict(OVER_RAG | {"where": where}, memory, *rows, validation=pd.concat(rows, ignore_index=True))
    assert "best_rag is baselines/rag_dense, chosen on validation worlds" in result.reason
    assert (result.n, round(result.value, 3)) == (200, 0.7)


@pytest.mark.parametrize(("rule", "widened"), [({"at_least": 0.05}, False), ({"within": [-0.1, 0.1]}, True)], ids=str)
def test_a_range_is_met_more_easily_by_the_best_so_its_interval_is_wider(rule, widened):
    fields = {"difference": OVER_RAG["difference"], **rule}
    rows = [cell(name, rate) for name, rate in zip(RAGS, (0.5, 0.7, 0.6), strict=True)]
    assert ("interval at 98.3%" in verdict(fields, cell("memory/hei_nw", 0.75), *rows).reason) == widened


def test_a_group_may_hold_groups_and_never_itself():
    groups = {"best_core": ["baselines/core"], "all": ["best_core", {"preset": "best_core", "overrides": "k=3"}]}
    values = {"groups": groups, "criteria": []}
    members = Criteria.model_validate(values).members(Condition(preset="all"))
    assert [(member.preset, member.overrides) for member in members] == [("baselines/core", ""), ("baselines/core", "k=3")]
    with pytest.raises(ValueError, match="holds itself"):
        Criteria.model_validate(values | {"groups": {"a": ["b"], "b": ["a"]}})


def test_what_the_best_rag_shows_on_validation_worlds_is_told():
    shown = tuned(0.1, 0.2, 0.3).assign(n_shown=3, recall_1=0.5, recall_3=0.75)
    rows = [cell("memory/hei_nw", 0.9), *rags(0.5, 0.7, 0.6)]
    assert verdict(OVER_RAG, *rows, validation=shown).rival_shows == pytest.approx(0.75)
    assert math.isnan(verdict(OVER_RAG, *rows, validation=tuned(0.1, 0.2, 0.3)).rival_shows)
    assert math.isnan(verdict(OVER_RAG, *rows).rival_shows)


@pytest.mark.parametrize(
    "other",
    [{"suite": "semantic"}, {"profile": "hard"}, {"model": "big"}, {"suite_overrides": "n_facts=8"}, {"preset_overrides": "k=1"}],
    ids=str,
)
def test_validation_worlds_of_something_else_choose_nothing(other):
    cells = [cell("memory/hei_nw", 0.9), *rags(0.5, 0.7, 0.6)]
    assert "rag_dense, the highest of 3" in verdict(OVER_RAG, *cells, validation=tuned(0.1, 0.2, 0.3, **other)).reason


def test_validation_worlds_of_some_rags_choose_nothing():
    weakest = tuned(0.9, 0.1, 0.1).query("preset == 'baselines/rag_bm25'")
    result = verdict(OVER_RAG, cell("memory/hei_nw", 0.9), *rags(0.5, 0.7, 0.6), validation=weakest)
    assert "rag_dense, the highest of 3" in result.reason


def test_where_the_best_would_help_the_claim_the_interval_is_widened():
    cells = [*rags(0.5, 0.7, 0.6), cell("controls/oracle", 0.75)]
    wide, narrow = verdict(UNDER_ORACLE, *cells), verdict(UNDER_ORACLE, *cells, validation=tuned(0.1, 0.3, 0.2))
    assert wide.value == narrow.value and wide.low < narrow.low and "98.3%" in wide.reason and "interval at" not in narrow.reason


def test_a_claim_against_rag_is_one_against_a_published_encoder():
    own, published = rags(0.5, 0.85, 0.85), rags(0.7, 0.6, names=RAGS[1:], encoder="minilm", cell="m")
    result = verdict(OVER_RAG, cell("memory/hei_nw", 0.9), *own, *published)
    assert result.value == pytest.approx(0.2)
    assert result.reason.endswith("best_rag is baselines/rag_dense (minilm), the highest of 3 on test worlds")
    tuning = pd.concat([tuned(0.1, 0.9, 0.9), *rags(0.2, 0.3, names=RAGS[1:], encoder="minilm", n=80)])
    chosen = verdict(OVER_RAG, cell("memory/hei_nw", 0.9), *own, *published, validation=tuning)
    assert chosen.reason.endswith("best_rag is baselines/rag_hybrid (minilm), chosen on validation worlds")


@pytest.mark.parametrize("validation", [None, tuned(0.3, 0.1, 0.2)])
def test_a_claim_against_the_models_own_vectors_says_so(validation):
    result = verdict(OVER_RAG, cell("memory/hei_nw", 0.9), *rags(0.5, 0.7, 0.6), validation=validation)
    assert result.reason.endswith("worlds; rag with the model's own vectors")


@pytest.mark.parametrize(
    "fields, reason",
    [
        (A_OVER_B | {"where": {"rung": ["exact"]}}, "50 items in 40 worlds are too few: at least 200 items and 20 worlds"),
        (A_OVER_B | {"min_items": 201}, "200 items in 40 worlds are too few"),
        ({"value": {"of": "baselines/core", "metric": "contradiction"}, "at_most": 0.5, "needs": "a later part"}, "needs a later part"),
    ],
)
def test_what_cannot_be_judged_says_why(fields, reason):
    result = verdict(fields, cell("memory/hei_nw", 0.6), cell("baselines/core", 0.3))
    assert result.verdict == "not judged" and reason in result.reason and math.isnan(result.value)


def test_a_claim_for_a_rung_is_judged_with_enough_items():
    result = verdict(A_OVER_B | {"where": {"rung": ["exact"]}}, cell("memory/hei_nw", 0.6, n=800), cell("baselines/core", 0.3, n=800))
    assert (result.n, result.verdict) == (200, "met")


def test_sides_of_other_seeds_are_not_judged():
    result = verdict(A_OVER_B, cell("memory/hei_nw", 0.6, seed=1), cell("baselines/core", 0.3, seed=2))
    assert (result.verdict, result.reason) == ("not judged", "the two sides share no cell of one size and seed")


def test_shifted_answers_are_no_evidence():
    shifted = cell("memory/hei_nw", 0.6)
    result = verdict(A_OVER_B, shifted.assign(answer=np.roll(shifted["answer"].to_numpy(), 1)), cell("baselines/core", 0.3))
    assert result.verdict == "not judged" and "cannot pair" in result.reason and "answer" in result.reason


def test_two_cells_of_the_same_items_are_no_evidence():
    result = verdict(A_OVER_B, cell("memory/hei_nw", 0.6), cell("memory/hei_nw", 0.6).assign(cell="again"), cell("baselines/core", 0.3))
    assert result.verdict == "not judged" and "several cells hold the same items" in result.reason


BOTH = ("memory/hei_nw", "baselines/core")


@pytest.mark.parametrize(
    ("presets", "fields"),
    [(BOTH[:1], {}), (BOTH[1:], {}), (BOTH, {"suites": ["babi"]}), (BOTH, {"worlds": ["n_facts=8"]}), (BOTH, {"profiles": ["hard"]})],
    ids=str,
)
def test_a_run_is_not_asked_what_it_does_not_hold(presets, fields):
    assert judge(criteria(**A_OVER_B | fields), pd.concat([cell(preset, 0.5) for preset in presets])) == []


def test_an_empty_run_is_asked_nothing():
    assert judge(load_criteria(), cell("baselines/core", 0.5).iloc[:0]) == []


def test_rows_without_their_cells_are_an_error():
    with pytest.raises(LabError, match="need the columns cell"):
        judge(criteria(**A_OVER_B), cell("baselines/core", 0.5).drop(columns="cell"))


def test_rows_of_two_splits_are_an_error():
    with pytest.raises(LabError, match="one split"):
        judge(criteria(**A_OVER_B), pd.concat([cell("baselines/core", 0.5, split="test"), cell("baselines/core", 0.5, split="val")]))


def test_unscored_items_do_not_count():
    fields = {"value": {"of": "baselines/core", "metric": "success"}, "at_least": 0.1, "min_items": 100}
    rows = cell("baselines/core", 0.6)
    half = rows.assign(success=rows["score"].where(rows.index < 99))
    assert "99 items in 20 worlds are too few" in verdict(fields, half).reason
    assert verdict(fields | {"min_items": 99}, half).verdict == "met"
