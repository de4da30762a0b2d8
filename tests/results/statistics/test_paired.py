"""Comparing two conditions: the permutation test, what is counted, that an unpaired comparison is refused, and the size of an effect."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from hippo_core.errors import LabError
from hippo_core.results.statistics.interval import cluster_interval
from hippo_core.results.statistics.paired import bonferroni, cohens_d, compare, needed, permutation_test
from tests.results.invented import random_pair, table


def test_permutation_by_hand():
    assert permutation_test([1, 1, 1, 1], list("abcd")) == 2 / 16
    assert permutation_test([1, 1, 1, -1], list("abcd")) == 10 / 16
    assert permutation_test([1, 1, 1, 1], list("aaaa")) == 1


def test_worlds_are_flipped_whole():
    d = np.ones(50)
    assert permutation_test(d, np.repeat(np.arange(10), 5)) == 2 / 2**10


def test_a_drawn_p_is_never_zero():
    assert permutation_test(np.ones(40), np.arange(40), draws=999) == 1 / 1000


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000))
def test_swapping_the_sides_mirrors_the_comparison(seed):
    a, b = random_pair(seed)
    there, back = compare(a, b, draws=500), compare(b, a, draws=500)
    assert (back.difference, back.low, back.high) == pytest.approx((-there.difference, -there.high, -there.low), abs=1e-12)
    assert (back.p_permutation, back.p_mcnemar, back.p_mid) == (there.p_permutation, there.p_mcnemar, there.p_mid)
    assert back.n_needed == there.n_needed
    assert (back.only_a, back.only_b, back.mean_a, back.mean_b) == (there.only_b, there.only_a, there.mean_b, there.mean_a)


def test_a_comparison_counts_what_it_says():
    a, b = table([1.0, 1, 1, 0, 0, 1] * 4, per_world=2), table([1.0, 0, 0, 1, 0, 1] * 4, per_world=2)
    comparison = compare(a, b)
    assert (comparison.n, comparison.n_worlds, comparison.only_a, comparison.only_b) == (24, 12, 8, 4)
    assert (comparison.mean_a, comparison.mean_b, comparison.difference) == pytest.approx((4 / 6, 3 / 6, 1 / 6))
    assert comparison.low <= comparison.difference <= comparison.high


def test_what_is_harmed_is_right_with_the_second_side_alone():
    a, b = table([1.0, 1, 1, 0, 0, 1] * 4, per_world=2), table([1.0, 0, 0, 1, 0, 1] * 4, per_world=2)
    comparison, mirror = compare(a, b), compare(b, a)
    assert (comparison.harmed, mirror.harmed) == pytest.approx((4 / 24, 8 / 24))
    worse = np.array([0.0, 0, 0, 1, 0, 0] * 4)
    own = cluster_interval(worse, np.repeat(np.arange(12), 2))
    assert (comparison.harmed_low, comparison.harmed_high) == (own.low, own.high) and own.low < comparison.harmed < own.high


def test_shuffled_rows_pair_by_their_ids():
    a, b = random_pair(11)
    assert compare(a.sample(frac=1, random_state=1), b.sample(frac=1, random_state=2)) == compare(a, b)


def test_unscored_pairs_are_counted():
    a, b = random_pair(12)
    a.loc[3, "score"] = math.nan
    comparison = compare(a, b)
    assert (comparison.n, comparison.n_unscored) == (99, 1)


def test_a_world_without_a_score_is_none():
    random = np.random.default_rng(12)
    a, b = (table(random.random(200)) for _ in range(2))  # forty worlds, so that signs are drawn
    first = a["world"] == a["world"].iloc[0]
    a.loc[first, "score"] = math.nan
    comparison, without = compare(a, b), compare(a[~first], b[~first])
    assert comparison.n_unscored == first.sum() and comparison == replace(without, n_unscored=comparison.n_unscored)


def test_mcnemar_is_not_given_for_scores_that_are_not_binary():
    assert math.isnan(compare(table([0.5, 1.0, 0.2]), table([0.0, 1.0, 0.1])).p_mcnemar)


def test_needed_is_the_classical_number_for_independent_items():
    d = np.random.default_rng(13).integers(-1, 2, 200) + np.array([0.3] * 200)
    classical = (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) ** 2 * d.var(ddof=1) / d.mean() ** 2
    assert needed(d, np.arange(200)) == math.ceil(classical)


def test_needed_grows_with_the_likeness_inside_worlds_and_gives_the_power_it_promises():
    random = np.random.default_rng(14)
    d = (random.random(200) < 0.3) * 1.0 - (random.random(200) < 0.15)
    n, wins = int(needed(d, np.arange(200))), 0
    assert 5 * (n - 1) < needed(np.repeat(d, 5), np.repeat(np.arange(200), 5)) <= 5 * n  # both are rounded up
    for _ in range(200):
        again = random.choice(d, n)
        wins += permutation_test(again, np.arange(n), draws=400) <= 0.05
    assert 0.7 <= wins / 200 <= 0.9


def _mismatches():
    good = table([1.0, 0, 1, 1, 0, 1], per_world=2)
    rolled = good.assign(answer=np.roll(good["answer"].to_numpy(), 1))
    return {
        "answers shifted by one item": (rolled, "item 'i0000' has the answer"),
        "rows shuffled under fixed ids": (good.assign(**good.drop(columns="item_id").sample(frac=1, random_state=3).reset_index(drop=True)),
                                         "has the (world|answer)"),
        "other items": (good.assign(item_id="x" + good["item_id"]), "item 'i0000' is not in the second table"),
        "an item missing": (good.iloc[1:], "item 'i0000' is not in the second table"),
        "an item more": (pd.concat([good, good.iloc[:1].assign(item_id="new")]), "item 'new' is not in the first table"),
        "an item twice": (pd.concat([good, good.iloc[:1]]), "item 'i0000' stands more than once in the second table"),
        "other worlds": (good.assign(world="elsewhere"), "has the world"),
        "no ids": (good.drop(columns="item_id"), "no column 'item_id'"),
        "another question": (good.assign(question="?"), "only one of the tables has the column 'question'"),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(_mismatches()))
def test_an_unpaired_comparison_is_refused(name):
    other, message = _mismatches()[name]
    with pytest.raises(LabError, match=message):
        compare(table([1.0, 0, 1, 1, 0, 1], per_world=2), other)


def test_p_is_uniform_under_the_null():
    random = np.random.default_rng(10)
    p = [permutation_test(random.normal(size=60), np.repeat(np.arange(12), 5)) for _ in range(300)]
    assert stats.kstest(p, "uniform").pvalue > 0.01
    assert np.mean(np.array(p) <= 0.05) < 0.09


def test_d_is_the_mean_over_the_spread_of_clusters():
    differences = [1, 0, 1, 1, 0, 0, 1, -1]
    clusters = ["a", "a", "b", "b", "c", "c", "d", "d"]
    means = np.array([0.5, 1.0, 0.0, 0.0])
    effect = cohens_d(differences, clusters)
    assert effect.d == pytest.approx(means.mean() / means.std(ddof=1))
    mirrored = cohens_d([-difference for difference in differences], clusters)
    assert (mirrored.low, mirrored.high) == pytest.approx((-effect.high, -effect.low))


def test_the_interval_holds_the_truth_as_often_as_it_says():
    random = np.random.default_rng(1)
    covered = [effect.low < 0.5 < effect.high for effect in (cohens_d(random.normal(0.5, 1, 15), np.arange(15)) for _ in range(200))]
    assert 0.9 < np.mean(covered) < 0.99


def test_where_nothing_differs_no_d_is_said():
    assert all(map(math.isnan, cohens_d([1, 1, 1], ["a", "b", "c"]))) and all(map(math.isnan, cohens_d([1, 0], ["a", "b"])))


def test_bonferroni_equals_statsmodels_and_leaves_out_what_is_not_known():
    p = [0.01, 0.2, 0.04]
    assert bonferroni(p) == pytest.approx(multipletests(p, method="bonferroni")[1])
    assert bonferroni([*p, math.nan])[:3] == bonferroni(p)
