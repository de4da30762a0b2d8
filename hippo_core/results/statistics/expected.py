"""The range in which a test cell should fall, derived from the validation cell of the same condition and model."""

import math
from collections.abc import Sequence

import pandas as pd
from scipy import stats

from hippo_core.results.statistics.interval import effective_number, scored, variance_of_mean, wilson


def expected_range(rows: pd.DataFrame, n: int | None = None, metric: str = "score", cluster: str = "world") -> tuple[float, float]:
    """Where the mean of a *new* cell of n items (default: as many) falls 95 times in 100, judged by a validation cell's row table.

    A prediction interval: mean +- t(G-1) * sqrt(V * n_val * (1/n_val + 1/n)) within 0 and 1, V = `variance_of_mean`, G worlds. Where no
    world deviates from the mean: the mean with Wilson's upper share of deviating items, for the independent items that both cells are
    worth. NaN with fewer than two worlds.
    """
    values, groups = scored(rows[metric], rows[cluster])
    n_val, n_worlds = len(values), int(groups.max(initial=-1)) + 1
    if n_worlds < 2:
        return math.nan, math.nan
    n = n or n_val
    variance, mean = variance_of_mean(values, groups), float(values.mean())
    if variance < 1e-18:
        upper = wilson(0, effective_number(n_val, n_worlds) * n / (n + n_val))[1]
        return mean * (1 - upper), mean + (1 - mean) * upper
    half = float(stats.t.ppf(0.975, n_worlds - 1)) * math.sqrt(variance * n_val * (1 / n_val + 1 / n))
    return max(0.0, mean - half), min(1.0, mean + half)


def range_warning(name: str, mean: float, expected: Sequence[float]) -> str | None:
    """One sentence where a test cell lies outside the range expected from its validation cell, else None (also where one is not known)."""
    low, high = expected
    if any(math.isnan(x) for x in (mean, low, high)) or low - 1e-9 <= mean <= high + 1e-9:
        return None
    side = "below" if mean < low else "above"
    return f"{name}: {mean:.3f} on test worlds lies {side} the range {low:.3f} to {high:.3f} expected from validation worlds"
