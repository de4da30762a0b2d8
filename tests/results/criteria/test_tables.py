"""Criteria of an experiment's table, on made-up rows: pairs are rows of one unit, sides are those that the criterion names, clusters its
own."""

import math
from itertools import product

import pandas as pd
import pytest

from hippo_core.results.criteria import Criteria, TableRows, judge_tables
from hippo_core.results.criteria.criterion import TableCriterion
from hippo_core.results.statistics.interval import cluster_interval

MINE = "mine:MINE"
TEXTS, LAYERS, SEEDS = 12, 15, (1, 2)
HALF, NOTHING = {"share": 0.5}, {"share": 0.0}


def rows() -> pd.DataFrame:
    """The loss of each text, layer and seed. A text's own part is large; a half costs 1.0 in every other text, 1.1 in the others."""
    made = []
    for share in (0.0, 0.5):
        for seed, text, layer in product(SEEDS, range(TEXTS), range(LAYERS)):
            columns = {"share": share, "seed": seed, "model": "m", "cell": f"{share}-{seed}"}
            loss = 2 + text + layer / 100 + (share and 1 + text % 2 / 10)
            made.append({"layer": layer, "text": f"t{text}", "loss": loss, **columns})
    return pd.DataFrame(made)


TABLE = TableRows(MINE, "test", "layer", "text", rows(), ("loss",))


def judged(*criteria_fields, table=TABLE):
    """The verdicts on criteria that say this besides what all of them say."""
    usual = {"question": "Q", "text": "t", "about": "claim", "experiment": MINE}
    criteria = [TableCriterion.model_validate({"id": f"c{number}", **usual, **fields}) for number, fields in enumerate(criteria_fields)]
    return judge_tables(Criteria(groups={}, criteria=(), tables=tuple(criteria)), [table])


def test_a_difference_is_that_of_its_first_side_less_its_second():
    pair = {"difference": {"a": HALF, "b": NOTHING, "metric": "loss"}, "at_least": 0.5}
    [result] = judged(pair)
    assert result.value == pytest.approx(1.05) and result.mean_a - result.mean_b == pytest.approx(1.05) and result.verdict == "met"
    assert (result.a, result.b, result.cells) == ("share=0.5", "share=0.0", ("0.5-1", "0.5-2", "0.0-1", "0.0-2"))
    [other] = judged({**pair, "difference": {"a": NOTHING, "b": HALF, "metric": "loss"}})
    assert other.value == pytest.approx(-1.05) and other.verdict == "not met"


def test_a_ratio_is_that_of_its_first_side_to_its_second():
    [result] = judged({"ratio": {"a": HALF, "b": NOTHING, "metric": "loss"}, "at_most": 3.0})
    means = rows().groupby("share")["loss"].mean()
    assert result.value == pytest.approx(means[0.5] / means[0.0]) and result.value > 1


def test_rows_are_paired_by_their_unit_and_intervals_go_by_their_clusters_a_seed_apart():
    pair = {"difference": {"a": HALF, "b": NOTHING, "metric": "loss"}, "at_least": 0.5}
    [pairs] = judged(pair)
    assert (pairs.n, pairs.n_worlds) == (TEXTS * LAYERS * len(SEEDS), TEXTS * len(SEEDS))
    [value] = judged({"value": {"of": HALF, "metric": "loss"}, "at_most": 20.0})
    half = rows().query("share == 0.5")
    due = cluster_interval(half["loss"].to_numpy(), half["text"] + half["seed"].astype(str), bounds=None)
    assert (value.value, value.low, value.high) == pytest.approx((due.mean, due.low, due.high)) and value.n_worlds == TEXTS * len(SEEDS)
    by_unit = cluster_interval(half["loss"].to_numpy(), half["layer"].astype(str), bounds=None)
    assert value.high - value.low > 4 * (by_unit.high - by_unit.low)


def test_claims_of_one_family_are_corrected_together():
    pair = {"difference": {"a": HALF, "b": NOTHING, "metric": "loss"}, "at_least": 0.5}
    alone, others = judged(pair), judged(*[{**pair, "family": "one"}] * 3, {**pair, "family": "other"})
    assert alone[0].p_holm == alone[0].p
    assert [result.p_holm for result in others] == pytest.approx([3 * alone[0].p] * 3 + [alone[0].p])


def test_a_side_is_the_rows_that_have_all_of_its_values():
    conditions = {"a": {**HALF, "seed": 1, "text": "t1"}, "b": {**NOTHING, "seed": 1, "text": "t1"}}
    [result] = judged({"difference": {**conditions, "metric": "loss"}, "at_least": 0.5})
    assert (result.n, result.n_worlds, result.cells) == (LAYERS, 1, ("0.5-1", "0.0-1")) and result.value == pytest.approx(1.1)
    [value] = judged({"value": {"of": {**HALF, "seed": 1}, "metric": "loss"}, "at_most": 20.0})
    assert (value.n, value.cells) == (TEXTS * LAYERS, ("0.5-1",))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"value": {"of": {"share": 0.3}, "metric": "loss"}, "at_most": 9.0}, "no rows with share=0.3"),
        ({"value": {"of": {"shares": 0.5}, "metric": "loss"}, "at_most": 9.0}, "no column 'shares'"),
        ({"value": {"of": HALF, "metric": "accuracy"}, "at_most": 9.0}, "no measurement of accuracy"),
    ],
    ids=str,
)
def test_what_is_not_there_is_not_judged(fields, says):
    [result] = judged(fields)
    assert result.verdict == "not judged" and says in result.reason and math.isnan(result.value)


def test_an_experiment_that_was_not_run_has_no_verdict():
    assert judged({"value": {"of": HALF, "metric": "loss"}, "at_most": 9.0, "experiment": "another:ONE"}) == []
