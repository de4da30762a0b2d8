"""A fitted law gives back the constants that losses were made with."""

import numpy as np
import pytest

from benchmarks.continual.scaling_law import NAMES, fit, intervals
from hippo_core.errors import LabError

TRUE = {"A": 40.0, "B": 400.0, "E": 1.5, "alpha": 0.4, "beta": 0.6}
N, D = (values.ravel() for values in np.meshgrid([1e4, 3e4, 1e5, 3e5], [2e4, 6e4, 2e5, 6e5]))


def losses(noise=0.0, seed=0):
    exact = TRUE["A"] / N ** TRUE["alpha"] + TRUE["B"] / D ** TRUE["beta"] + TRUE["E"]
    return exact * np.exp(noise * np.random.default_rng(seed).standard_normal(len(N)))


def test_constants_come_back():
    law = fit(N, D, losses())
    assert law.constants() == pytest.approx(TRUE, rel=0.02)
    assert law.loss([1e6], [1e6]) == pytest.approx([40 / 1e6**0.4 + 400 / 1e6**0.6 + 1.5], rel=1e-3)


def test_one_wrong_run_does_not_bend_the_law():
    wrong = losses()
    wrong[5] *= 3
    assert fit(N, D, wrong).constants() == pytest.approx(TRUE, rel=0.05)


def test_intervals_hold_what_was_fitted_and_are_wider_with_more_noise():
    limits = {}
    for noise in (0.002, 0.01):
        n, d = np.tile(N, 3), np.tile(D, 3)
        noisy = np.concatenate([losses(noise, seed) for seed in (1, 2, 3)])
        law = fit(n, d, noisy)
        limits[noise] = intervals(n, d, noisy, law, draws=20)
        assert all(limits[noise][name][0] <= law.constants()[name] <= limits[noise][name][1] for name in NAMES)
    widths = [limits[noise]["E"][1] - limits[noise]["E"][0] for noise in (0.002, 0.01)]
    assert 0 < widths[0] < widths[1]


@pytest.mark.parametrize(
    ("n", "d", "values", "message"),
    [
        ([1, 2, 3, 4], [1, 2, 3, 4], [1, 1, 1, 1], "five runs"),
        ([1, 1, 2, 2, 2], [1, 2, 3, 4, 5], [1] * 5, "of 2 numbers of weights and 5 of tokens"),
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [1, 2, 3, 4, 0], "above 0"),
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [1, 2, 3, 4, np.nan], "above 0"),
    ],
)
def test_what_bears_no_law_is_one_clear_line(n, d, values, message):
    with pytest.raises(LabError, match=message):
        fit(n, d, values)
