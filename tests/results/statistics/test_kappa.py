"""The weighted kappa equals its definition and statsmodels; its interval covers, and goes by clusters."""

import numpy as np
import pytest
from statsmodels.stats.inter_rater import cohens_kappa

from hippo_core.errors import LabError
from hippo_core.results.statistics.kappa import kappa_interval, weighted_kappa


def raters(n, noise, seed=0):
    rng = np.random.default_rng(seed)
    true = rng.integers(1, 6, n)
    return [np.clip(true + rng.integers(-noise, noise + 1, n), 1, 5) for _ in range(2)]


def by_definition(a, b):
    scale = np.arange(1, 6)
    weights = (scale[:, None] - scale) ** 2
    observed = np.histogram2d(a, b, bins=[np.arange(1, 7)] * 2)[0]
    expected = np.outer(observed.sum(1), observed.sum(0)) / len(a)
    return 1 - (weights * observed).sum() / (weights * expected).sum(), observed


@pytest.mark.parametrize("noise", [0, 1, 2, 4])
def test_it_equals_its_definition_and_statsmodels(noise):
    a, b = raters(200, noise)
    due, table = by_definition(a, b)
    assert weighted_kappa(a, b) == pytest.approx(due, abs=1e-12)
    assert weighted_kappa(a, b) == pytest.approx(cohens_kappa(table, wt="quadratic").kappa, abs=1e-12)


def test_worked_by_hand():
    assert weighted_kappa([1, 2, 3], [1, 2, 3]) == pytest.approx(1)
    assert weighted_kappa([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert weighted_kappa([1, 1, 2, 2], [1, 2, 1, 2]) == 0
    assert weighted_kappa([1, 2], [1, 1]) == 0  # one who rates everything the same agrees by chance
    assert np.isnan(weighted_kappa([3, 3], [3, 3])) and np.isnan(weighted_kappa([], []))
    with pytest.raises(LabError, match="as many ratings"):
        weighted_kappa([1], [1, 2])


def test_the_interval_goes_by_clusters():
    a, b = raters(40, 2)
    alone = kappa_interval(a, b, np.arange(40))
    assert alone.low < alone.mean < alone.high and (alone.n, alone.n_worlds) == (40, 40)
    fourfold = kappa_interval(np.tile(a, 4), np.tile(b, 4), np.tile(np.arange(40), 4))
    assert (fourfold.low, fourfold.high) == pytest.approx((alone.low, alone.high))  # the same ratings told again say no more
    assert np.isnan(kappa_interval(a, b, np.arange(40) % 9).low)


def test_it_holds_the_truth_about_as_often_as_it_says():
    a, b = raters(200_000, 1)
    truth = weighted_kappa(a, b)
    intervals = [kappa_interval(*raters(120, 1, seed), np.arange(120) % 40, draws=300) for seed in range(1, 101)]
    assert 86 <= sum(interval.low <= truth <= interval.high for interval in intervals) <= 100
