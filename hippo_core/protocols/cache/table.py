"""The table of the cache experiment: a row a probe, a fault and a defence; and what it comes to."""

import math
from typing import Any

import numpy as np

from hippo_core.discovery import members
from hippo_core.results.frames import Frame
from hippo_core.results.records.table import Table, mean_by_cluster

COLUMNS = (
    *("probe", "cluster", "task", "kind", "severity", "defence", "score", "loss", "chance"),
    *("damaged", "detected", "false_alarms", "repair_ms", "kept_bytes", "scored_tokens", "tokens_per_s", "peak_mb", "gpu_peak_mb"),
)
STABILITY = "stability_metrics.json"  # beside the rows of a measurement
TRAIN_LOG = "logs/train.jsonl"  # in the record of a training, and of a measurement of what was trained
TEXTS = ("text", "wikitext2")  # tasks that are judged by their loss
DEFENCES = "hippo_core.protocols.cache.defences"
CLEAN = "clean"  # the kind of no fault
NOTHING = 1e-4  # nats a token, or answers right: what rounding alone may take
LEAST_ABOVE_CHANCE, LEAST_LOST = 0.3, 0.1  # of a probe that is admitted: its clean score above chance, and what the worst fault takes


def is_bound(defence: str) -> bool:
    """Whether a defence reads where the damage is, or runs the text again, so that it bounds what the others can do."""
    own = members(DEFENCES).get(defence)
    return defence == "recompute" or bool(own and own.constants.get("uses_oracle_mask"))


def admitted(rows: Frame) -> dict[str, dict[str, Any]]:
    """Of each task whether it can show anything: its clean score lies far above chance, and faults hurt it. The score of text is a
    probability of tokens, whose chance is next to nothing: it need only be hurt."""
    plain = rows[rows["defence"] == "none"]
    result: dict[str, dict[str, Any]] = {}
    for task, own in plain.groupby("task", sort=False):
        clean = own[own["kind"] == CLEAN]
        measure, sign = measure_of(str(task))
        lost = sign * (clean[measure].mean() - own[own["kind"] != CLEAN].groupby(["kind", "severity"])[measure].mean())
        above, most = float(clean["score"].mean() - clean["chance"].mean()), float(lost.max()) if len(lost) else 0.0
        fit = most >= LEAST_LOST and (measure == "loss" or above >= LEAST_ABOVE_CHANCE)
        result[str(task)] = {"clean": float(clean[measure].mean()), "above_chance": above, "most_lost": most, "admitted": bool(fit)}
    return result


def measure_of(task: str) -> tuple[str, int]:
    """What a task is judged by, and 1 where more of it is better, -1 where less is."""
    return ("loss", -1) if task in TEXTS else ("score", 1)


def recovered(rows: Frame) -> Frame:
    """Damage recovered = (corrupt - repaired) / (corrupt - clean), by task, kind, severity and defence, with its 95% interval by cluster on
    the same probes; NaN where nothing was lost. A defence that harms is below 0."""
    import pandas as pd

    lines = []
    for (task, kind, severity), own in rows[rows["kind"] != CLEAN].groupby(["task", "kind", "severity"], sort=False):
        name, _ = measure_of(str(task))
        clean = rows[(rows["task"] == task) & (rows["kind"] == CLEAN) & (rows["defence"] == "none")].set_index("probe")
        corrupt = own[own["defence"] == "none"].set_index("probe")
        for defence, repaired in own[own["defence"] != "none"].groupby("defence", sort=False):
            labels = {"task": task, "kind": kind, "severity": severity, "defence": defence}
            lines.append(labels | _ratio(clean[name], corrupt[name], repaired.set_index("probe")[name], clean["cluster"]))
    return pd.DataFrame(lines, columns=["task", "kind", "severity", "defence", "recovered", "low", "high", "lost", "n", "clusters"])


def _ratio(clean: Any, corrupt: Any, repaired: Any, clusters: Any) -> dict[str, Any]:
    from hippo_core.results.statistics.interval import ratio_interval

    gained, lost = (corrupt - repaired).reindex(clean.index), (corrupt - clean).reindex(clean.index)
    if abs(lost.mean()) < NOTHING:
        return {"recovered": math.nan, "low": math.nan, "high": math.nan, "lost": 0.0, "n": len(lost), "clusters": clusters.nunique()}
    ratio = ratio_interval(gained, lost, clusters)
    varies = ratio.high - ratio.low > 1e-9  # where all of each probe's damage is gone, or none, there is nothing to estimate from
    low, high = (ratio.low, ratio.high) if varies else (math.nan, math.nan)
    counts = {"lost": abs(float(lost.mean())), "n": ratio.n, "clusters": ratio.n_worlds}
    return {"recovered": ratio.mean, "low": low, "high": high, **counts}


def kept(rows: Frame) -> Frame:
    """What is left of the clean model's score above chance, by task, kind, severity and defence, at severity 0 too: 1 is all, 0 a guess."""
    import pandas as pd

    lines = []
    for task, own in rows.groupby("task", sort=False):
        clean = own[(own["kind"] == CLEAN) & (own["defence"] == "none")]
        above = clean["score"].mean() - clean["chance"].mean()
        for (defence, kind), mine in own[own["kind"] != CLEAN].groupby(["defence", "kind"], sort=False):
            undamaged = own[(own["kind"] == CLEAN) & (own["defence"] == defence)].assign(kind=kind)
            for severity, level in pd.concat([undamaged, mine]).groupby("severity"):
                value = (level["score"].mean() - level["chance"].mean()) / above if above else math.nan
                lines.append({"task": task, "kind": kind, "severity": severity, "defence": defence, "kept": value})
    return pd.DataFrame(lines, columns=["task", "kind", "severity", "defence", "kept"])


def kept_of_damaged(curves: Frame) -> Frame:
    """By defence (lines) and kind of fault (columns) the mean of `kept` over damaged caches alone: severities above 0, over tasks."""
    damaged = curves[curves["severity"] > 0]
    return damaged.groupby(["defence", "kind"], sort=False)["kept"].mean().unstack(sort=False)


def kept_of_removed(rows: Frame) -> Frame:
    """Of rows whose caches lost bits what is `kept` of the score above chance, by way, severity and share `removed`, tasks averaged."""
    clean, chance = rows[rows["severity"] == 0].groupby("task")["score"].mean(), rows.groupby("task")["chance"].mean()
    means = rows.groupby(["way", "severity", "removed", "task"], sort=False)["score"].mean().reset_index()
    above = means["task"].map(chance)
    means["kept"] = (means["score"] - above) / (means["task"].map(clean) - above)
    return means.groupby(["way", "severity", "removed"], sort=False)["kept"].mean().reset_index()


def auc(curves: Frame) -> Frame:
    """Normalised robustness: the mean height of `kept` over severity from 0 to the largest (trapezoids), by task, kind and defence."""
    import pandas as pd

    lines = []
    for (task, kind, defence), own in curves.groupby(["task", "kind", "defence"], sort=False):
        line = own.sort_values("severity")
        at, height = line["severity"].to_numpy(), line["kept"].to_numpy()
        lines.append({"task": task, "kind": kind, "defence": defence, "auc": float(np.trapezoid(height, at) / (at[-1] - at[0]))})
    return pd.DataFrame(lines, columns=["task", "kind", "defence", "auc"])


def regression(rows: Frame) -> dict[str, dict[str, Any]]:
    """What a defence costs where nothing is damaged: by task and defence the loss it adds, in nats a token, and the score it loses."""
    costs: dict[str, dict[str, Any]] = {}
    for task, own in rows[rows["kind"] == CLEAN].groupby("task", sort=False):
        bare = own[own["defence"] == "none"]
        for name, mine in own.groupby("defence", sort=False):
            added, lost = mine["loss"].mean() - bare["loss"].mean(), bare["score"].mean() - mine["score"].mean()
            costs.setdefault(str(task), {})[str(name)] = {"loss": float(added), "score": float(lost)}
    return costs


def overhead(rows: Frame) -> dict[str, dict[str, float]]:
    """By defence: milliseconds a cache, bytes that are kept beside one, tokens that are read a second of repair and reading, and where it
    was measured the most memory of the process and of the GPU."""
    names = {"repair_ms": "mean", "kept_bytes": "mean", "tokens_per_s": "mean", "peak_mb": "max", "gpu_peak_mb": "max"}
    own = {name: how for name, how in names.items() if name in rows}  # rows of before 2026-11-29 have the first two
    return rows.groupby("defence", sort=False).agg(own).to_dict("index")


def perplexity(rows: Frame) -> Frame:
    """Of tasks that are texts exp(nats a token), all their scored tokens together (each window has as many), by task, kind, severity and
    defence: `ppl`."""
    keys = ["task", "kind", "severity", "defence"]
    means = rows[rows["task"].isin(TEXTS)].groupby(keys, sort=False)["loss"].mean()
    return np.exp(means).rename("ppl").reset_index()


def best_heuristic(areas: Frame) -> str:
    """The training-free defence, without the mask and without memory, with the largest mean area; empty where there is none."""
    heuristics = areas[areas["defence"].isin(("smoothing", "clipping", "detect_clear", "rms_outlier", "median"))]
    means = heuristics.groupby("defence")["auc"].mean().dropna()  # no area where nothing is known of whole caches either
    return "" if means.empty else str(means.idxmax())


def task_metrics(rows: Frame) -> dict[str, Any]:
    """All of the above as plain values."""
    curves = kept(rows)
    areas, ppl = auc(curves), perplexity(rows)
    return {
        "admitted": admitted(rows),
        "score_vs_severity": plain(curves),
        "robustness_auc": plain(areas),
        "best_heuristic": best_heuristic(areas),
        "damage_recovered": plain(recovered(rows)),
        "clean_regression": regression(rows),
        "overhead": plain(overhead(rows)),
        "probes": rows.groupby("task", sort=False)["probe"].nunique().to_dict(),
        "ppl_clean": plain(ppl[ppl["kind"] == CLEAN].drop(columns=["kind", "severity"])),
        "ppl_corrupted": plain(ppl[ppl["kind"] != CLEAN]),
    }


def plain(value: Any, digits: int | None = None) -> Any:
    """Values as JSON has them: a table is a list of its lines, what is not known is None, and floats are rounded to so many `digits`."""
    if hasattr(value, "to_dict"):
        value = value.to_dict("records")
    if isinstance(value, dict):
        return {name: plain(item, digits) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item, digits) for item in value]
    if isinstance(value, float):
        return None if not math.isfinite(value) else float(value) if digits is None else round(value, digits)
    return value.item() if hasattr(value, "item") else value


def metrics(cell: Any, rows: Frame, seconds: float) -> dict[str, Any]:
    """The means of each defence on clean and damaged caches, and the whole."""
    broken = rows[rows["kind"] != CLEAN].groupby("defence", sort=False)
    scores = {str(name): mean_by_cluster(own, "score", "cluster") for name, own in broken}
    return {"metrics": scores, "tasks": task_metrics(rows), "runtime_s": round(seconds, 3)}


MEASURE = Table(
    columns=COLUMNS,
    unit="probe",
    cluster="cluster",
    measures=("score", "loss"),
    step="measure",
    text=("probe", "cluster", "task", "kind", "defence"),
    metrics=metrics,
    scraps=("metrics", "tasks"),
)


REMOVE = Table(
    columns=("probe", "cluster", "task", "way", "severity", "removed", "score", "loss", "chance"),
    unit="probe",
    cluster="cluster",
    measures=("score", "loss"),
    step="remove",
    file="removal.csv",
    text=("probe", "cluster", "task", "way"),
)


def trained(cell: Any, rows: Frame, seconds: float) -> dict[str, Any]:
    """What the training of a repair came to: the last evaluation on validation probes, and the mean distance over its steps."""
    return {
        "metrics": {"distance": mean_by_cluster(rows, "distance", "kind")},
        "training": {"examined": cell.examined, "numbers": cell.numbers, "steps": len(rows)},
        "runtime_s": round(seconds, 3),
    }


TRAIN = Table(
    columns=(
        *("number", "kind", "distance", "identity", "contraction", "rho", "severity"),
        *("loss", "seconds", "tokens_per_s", "peak_mb", "gpu_peak_mb"),
    ),
    unit="number",
    cluster="kind",
    measures=("distance",),
    step="train",
    file="train.csv",
    text=("kind",),
    whole=("number",),
    metrics=trained,
    scraps=("metrics", "training"),
)
