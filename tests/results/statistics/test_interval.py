"""The interval of a mean clustered by world, and the range expected of a new cell."""

import math

import numpy as np
import pytest
from scipy import stats

from hippo_core.errors import LabError
from hippo_core.results.statistics.interval import (
    cluster_interval,
    effective_number,
    expected_range,
    range_warning,
    ratio_interval,
    variance_of_mean,
    wilson,
)
from tests.results.invented import table


def test_variance_of_mean_of_single_item_worlds_is_the_textbooks():
    values = np.random.default_rng(4).random(30)
    assert variance_of_mean(values, np.arange(30)) == pytest.approx(values.var(ddof=1) / 30, abs=1e-12)


def test_items_that_repeat_each_other_add_nothing():
    values = np.random.default_rng(6).integers(0, 2, 30).astype(float)
    once, five = cluster_interval(values, np.arange(30)), cluster_interval(np.repeat(values, 5), np.repeat(np.arange(30), 5))
    assert (five.low, five.high) == pytest.approx((once.low, once.high), abs=1e-12)
    assert (five.n, five.n_worlds) == (150, 30)


def test_all_right_is_not_certainty():
    interval = cluster_interval(np.ones(50), np.repeat(np.arange(10), 5))
    assert (interval.mean, interval.high) == (1, 1)
    assert interval.low == pytest.approx(wilson(k := effective_number(50, 10), k)[0], abs=1e-12)
    assert wilson(10, 10)[0] < interval.low < wilson(50, 50)[0]


def orders(n_worlds, n=50):
    """Items in the order in which they become right, world by world and one of each world in turn, and the world of each item."""
    worlds, index = np.divmod(np.arange(n), n // n_worlds)
    return (("world by world", np.arange(n), worlds), ("in turn", np.lexsort((worlds, index)), worlds))


def rising(order, worlds, base=None):
    """(low, high) of the score for 0, 1, ... items right, or of its difference from one that has `base` of the items right."""
    limits = []
    for right in range(len(order) + 1):
        values = np.isin(np.arange(len(order)), order[:right]).astype(float)
        less, bounds = (0, (0, 1)) if base is None else (base, (-1, 1))
        interval = cluster_interval(values - less, worlds, bounds=bounds)
        limits.append((interval.low, interval.high))
    return np.array(limits)


@pytest.mark.parametrize("n_worlds", [10, 25, 50])
def test_one_item_more_right_never_lowers_a_limit(n_worlds):
    for name, order, worlds in orders(n_worlds):
        assert (np.diff(rising(order, worlds), axis=0) >= -1e-12).all(), name


@pytest.mark.parametrize("n_worlds", [10, 25, 50])
@pytest.mark.parametrize("base", [0.0, 1.0])
def test_one_item_more_right_never_lowers_a_limit_of_a_difference(n_worlds, base):
    _, (_, order, worlds) = orders(n_worlds)
    assert (np.diff(rising(order, worlds, base), axis=0) >= -1e-12).all()


def test_an_interval_of_ordinary_data_is_students_t():
    random = np.random.default_rng(10)
    for bounds, values in (((0, 1), random.integers(0, 2, 100)), ((-1, 1), random.integers(-1, 2, 100))):
        groups = np.repeat(np.arange(20), 5)
        interval = cluster_interval(values, groups, bounds=bounds)
        half = stats.t.ppf(0.975, 19) * math.sqrt(variance_of_mean(values.astype(float), groups))
        assert (interval.low, interval.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=1e-12)


@pytest.mark.parametrize(("right", "n_worlds"), [(0.02, 50), (0.05, 20), (0.95, 20), (0.98, 50)])
def test_the_interval_covers_near_0_and_1(right, n_worlds):
    random, hits = np.random.default_rng(11), 0
    for _ in range(300):
        of_world = random.beta(9 * right, 9 * (1 - right), n_worlds)
        values = (random.random((n_worlds, 5)) < of_world[:, None]).astype(float)
        interval = cluster_interval(values.ravel(), np.repeat(np.arange(n_worlds), 5))
        hits += interval.low <= right <= interval.high
    assert hits / 300 >= 0.94


@pytest.mark.parametrize("right", [0, 1, 25, 49, 50])
def test_less_its_chance_a_score_has_its_own_interval_moved(right):
    values, worlds = (np.arange(50) < right).astype(float), np.arange(50) // 5
    score, above = cluster_interval(values, worlds), cluster_interval(values, worlds, chance=np.full(50, 0.1))
    assert (above.mean, above.low, above.high) == pytest.approx((score.mean - 0.1, score.low - 0.1, score.high - 0.1), abs=1e-12)


def test_chances_that_differ_do_not_stand_for_a_score_that_does_not_vary():
    worlds, chance = np.arange(50) // 5, np.tile([0.1, 0.25, 0.1, 0.1, 0.2], 10) + np.arange(50) / 1000
    score, above = cluster_interval(np.zeros(50), worlds), cluster_interval(np.zeros(50), worlds, chance=chance)
    assert (above.low, above.high) == pytest.approx((-chance.mean(), score.high - chance.mean()))


@pytest.mark.parametrize(("right", "n_worlds"), [(0.02, 10), (0.02, 50), ("guessed", 10), ("guessed", 50)])
def test_less_their_chance_scores_are_covered(right, n_worlds):
    """Answers that are hardly ever right, and answers that are guessed, where the chance differs a little between items and worlds."""
    random, hits = np.random.default_rng(13), 0
    for _ in range(300):
        chance = random.choice([0.09, 0.1, 0.11], (n_worlds, 5))
        values = (random.random((n_worlds, 5)) < (chance if right == "guessed" else right)).astype(float)
        interval = cluster_interval(values.ravel(), np.repeat(np.arange(n_worlds), 5), chance=chance.ravel())
        hits += interval.low <= (0 if right == "guessed" else right - chance.mean()) <= interval.high
    assert hits / 300 >= 0.9


def test_items_without_a_chance_are_not_scored():
    values, worlds, chance = np.tile([1.0, 0.0], 20), np.repeat(np.arange(20), 2), np.full(40, 0.5)
    chance[3] = math.nan
    assert cluster_interval(values, worlds, chance=chance).n == 39


def test_equal_worlds_of_unequal_items_have_a_width():
    interval = cluster_interval(np.tile([1.0, 1, 1, 0], 10), np.repeat(np.arange(10), 4))
    assert interval.low < 0.75 < interval.high <= 1


@pytest.mark.parametrize("worlds", [1, 2, 9])
def test_few_worlds_give_no_interval(worlds):
    values, names = np.tile([1.0, 0.0], worlds), np.repeat(np.arange(worlds), 2)
    for interval in (cluster_interval(values, names), ratio_interval(values, values + 1, names)):
        assert math.isnan(interval.low) and math.isnan(interval.high) and interval.n_worlds == worlds
    assert cluster_interval(values, names).mean == 0.5


def test_not_scored_is_left_out_and_nothing_scored_is_nan():
    assert cluster_interval([1.0, 0.0, math.nan], ["a", "b", "c"]).n_worlds == 2
    assert math.isnan(cluster_interval([], []).mean)


def test_values_out_of_bounds_are_refused():
    with pytest.raises(LabError, match="must lie in"):
        cluster_interval([0.0, 7.0], ["a", "b"])


def test_a_ratio_is_that_of_the_means():
    random = np.random.default_rng(9)
    b, worlds = random.random(100) + 1, np.repeat(np.arange(20), 5)
    interval = ratio_interval(b / 2, b, worlds)
    assert (interval.mean, interval.low, interval.high) == pytest.approx((0.5, 0.5, 0.5), abs=1e-12)
    assert math.isnan(ratio_interval(b, b * 0, worlds).mean)


def test_a_ratio_with_a_side_that_never_varies_has_no_interval():
    random = np.random.default_rng(9)
    varied, worlds = random.random(100) + 1, np.repeat(np.arange(20), 5)
    for a, b, ratio in ((varied * 0, varied, 0), (varied * 0 + 2, varied, 2 / varied.mean()), (varied, varied * 0 + 3, varied.mean() / 3)):
        interval = ratio_interval(a, b, worlds)
        assert interval.mean == pytest.approx(ratio) and math.isnan(interval.low) and math.isnan(interval.high)


def test_new_cells_fall_into_the_expected_range():
    random, hits = np.random.default_rng(15), 0
    for _ in range(200):
        cells = [(random.random((20, 5)) < random.beta(8, 4, 20)[:, None]).astype(float).ravel() for _ in range(2)]
        low, high = expected_range(table(cells[0]))
        hits += low <= cells[1].mean() <= high
    assert hits / 200 >= 0.9


def test_a_cell_outside_its_range_is_named():
    low, high = expected_range(table(np.ones(50)))
    assert 0.8 < low < high == 1
    assert range_warning("episodic, oracle", 1.0, (low, high)) is None
    assert "below the range" in str(range_warning("episodic, oracle", 0.5, (low, high)))
    assert range_warning("one world", 0.5, expected_range(table(np.ones(5)))) is None


def test_a_ratio_whose_first_side_never_happens_has_an_upper_bound():
    worlds = np.repeat(np.arange(40), 2)
    b = (np.arange(80) % 3 == 0).astype(float)
    interval = ratio_interval(b * 0, b, worlds)
    assert (interval.mean, interval.low) == (0.0, 0.0)
    assert interval.high == pytest.approx(cluster_interval(b * 0, worlds, 0.975).high / cluster_interval(b, worlds, 0.975).low)
    assert cluster_interval(b * 0, worlds).high / b.mean() < interval.high < 0.5
    few = ratio_interval(b[:24] * 0, b[:24], worlds[:24])
    assert few.high > interval.high
    assert math.isnan(ratio_interval(b * 0, b * 5, worlds).high)  # no share
    assert math.isnan(ratio_interval(b * 0, (np.arange(80) == 1).astype(float), worlds).high)  # b may be 0


def test_the_interval_covers_about_as_often_as_it_says():
    random, hits = np.random.default_rng(5), 0
    for _ in range(200):
        chance_of_world = random.beta(4, 4, 40)  # worlds differ: items of a world are correlated
        values = (random.random((40, 5)) < chance_of_world[:, None]).astype(float)
        interval = cluster_interval(values.ravel(), np.repeat(np.arange(40), 5))
        hits += interval.low <= 0.5 <= interval.high
    assert 0.90 <= hits / 200 <= 0.99
