"""Statistics against statsmodels, scipy and textbook formulas."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as their_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from hippo_core.results.statistics.interval import cluster_interval, wilson
from hippo_core.results.statistics.paired import coins, holm, mcnemar, mcnemar_mid, permutation_test

P = st.floats(0, 1, allow_nan=False)


@settings(deadline=None)
@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_statsmodels(k_n):
    k, n = k_n
    assert wilson(k, n) == pytest.approx(proportion_confint(k, n, method="wilson"), abs=1e-10)


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_statsmodels(only_a, only_b):
    theirs = their_mcnemar([[7, only_a], [only_b, 3]], exact=True).pvalue if only_a + only_b else 1.0
    assert mcnemar(only_a, only_b) == pytest.approx(theirs, abs=1e-10)


@settings(deadline=None)
@given(st.integers(0, 40), st.integers(0, 40))
def test_mid_p_is_what_is_more_extreme_and_half_of_what_is_as_extreme(only_a, only_b):
    n = only_a + only_b
    counts = [math.comb(n, k) for k in range(n + 1)]  # whole numbers: nothing is rounded
    extreme = sum(count for count in counts if count < counts[only_a]) + sum(count for count in counts if count == counts[only_a]) / 2
    assert mcnemar_mid(only_a, only_b) == pytest.approx(extreme / 2**n if n else 1.0, abs=1e-12)


def test_mid_p_of_published_counts():
    """Fagerland, Lydersen & Laake (2013): 1 against 7 discordant pairs, exact .070, mid-p .039."""
    assert (round(mcnemar(1, 7), 3), round(mcnemar_mid(1, 7), 3)) == (0.070, 0.039)
    assert mcnemar_mid(1, 9) == mcnemar_mid(9, 1) == pytest.approx(12 / 1024)


@settings(max_examples=10, deadline=None)  # theirs takes .15 s a call
@given(st.lists(P, min_size=1, max_size=20))
def test_holm_is_statsmodels(p_values):
    assert holm(p_values) == pytest.approx(list(multipletests(p_values, method="holm")[1]), abs=1e-10)


def test_holm_leaves_out_what_is_not_known():
    assert holm([0.01, math.nan, 0.04])[::2] == pytest.approx([0.02, 0.04])
    assert math.isnan(holm([0.01, math.nan, 0.04])[1])


@pytest.mark.parametrize("seed", range(4))
def test_exact_permutation_is_scipy(seed):
    sums = np.random.default_rng(seed).integers(-3, 5, 9).astype(float)
    theirs = stats.permutation_test((sums,), np.sum, permutation_type="samples", n_resamples=np.inf, vectorized=False)
    assert permutation_test(sums, np.arange(9)) == pytest.approx(theirs.pvalue, abs=1e-10)


@pytest.mark.parametrize("size", [10, 60])
def test_interval_of_single_item_worlds_is_that_of_scipys_t_test(size):
    values = np.random.default_rng(2).random(size)
    ours = cluster_interval(values, np.arange(size))
    theirs = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


@pytest.mark.parametrize("size", [2, 7, 300])
def test_signs_are_drawn_as_one_generator_draws_them(size):
    random = np.random.default_rng(3)
    signs = np.concatenate([random.integers(0, 2, (1000, size)).ravel() for _ in range(3)]) * 2 - 1
    assert (coins(3000 * size, 3) == signs).all()


def test_errors_of_type_one_of_the_tests_that_a_claim_shows():
    """Two conditions that are equally good: worlds' signs flipped (2,000 draws of 14 worlds of items that go together), and mid-p over all
    counts of 80 to 120 discordant pairs."""
    random = np.random.default_rng(7)
    worlds = np.repeat(np.arange(14), 10)

    def scores():
        chance = 1 / (1 + np.exp(-hard - random.normal(size=14)[worlds]))
        return (random.random(140) < chance).astype(float)

    p = []
    for _ in range(2000):
        hard = random.normal(size=14)[worlds]
        p.append(permutation_test(scores() - scores(), worlds))
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.05, abs=0.01)
    for n in range(80, 121, 10):
        errs = sum(stats.binom.pmf(k, n, 0.5) for k in range(n + 1) if mcnemar_mid(k, n - k) <= 0.05)
        assert errs == pytest.approx(0.05, abs=0.01)
        assert sum(stats.binom.pmf(k, n, 0.5) for k in range(n + 1) if mcnemar(k, n - k) <= 0.05) <= min(errs, 0.05)
