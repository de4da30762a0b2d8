"""How often a 95% interval for a mean over worlds holds the true mean, by how it is computed and by the number of worlds.

    python benchmarks/statistics/coverage.py [--samples 1000]

Populations are the worlds of the reference reports: of each model, suite, setting and condition the sum of scores and the number of
items of each world, and of each condition the differences from one other. A population's own mean is the truth; so many worlds are drawn
from it with replacement, again and again, and each way of computing an interval is asked. The table that is printed stands in
reports/reference/by-hand.md. `t` is Student's t, with `widened` where nothing varies; `lab` is what `cluster_interval` gives: `widened`
everywhere.

A second table has invented worlds of five items, right with probabilities near 0 and 1, and with a half, with and without correlation.
"""

import argparse
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from hippo_core.files import root
from hippo_core.results.statistics.interval import cluster_interval, widened

WORLDS = (10, 20, 32, 50, 200)
DRAWS, CONFIDENCE = 2000, 0.95
LEAST = 20  # worlds of a population
Limits = tuple[np.ndarray, np.ndarray]


def populations(reports: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray, tuple[float, float]]]:
    """A name, the sums of scores [W], the numbers of items [W] and the bounds of a value."""
    of_world = ["model", "suite", "setting", "split", "condition", "regime"]
    for path in sorted(reports.glob("*/rows.csv.gz")):
        rows = pd.read_csv(path)
        rows = rows[rows["score"].notna()].copy()
        rows["sum"] = rows["score"]  # of all its items
        worlds = rows.groupby([*of_world, "seed", "world"], dropna=False)[["sum", "items"]].sum()
        before: tuple[str, pd.DataFrame] | None = None
        for name, table in worlds.groupby(level=of_world, dropna=False):
            table = table.droplevel(of_world)
            if len(table) < LEAST:
                continue
            label = f"{path.parent.name}: {' '.join(map(str, name))}"
            if table["sum"].div(table["items"]).nunique() > 1:
                yield label, table["sum"].to_numpy(float), table["items"].to_numpy(float), (0.0, 1.0)
            if before is not None and before[1].index.equals(table.index):
                difference = table["sum"] - before[1]["sum"]
                if difference.nunique() > 1:
                    yield f"{label} less {before[0]}", difference.to_numpy(float), table["items"].to_numpy(float), (-1.0, 1.0)
            before = str(name[4]), table


def spread(sums: np.ndarray, items: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The standard error of a ratio over worlds, from [..., G]."""
    size = sums.shape[-1]
    deviations = sums - mean[..., None] * items
    return np.sqrt(size / (size - 1) * (deviations**2).sum(-1)) / items.sum(-1)


def times_drawn(size: int) -> np.ndarray:
    """How often each of `size` worlds is drawn, [DRAWS, size]."""
    return np.random.default_rng(0).multinomial(size, np.full(size, 1 / size), DRAWS).astype(float)


def draws_of(sums: np.ndarray, items: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard errors of bootstrap draws [draws] of one sample [G]."""
    size = len(sums)
    total, count, squares, mixed, counts = (times @ np.stack([sums, items, sums**2, sums * items, items**2], 1)).T
    mean = total / count
    return mean, np.sqrt(np.maximum(0, size / (size - 1) * (squares - 2 * mean * mixed + mean**2 * counts))) / count


def percentile(sums: np.ndarray, items: np.ndarray, times: np.ndarray) -> tuple[float, float]:
    means, _ = draws_of(sums, items, times)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def bca(sums: np.ndarray, items: np.ndarray, times: np.ndarray) -> tuple[float, float]:
    """Efron (1987): bias-corrected and accelerated, the acceleration from the jackknife over worlds."""
    means, _ = draws_of(sums, items, times)
    mean = sums.sum() / items.sum()
    share = ((means < mean).sum() + 0.5 * (means == mean).sum()) / len(means)
    bias = stats.norm.ppf(np.clip(share, 1 / len(means), 1 - 1 / len(means)))
    left_out = (sums.sum() - sums) / (items.sum() - items)
    away = left_out.mean() - left_out
    acceleration = (away**3).sum() / (6 * max((away**2).sum(), 1e-30) ** 1.5)
    z = stats.norm.ppf([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    low, high = np.quantile(means, stats.norm.cdf(bias + (bias + z) / (1 - acceleration * (bias + z))))
    return float(low), float(high)


def studentised(sums: np.ndarray, items: np.ndarray, times: np.ndarray) -> tuple[float, float]:
    """Bootstrap-t (Efron & Tibshirani 1993, chapter 12): quantiles of (mean of a draw - mean) / standard error of the draw."""
    means, errors = draws_of(sums, items, times)
    mean = np.asarray(sums.sum() / items.sum())
    error = float(spread(sums, items, mean))
    known = errors > 1e-12
    low, high = np.quantile((means[known] - mean) / errors[known], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(mean - high * error), float(mean - low * error)


def student(sums: np.ndarray, items: np.ndarray, times: np.ndarray | None = None) -> tuple[float, float]:
    """Mean +- t(G-1) standard errors."""
    mean = np.asarray(sums.sum() / items.sum())
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(sums) - 1) * spread(sums, items, mean))
    return float(mean) - half, float(mean) + half


INTERVALS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[float, float]]] = {
    "percentile": percentile,
    "BCa": bca,
    "studentised": studentised,
    "t": student,
}


def measure(sums: np.ndarray, items: np.ndarray, bounds: tuple[float, float], size: int, samples: int, seed: int) -> dict[str, list[float]]:
    """By way: the share of samples of so many worlds whose interval holds the truth, the shares that miss it below and above, the width."""
    random, truth = np.random.default_rng(seed), sums.sum() / items.sum()
    times = times_drawn(size)
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in (*INTERVALS, "lab")}
    for _ in range(samples):
        drawn = random.integers(0, len(sums), size)
        sums_drawn, count = sums[drawn], items[drawn]
        mean = sums_drawn.sum() / count.sum()
        if np.abs(sums_drawn - mean * count).max() < 1e-9:
            limits = widened(float(mean), 0.0, int(count.sum()), size, CONFIDENCE, bounds)
            for name in seen:
                seen[name].append(limits)
            continue
        for name, compute in INTERVALS.items():
            seen[name].append(compute(sums_drawn, count, times))
        low, high = seen["t"][-1]
        seen["lab"].append(widened(float(mean), (high - low) / 2, int(count.sum()), size, CONFIDENCE, bounds))
    rates = {}
    for name, limits in seen.items():
        low, high = np.clip(np.array(limits).T, *bounds)
        below, above = (truth > high + 1e-9).mean(), (truth < low - 1e-9).mean()
        rates[name] = [1 - below - above, below, above, (high - low).mean()]
    return rates


def near_bounds(samples: int, per_world: int = 5) -> Iterator[tuple[str, float, int, float, float]]:
    """Items' correlation, how often an item is right, worlds, and the shares of samples in which `t` and `lab` hold that probability."""
    random = np.random.default_rng(0)
    for kind, strength in (("none", math.inf), (".1", 9.0)):
        for right in (0.02, 0.05, 0.5, 0.95, 0.98):
            for size in (10, 20, 50):
                hits = np.zeros(2)
                for _ in range(samples):
                    of_world = np.full(size, right) if math.isinf(strength) else random.beta(right * strength, (1 - right) * strength, size)
                    values = (random.random((size, per_world)) < of_world[:, None]).astype(float)
                    interval = cluster_interval(values.ravel(), np.repeat(np.arange(size), per_world))
                    low, high = student(values.sum(1), np.full(size, float(per_world)))
                    if high - low < 1e-9:
                        low, high = widened(values.mean(), 0.0, values.size, size, CONFIDENCE, (0.0, 1.0))
                    hits += low <= right <= high, interval.low <= right <= interval.high
                yield kind, right, size, *(hits / samples)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--most", type=int, default=60, help="populations that are looked at")
    options = parser.parse_args()
    print("correlation  right  worlds  t      lab")
    for kind, right, size, t, lab in near_bounds(options.samples):
        print(f"{kind:11s}  {right:.2f}   {size:4d}   {t:.3f}  {lab:.3f}", flush=True)
    every = list(populations(root() / "reports/reference"))
    chosen = [every[index] for index in np.unique(np.linspace(0, len(every) - 1, min(options.most, len(every))).astype(int))]
    table = []
    for number, (name, sums, items, bounds) in enumerate(chosen):
        for size in WORLDS:
            for method, (coverage, below, above, width) in measure(sums, items, bounds, size, options.samples, number).items():
                kind = "difference" if bounds[0] < 0 else "mean near 0 or 1" if not 0.1 <= sums.sum() / items.sum() <= 0.9 else "mean"
                table.append((name, kind, size, method, coverage, below, above, width))
    frame = pd.DataFrame(table, columns=["population", "kind", "worlds", "way", "holds", "below", "above", "width"])
    print(f"{len(chosen)} populations of {len(every)}, {options.samples} samples each, {DRAWS} draws")
    for kind, part in [("all", frame), *frame.groupby("kind")]:
        print(
            f"\n{kind}: {part['population'].nunique()} populations; share of intervals that hold the truth (least of a population; width)"
        )
        shown = part.groupby(["worlds", "way"]).agg(holds=("holds", "mean"), least=("holds", "min"), width=("width", "mean")).unstack("way")
        for size in WORLDS:
            cells = [
                f"{method} {shown['holds'][method][size]:.3f} ({shown['least'][method][size]:.2f}; {shown['width'][method][size]:.3f})"
                for method in (*INTERVALS, "lab")
            ]
            print(f"  {size:4d}  " + "   ".join(cells))


if __name__ == "__main__":
    main()
