"""`metrics.json`: the means of a cell's rows with intervals clustered by world, by group, and what they cost; or its telemetry."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hippo_core.results.frames import Frame
from hippo_core.results.records.telemetry import recall_telemetry, replay_telemetry, teach_telemetry

if TYPE_CHECKING:
    import pandas as pd


MEANS = {
    "em_raw": "em_raw",
    "em_norm": "em_norm",
    "f1": "f1",
    "found": "found",
    "success": "success",
    "suboptimality": "suboptimality",
    "r_at_1": "recall_1",
    "r_at_3": "recall_3",
    "r_at_5": "recall_5",
    "r_at_10": "recall_10",
    "refusal_rate": "refusal",
    "abstained": "abstained",
    "refuted": "refuted",
    "overlong": "overlong",
    "format_violation": "format_violation",
    "chance": "chance",
}
STAGES = ("pre", "post_1", "post_2", "post_3")
PREPARED = {"teach": teach_telemetry, "replay": replay_telemetry}
SCRAPS = {"test": ("metrics", "by_rung", "by_kind", "by_slice"), "teach": ("gates",), "replay": ("telemetry",)}  # what is glued


def build_metrics(
    rows: "pd.DataFrame", suite: str, n: int, seed: int, preset: str, seconds: float, mode: str = "test", memory: str = ""
) -> dict[str, Any]:
    """The content of `metrics.json`. `em` is the mean of the suite's primary score; what was not measured is None.

    In the place of scores a cell that teaches has `gates`, by the name of the `memory`, one that replays `telemetry`; one that tests a
    memory has telemetry besides.
    """
    cell = {"suite": suite, "n": n, "seed": seed, "preset": preset}
    if mode in PREPARED:
        found = {**PREPARED[mode](rows), "runtime_s": round(seconds, 3)}
        return {**cell, **({"gates": {memory: found}} if mode == "teach" else {"telemetry": found})}
    telemetry = recall_telemetry(rows)
    return {**cell, **_scores(rows, suite, seconds), **({"telemetry": telemetry} if telemetry else {})}


def prepared_telemetry(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """What a cell that taught or replayed says, of this form or the older one, in which a gate's decisions were telemetry too."""
    return next(iter(metrics["gates"].values())) if "gates" in metrics else metrics["telemetry"]


def _scores(rows: "pd.DataFrame", suite: str, seconds: float) -> dict[str, Any]:
    main: Frame = rows[rows["stage"] == "test"] if "test" in set(rows["stage"]) else rows
    metrics = _score(main, "n_items") | {name: _mean(main[column]) for name, column in MEANS.items() if column in main} | _stages(rows)
    return {
        "metrics": {suite: metrics, "compute": _compute(rows, seconds)},
        "by_rung": _groups(main, "rung"),
        "by_kind": _groups(main, "kind"),
        "by_slice": _slices(main),
    }


def _mean(values: Frame) -> float | None:
    mean = float(values.mean())
    return None if math.isnan(mean) else mean


def _score(rows: Frame, count: str = "n") -> dict[str, Any]:
    """Mean of the primary score with its 95% interval clustered by world, and how much it rests on."""
    from hippo_core.results.statistics import cluster_interval

    scored = rows[rows["score"].notna()]
    if scored.empty:
        return {"em": None, "low": None, "high": None, count: 0, "n_worlds": 0}
    interval = cluster_interval(scored["score"].to_numpy(dtype=float), scored["world"].to_numpy())
    low, high = (None if math.isnan(bound) else float(bound) for bound in (interval.low, interval.high))
    return {"em": _mean(scored["score"]), "low": low, "high": high, count: len(scored), "n_worlds": int(scored["world"].nunique())}


def _groups(rows: Frame, column: str) -> dict[str, Any]:
    return {str(name): _score(group) for name, group in rows.groupby(column, sort=True)}


def _slices(rows: Frame) -> dict[str, Any]:
    names = sorted({name for joined in rows["slices"] for name in joined.split(";") if name})
    return {name: _score(rows[[name in joined.split(";") for joined in rows["slices"]]]) for name in names}


def _stages(rows: Frame) -> dict[str, float | None]:
    """`pre_em`, `post_1_em` ...: the primary score around a replay or a consolidation; None for a cell that has no such stage."""
    return {f"{stage}_em": _mean(rows.loc[rows["stage"] == stage, "score"]) for stage in STAGES}


def _compute(rows: Frame, seconds: float) -> dict[str, Any]:
    read, generated = int(rows["prompt_tokens"].sum()), int(rows["generated_tokens"].sum())
    return {
        "tokens": read + generated,
        "input_tokens": read,
        "generated_tokens": generated,
        "computed_tokens": float(rows["computed_tokens"].sum()) if "computed_tokens" in rows else None,
        "runtime_s": round(seconds, 3),
        "time_s_per_100": round(100 * seconds / len(rows), 3),
        "latency_ms_mean": _mean(rows["latency_ms"]),
        "kv_mem_mb": None if rows["kv_mb"].isna().all() else float(rows["kv_mb"].max()),
    }
