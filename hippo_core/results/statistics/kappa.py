"""Agreement of two raters on an ordered scale: Cohen's kappa with quadratic weights, its interval by a bootstrap over clusters."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hippo_core.errors import LabError
from hippo_core.results.statistics.interval import LEAST_WORLDS, Interval, numbered


def weighted_kappa(a: ArrayLike, b: ArrayLike) -> float:
    """kappa = 1 - sum w O / sum w E with w = (i - j)^2, O the observed and E the expected shares of rating i by one and j by the other
    (Cohen 1968). That is 2 cov(a, b) / (var(a) + var(b) + (mean(a) - mean(b))^2) (Fleiss and Cohen 1973). NaN where both rate everything
    the same, for then chance agrees as well."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    if a.shape != b.shape or a.ndim != 1:
        raise LabError(f"expected as many ratings of one rater as of the other, got {a.shape} and {b.shape}")
    return float(_kappa(_moments(a, b).sum(0)))


def kappa_interval(a: ArrayLike, b: ArrayLike, clusters: ArrayLike, confidence: float = 0.95, draws: int = 2000, seed: int = 0) -> Interval:
    """The kappa with the percentile interval of samples of whole clusters, drawn with replacement. Fewer than LEAST_WORLDS clusters give a
    NaN interval."""
    kappa = weighted_kappa(a, b)
    a, b, groups = np.asarray(a, float), np.asarray(b, float), numbered(np.asarray(clusters))
    n_clusters = int(groups.max(initial=-1)) + 1
    if n_clusters < LEAST_WORLDS:
        return Interval(kappa, float("nan"), float("nan"), len(a), n_clusters)
    sums = np.zeros((n_clusters, 6))
    np.add.at(sums, groups, _moments(a, b))
    counts = np.random.default_rng(seed).multinomial(n_clusters, np.full(n_clusters, 1 / n_clusters), size=draws)
    drawn = _kappa(counts @ sums)
    low, high = np.nanquantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2]) if np.isfinite(drawn).any() else (np.nan, np.nan)
    return Interval(kappa, float(low), float(high), len(a), n_clusters)


def _moments(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the kappa is made of, summed over ratings: 1, a, b, a^2, b^2, ab [N, 6]."""
    return np.stack([np.ones_like(a), a, b, a * a, b * b, a * b], axis=-1)


def _kappa(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    n, a, b, aa, bb, ab = np.moveaxis(np.asarray(sums, float), -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = aa / n + bb / n - 2 * a * b / n**2  # the expected squared difference
        return np.where(apart > 1e-12, 2 * (ab / n - a * b / n**2) / np.where(apart > 1e-12, apart, 1), np.nan)
