"""Effect sizes and Bonferroni's correction, beside the paired comparisons."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from hippo_core.results.statistics.interval import scored


class Effect(NamedTuple):
    """A standardised difference with its 95% interval; NaN where it cannot be said."""

    d: float
    low: float
    high: float


def cohens_d(differences: ArrayLike, clusters: ArrayLike, confidence: float = 0.95) -> Effect:
    """Cohen's d of paired differences: the mean of clusters' mean differences over their standard deviation (d_z: Lakens 2013), for
    clusters are what is exchangeable. Its interval is that of the noncentral t (Steiger and Fouladi 1997). NaN with fewer than three
    clusters, or where no cluster differs from another."""
    values, groups = scored(differences, clusters)
    count = int(groups.max(initial=-1)) + 1
    if count < 3:
        return Effect(math.nan, math.nan, math.nan)
    means = np.bincount(groups, values) / np.bincount(groups)
    spread = float(means.std(ddof=1))
    if spread < 1e-12:
        return Effect(math.nan, math.nan, math.nan)
    d = float(means.mean()) / spread
    t = d * math.sqrt(count)
    ends = [_noncentrality(t, count - 1, p) / math.sqrt(count) for p in ((1 + confidence) / 2, (1 - confidence) / 2)]
    return Effect(d, *ends)


def _noncentrality(t: float, freedom: int, p: float) -> float:
    """The noncentrality under which a t as small as this has probability p."""
    low, high = t - 12 - abs(t), t + 12 + abs(t)
    for _ in range(60):
        middle = (low + high) / 2
        if scipy.stats.nct.cdf(t, freedom, middle) > p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def bonferroni(p_values: Sequence[float]) -> list[float]:
    """Each p times the number of them, at most 1. NaN stays NaN, uncounted."""
    known = sum(not math.isnan(p) for p in p_values)
    return [p if math.isnan(p) else min(1.0, known * p) for p in p_values]
