"""Two conditions on the same items: pairing that cannot go wrong silently, the tests of their difference, and its size.

Worlds are exchangeable, items of one world are not: the permutation test flips the signs of whole worlds and the interval rests on the
means of worlds. McNemar's test, which takes items for independent, is shown beside them because readers know it.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike, NDArray

from hippo_core.errors import LabError
from hippo_core.results.statistics.interval import cluster_interval, numbered, scored, variance_of_mean, without_gaps

CHUNK = 200_000  # signs worked off at a time, few enough for a processor's cache
MANY = 1_000_000  # draws held as whole numbers at a time
EXACT_WORLDS = 14  # up to 2^14 sign patterns are enumerated, beyond that they are drawn
SAME = ("world", "answer", "question")  # what a pair must have in common, besides its id


@dataclass(frozen=True, slots=True)
class Comparison:
    """Condition a against b on n items of n_worlds worlds. `difference` = mean_a - mean_b with its 95% interval clustered by world.

    `only_a` and `only_b` count the items that one did better than the other (the discordant pairs). `p_mcnemar` (exact) and `p_mid` (mid-p)
    are NaN where the scores are not 0 or 1. `harmed`: the share of items that b did better, right without a and wrong with it, with its 95%
    interval clustered by world. `n_needed`: items for 80% power to see this difference at .05, infinite where there is none. `n_unscored`:
    pairs left out because one side has no score.
    """

    n: int
    n_worlds: int
    mean_a: float
    mean_b: float
    difference: float
    low: float
    high: float
    p_permutation: float
    p_mcnemar: float
    p_mid: float
    only_a: int
    only_b: int
    harmed: float
    harmed_low: float
    harmed_high: float
    n_needed: float
    n_unscored: int = 0


def compare(
    a: pd.DataFrame,
    b: pd.DataFrame,
    metric: str = "score",
    key: str = "item_id",
    cluster: str = "world",
    confidence: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compare two row tables item by item. `key` names the column that says which rows belong together, `cluster` that of the world.
    LabError, naming the first mismatch, where they do not hold the same items once each with the same question, answer and world."""
    pairs = paired(a, b, metric, key, cluster)
    worlds = numbered(pairs["cluster"].to_numpy())
    return of_numbered_pairs(pairs["a"].to_numpy(), pairs["b"].to_numpy(), worlds, confidence, draws, seed)


def of_numbered_pairs(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    worlds: NDArray[np.int64],
    confidence: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
    shares: bool = True,
) -> Comparison:
    """Compare what a and b scored (N,) on items that are paired already, of these worlds (N,), which are numbered (`numbered`). Items with
    a NaN are left out. `shares`: whether values that all lie within 0 and 1 are shares; times and tokens are none."""
    known = ~(np.isnan(first) | np.isnan(second))
    unscored = int((~known).sum())
    first, second, worlds = first[known], second[known], without_gaps(worlds[known])
    difference = first - second
    scale = np.concatenate([first, second])
    bounds = (-1.0, 1.0) if shares and (not len(scale) or (scale.min() >= 0 and scale.max() <= 1)) else None
    interval = cluster_interval(difference, worlds, confidence, bounds)
    only_a, only_b = int((difference > 0).sum()), int((difference < 0).sum())
    binary = bool(np.isin(scale, (0, 1)).all())
    harmed = cluster_interval((difference < 0).astype(float), worlds, confidence)
    return Comparison(
        n=interval.n,
        n_worlds=interval.n_worlds,
        mean_a=float(first.mean()) if len(first) else math.nan,
        mean_b=float(second.mean()) if len(second) else math.nan,
        difference=interval.mean,
        low=interval.low,
        high=interval.high,
        p_permutation=permutation_test(difference, worlds, draws, seed),
        p_mcnemar=mcnemar(only_a, only_b) if binary else math.nan,
        p_mid=mcnemar_mid(only_a, only_b) if binary else math.nan,
        only_a=only_a,
        only_b=only_b,
        harmed=harmed.mean,
        harmed_low=harmed.low,
        harmed_high=harmed.high,
        n_needed=needed(difference, worlds),
        n_unscored=unscored,
    )


def paired(a: pd.DataFrame, b: pd.DataFrame, metric: str = "score", key: str = "item_id", cluster: str = "world") -> pd.DataFrame:
    """One row an item, ordered by its key: cluster, a, b (the metric on each side). Raises LabError where the tables do not pair."""
    tables = [_keyed(rows, name, metric, key, cluster) for rows, name in ((a, "first"), (b, "second"))]
    for here, there, name in ((*tables, "second"), (*reversed(tables), "first")):
        if here.index.equals(there.index):  # asked first, for it is quick
            break
        missing = here.index[~here.index.isin(there.index)]
        if len(missing):
            raise LabError(f"cannot pair: item {missing[0]!r} is not in the {name} table ({len(missing)} such items)")
    left, right = tables  # of the same items in the same order
    for column in dict.fromkeys((cluster, *SAME)):
        if (column in left) != (column in right):
            raise LabError(f"cannot pair: only one of the tables has the column {column!r}")
        if column not in left:
            continue
        first, second = left[column].astype(str).to_numpy(), right[column].astype(str).to_numpy()
        if len(other := np.flatnonzero(first != second)):
            at = other[0]
            named = f"item {left.index[at]!r} has the {column} {first[at]!r} in the first table"
            raise LabError(f"cannot pair: {named}, {second[at]!r} in the second")
    return pd.DataFrame({"cluster": left[cluster].astype(str), "a": left[metric].astype(float), "b": right[metric].astype(float)})


def _keyed(rows: pd.DataFrame, name: str, metric: str, key: str, cluster: str) -> pd.DataFrame:
    for column in (key, cluster, *(("answer",) if key == "item_id" else ()), metric):
        if column not in rows:
            raise LabError(f"cannot pair: the {name} table has no column {column!r}")
    twice = rows.loc[rows.duplicated(key), [key]].to_numpy()
    if len(twice):
        raise LabError(f"cannot pair: item {twice[0, 0]!r} stands more than once in the {name} table")
    return rows.set_index(key, drop=False).sort_index()


def permutation_test(differences: ArrayLike, clusters: ArrayLike, draws: int = 10_000, seed: int = 0) -> float:
    """Two-sided p of the sum of paired differences when the sign of each world's sum is arbitrary.

    A world whose sum is 0 changes nothing and is left out. All sign patterns are enumerated for up to 14 worlds; beyond, `draws` patterns
    are drawn and p = (1 + as extreme) / (1 + draws) (Phipson & Smyth 2010), never 0. Without data NaN.
    """
    values, groups = scored(differences, clusters)
    if not len(values):
        return math.nan
    sums = np.bincount(groups, values)
    sums = sums[np.abs(sums) > 1e-12]
    if not len(sums):
        return 1.0
    bar = abs(sums.sum()) - 1e-9
    if len(sums) <= EXACT_WORLDS:
        return float((np.abs(_patterns(len(sums)) @ sums) >= bar).mean())
    signs = coins(draws * len(sums), seed).reshape(draws, len(sums))
    step = max(1, CHUNK // len(sums))
    extreme = sum(int((np.abs(signs[start : start + step] @ sums) >= bar).sum()) for start in range(0, draws, step))
    return (1 + extreme) / (1 + draws)


@lru_cache(maxsize=EXACT_WORLDS)
def _patterns(worlds: int) -> NDArray[np.float64]:
    """All sign patterns of so many worlds."""
    return np.array(list(itertools.product((1.0, -1.0), repeat=worlds)))


def least_p(n_worlds: int, draws: int = 10_000) -> float:
    """The smallest p that `permutation_test` can give for so many worlds, whatever the data: all differences have one sign."""
    return 2.0 ** (1 - n_worlds) if n_worlds <= EXACT_WORLDS else 1 / (1 + draws)


def coins(count: int, seed: int) -> NDArray[np.int8]:
    """So many fair draws of 1 and -1."""
    return _coins(1 << (count - 1).bit_length(), seed)[:count]


@lru_cache(maxsize=4)
def _coins(count: int, seed: int) -> NDArray[np.int8]:
    """The same for a few lengths only: the draws of a shorter sequence are the first ones of a longer."""
    random = np.random.default_rng(seed)
    parts = [random.integers(0, 2, min(MANY, count - start)).astype(np.int8) for start in range(0, count, MANY)]
    return 2 * np.concatenate(parts) - 1


def mcnemar(only_a: int, only_b: int) -> float:
    """Exact two-sided p of McNemar's test: the smaller discordant count under a fair coin; 1 without discordant pairs."""
    return float(scipy.stats.binomtest(min(only_a, only_b), only_a + only_b, 0.5).pvalue) if only_a + only_b else 1.0


def mcnemar_mid(only_a: int, only_b: int) -> float:
    """Two-sided mid-p of McNemar's test (Fagerland, Lydersen & Laake 2013): the exact p less half the probability of the counts that are as
    extreme as these, the counts themselves and their mirror. 1 without discordant pairs."""
    if not (n := only_a + only_b):
        return 1.0
    equally_extreme = float(scipy.stats.binom.pmf(min(only_a, only_b), n, 0.5)) * (1 if only_a == only_b else 2)
    return mcnemar(only_a, only_b) - equally_extreme / 2


def needed(differences: ArrayLike, clusters: ArrayLike, power: float = 0.8, alpha: float = 0.05) -> float:
    """Paired items needed to see the observed difference d, two-sided, in worlds of the size at hand.

    n = (z(1 - alpha/2) + z(power))^2 * s^2 / d^2, where s^2 = n * `variance_of_mean` is the variance of an item's difference times the
    design effect of its world. At least as many as six worlds hold: with fewer no sign-flip test reaches p < .05. Infinite where d = 0, NaN
    with fewer than two worlds.
    """
    values, groups = scored(differences, clusters)
    n_worlds = int(groups.max(initial=-1)) + 1
    if n_worlds < 2:
        return math.nan
    mean = float(values.mean())
    if abs(mean) < 1e-12:
        return math.inf
    spread = len(values) * variance_of_mean(values, groups)
    normal = float(scipy.stats.norm.ppf(1 - alpha / 2) + scipy.stats.norm.ppf(power))
    return float(math.ceil(max(normal**2 * spread / mean**2, 6 * len(values) / n_worlds) - 1e-9))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's (1979) adjusted p values, in the order given: max over smaller p of (m - rank) * p, at most 1. NaN stays NaN, uncounted."""
    known = sorted((p, index) for index, p in enumerate(p_values) if not math.isnan(p))
    adjusted, worst = [math.nan] * len(p_values), 0.0
    for rank, (p, index) in enumerate(known):
        worst = max(worst, min(1.0, (len(known) - rank) * p))
        adjusted[index] = worst
    return adjusted


def bonferroni(p_values: Sequence[float]) -> list[float]:
    """Each p times the number of them, at most 1. NaN stays NaN, uncounted."""
    known = sum(not math.isnan(p) for p in p_values)
    return [p if math.isnan(p) else min(1.0, known * p) for p in p_values]


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
