"""Intervals for means whose items come in worlds: Student's t over worlds, and what to say where next to nothing varies.

Items of a world share facts and competitors, so they are not independent; worlds are. Of percentile, BCa and studentised bootstraps and
this interval it alone holds the truth about as often as it says from ten worlds on (docs/statistics.md, benchmarks/statistics/coverage.py).
With fewer than ten no interval is given.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike, NDArray

from hippo_core.errors import LabError

LEAST_WORLDS = 10  # for an interval: with fewer its own width is hardly known
ASSUMED_CORRELATION = 0.1  # of two items of a world, where the data cannot tell because no item deviates
LEAST_VARIANCE = 0.25  # of a mean, in parts of that of as many independent items: worlds that are equal by luck do not hide the rest


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean (or ratio) with its interval, and what it rests on. NaN where it cannot be said."""

    mean: float
    low: float
    high: float
    n: int
    n_worlds: int


def wilson(k: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """The score interval of a proportion of k in n (Wilson 1927); `n` may be an effective number, hence a fraction."""
    if not 0 <= k <= n or n <= 0:
        raise LabError(f"a proportion needs 0 <= k <= n and n > 0, got k={k}, n={n}")
    z = float(scipy.stats.norm.ppf((1 + confidence) / 2))
    share, weight = k / n, 1 + z * z / n
    middle = (share + z * z / (2 * n)) / weight
    half = z / weight * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return 0.0 if k == 0 else middle - half, 1.0 if k == n else middle + half


def cluster_interval(
    values: ArrayLike,
    clusters: ArrayLike,
    confidence: float = 0.95,
    bounds: tuple[float, float] | None = (0.0, 1.0),
    chance: ArrayLike | None = None,
) -> Interval:
    """The mean of `values` (n,) with its interval over `clusters` (n,): mean +- t(G-1) * sqrt(V), V = `variance_of_mean`, G worlds, within
    the bounds (the ratio estimator of cluster samples: Cochran 1977, section 9A.1).

    V is at least LEAST_VARIANCE of what independent items would have (of shares the most that their mean allows), and the interval no
    narrower than `widened` allows; both need the `bounds` that a value cannot leave. Without them (None) a mean from which no world
    deviates has no interval. `chance` (n,): what a guess would score; the mean is then that of the values less their chance, and its
    interval that of the values, moved by the mean chance. Where the values vary, V is that of the values less their chance.

    NaN values are left out. Fewer than LEAST_WORLDS give a NaN interval. Raises LabError for values outside the bounds.
    """
    guessed = np.zeros(len(np.asarray(values))) if chance is None else np.asarray(chance, float)
    values = np.where(np.isnan(guessed), math.nan, np.asarray(values, float))
    guessed = guessed[~np.isnan(values)]
    values, groups = scored(values, clusters)
    if bounds and len(values) and (values.min() < bounds[0] - 1e-9 or values.max() > bounds[1] + 1e-9):
        raise LabError(f"values must lie in {bounds}, got {values.min():g} to {values.max():g}; pass the right bounds")
    n, n_worlds = len(values), int(groups.max(initial=-1)) + 1
    mean, by_chance = (float(values.mean()), float(guessed.mean())) if n else (math.nan, math.nan)
    if n_worlds < LEAST_WORLDS:
        return Interval(mean - by_chance, math.nan, math.nan, n, n_worlds)
    moving = values - guessed if values.std() > 1e-9 else values
    variance = variance_of_mean(moving, groups)
    if bounds:
        spread = mean * (1 - mean) if bounds == (0.0, 1.0) and chance is None else float(moving.var())
        half = _half(max(variance, LEAST_VARIANCE * spread / n), n_worlds, confidence)
        low, high = widened(mean, half, n, n_worlds, confidence, bounds)
    else:
        half = _half(variance, n_worlds, confidence) if variance > 1e-18 else math.nan
        low, high = mean - half, mean + half
    return Interval(mean - by_chance, low - by_chance, high - by_chance, n, n_worlds)


def _half(variance: float, n_worlds: int, confidence: float) -> float:
    return float(scipy.stats.t.ppf((1 + confidence) / 2, n_worlds - 1)) * math.sqrt(variance)


def ratio_interval(a: ArrayLike, b: ArrayLike, clusters: ArrayLike, confidence: float = 0.95) -> Interval:
    """r = mean(a) / mean(b) of paired values, r +- t(G-1) * sqrt(G/(G-1) * sum over worlds of (sum of a - r * sum of b)^2) / sum of b; NaN
    where b is 0 throughout. With fewer than LEAST_WORLDS, or values that are the same for all items, the interval is NaN; but where a is 0
    throughout and both are shares, it goes up to the upper bound of a's mean by the lower bound of b's, which hold together with this
    confidence (Bonferroni)."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    known = np.isfinite(a) & np.isfinite(b)
    groups = numbered(np.asarray(clusters)[known])
    a, b, n_worlds = a[known], b[known], int(groups.max(initial=-1)) + 1
    if not b.any():
        return Interval(math.nan, math.nan, math.nan, len(a), n_worlds)
    ratio = float(a.sum() / b.sum())
    if not a.any() and np.ptp(b) and b.min() >= 0 and b.max() <= 1:
        top, bottom = (cluster_interval(values, groups, (1 + confidence) / 2) for values in (a, b))
        return Interval(0.0, *((0.0, top.high / bottom.low) if bottom.low > 0 else (math.nan, math.nan)), len(a), n_worlds)
    if n_worlds < LEAST_WORLDS or np.ptp(a) == 0 or np.ptp(b) == 0:
        return Interval(ratio, math.nan, math.nan, len(a), n_worlds)
    away = _sums(groups, a) - ratio * _sums(groups, b)
    half = _half(float(n_worlds / (n_worlds - 1) * (away**2).sum() / b.sum() ** 2), n_worlds, confidence)
    return Interval(ratio, ratio - half, ratio + half, len(a), n_worlds)


def scored(values: ArrayLike, clusters: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The values that are not NaN, and for each the number of its world (0, 1, ... in the order of the worlds' names)."""
    values, clusters = np.asarray(values, float), np.asarray(clusters)
    if values.shape != clusters.shape or values.ndim != 1:
        raise LabError(f"values and clusters must be two lists of one length, got shapes {values.shape} and {clusters.shape}")
    known = ~np.isnan(values)
    return values[known], numbered(clusters[known])


def numbered(clusters: NDArray[Any]) -> NDArray[np.int64]:
    """For each the number of its world in the order of the worlds' names as text. Small numbers are not hashed, which is quick."""
    if clusters.dtype.kind in "iu" and len(clusters) and clusters.min() >= 0 and clusters.max() <= len(clusters):
        names = np.flatnonzero(np.bincount(clusters))
        ranks = np.zeros(names[-1] + 1, np.int64)
        ranks[names[np.argsort(names.astype(str))]] = np.arange(len(names))
        return ranks[clusters]
    codes, names = pd.factorize(clusters, use_na_sentinel=False)
    return np.unique(np.asarray(names).astype(str), return_inverse=True)[1][codes]


def without_gaps(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers (n,), from 0 on and in their order, without those that do not occur."""
    return (np.cumsum(np.bincount(numbers) > 0) - 1)[numbers]


def _sums(groups: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.bincount(groups, values).astype(np.float64)


def variance_of_mean(values: NDArray[np.float64], groups: NDArray[np.int64]) -> float:
    """The variance of the mean when worlds are drawn: G/(G-1) * sum over worlds of (sum of its deviations)^2 / n^2. NaN with one world."""
    sums = _sums(groups, values - values.mean())
    return float(len(sums) / (len(sums) - 1) * (sums**2).sum() / len(values) ** 2) if len(sums) > 1 else math.nan


def widened(mean: float, half: float, n: int, n_worlds: int, confidence: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Limits mean +- half within the bounds that say no more than a sample would in which nothing varies, such as 50 right of 50.

    The effective number of items is n / (1 + (n/G - 1) * rho) (Kish 1965) with the assumed rho = .1, for none can be estimated. With u the
    Wilson upper limit of 0 deviating items in that number, the limits of n equal values r are those of a mean in which a share u lies at a
    bound: for 1 in bounds (0, 1) Wilson's [1 - u, 1], for a difference of 0 in (-1, 1) [-u, u]. A mean below r has no lower limit above
    that of r, a mean above r no upper limit below that of r, for r at the bounds and at 0: one item less right never raises a lower limit.
    """
    (least, most), low, high = bounds, mean - half, mean + half
    upper = wilson(0, effective_number(n, n_worlds), confidence)[1]
    for value in (least, 0.0, most, *([mean] if half < 1e-9 else [])):
        if mean <= value + 1e-9:
            low = min(low, value - upper * (value - least))
        if mean >= value - 1e-9:
            high = max(high, value + upper * (most - value))
    return max(least, low), min(most, high)


def effective_number(n: int, n_worlds: int) -> float:
    """Independent items that n items in n_worlds worlds are worth under the assumed correlation (Kish 1965)."""
    return n / (1 + (n / n_worlds - 1) * ASSUMED_CORRELATION)


def expected_range(rows: pd.DataFrame, n: int | None = None, metric: str = "score", cluster: str = "world") -> tuple[float, float]:
    """Where the mean of a *new* cell of n items (default: as many) falls 95 times in 100, judged by a validation cell's row table: mean +-
    t(G-1) * sqrt(V * n_val * (1/n_val + 1/n)) within 0 and 1, V = `variance_of_mean`, G worlds. Where no world deviates from the mean: the
    mean with Wilson's upper share of deviating items. NaN with fewer than two worlds."""
    values, groups = scored(rows[metric], rows[cluster])
    n_val, n_worlds = len(values), int(groups.max(initial=-1)) + 1
    if n_worlds < 2:
        return math.nan, math.nan
    n = n or n_val
    variance, mean = variance_of_mean(values, groups), float(values.mean())
    if variance < 1e-18:
        upper = wilson(0, effective_number(n_val, n_worlds) * n / (n + n_val))[1]
        return mean * (1 - upper), mean + (1 - mean) * upper
    half = float(scipy.stats.t.ppf(0.975, n_worlds - 1)) * math.sqrt(variance * n_val * (1 / n_val + 1 / n))
    return max(0.0, mean - half), min(1.0, mean + half)


def range_warning(name: str, mean: float, expected: Sequence[float]) -> str | None:
    """One sentence where a test cell lies outside the range expected from its validation cell, else None (also where one is not known)."""
    low, high = expected
    if any(math.isnan(x) for x in (mean, low, high)) or low - 1e-9 <= mean <= high + 1e-9:
        return None
    direction = "below" if mean < low else "above"
    return f"{name}: {mean:.3f} on test worlds lies {direction} the range {low:.3f} to {high:.3f} expected from validation worlds"
