"""Cohen's d of paired differences, and Bonferroni's correction."""

import math

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from hippo_core.results.statistics.effect import bonferroni, cohens_d


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
