"""The table of a step that asks: a row an item, clusters are worlds; what is summed up from it, and how it is checked."""

import math
from typing import TYPE_CHECKING, Any

from hippo_core.results.frames import Frame
from hippo_core.results.records.table import Table
from hippo_core.results.scores import RANKING_COLUMNS, check_rows

if TYPE_CHECKING:
    import pandas as pd


MEASURES = {  # keys of the metrics, and the columns that they are means of
    **{name: name for name in ("em_raw", "em_norm", "f1", "success", "suboptimality", "localisation_error")},
    **{f"r_at_{k}": f"recall_{k}" for k in (1, 3, 5, 10)},
    "refusal_rate": "refusal",
    **{name: name for name in ("abstained", "refuted", "overlong", "format_violation", "chance", "found")},
}
STAGES = ("pre", "post_1", "post_2", "post_3")
COLUMNS = (
    *("idx", "item_id", "world", "stage", "kind", "rung", "hops", "distance", "lag", "slices", "question", "prompt"),
    *("answer", "pred", "em_raw", "em_norm", "f1", "success", "suboptimality", "localisation_error", "score", "chance"),
    *("forced", "score_forced", "unknown_margin", "confidence", "evidence"),
    *("pred_len", "gold_len", "overlong", "format_violation", "refusal", "abstained", "refuted"),
    *("shown", "recalled_texts", "read", "inner_read", "composed_by", "n_shown", "n_dropped", "found", *RANKING_COLUMNS),
    *("prompt_tokens", "generated_tokens", "first_logprob", "trace_tokens", "computed_tokens", "once_tokens", "kv_mb"),
    *("latency_ms", "retrieval_ms", "flags"),
)


def asked_metrics(rows: "pd.DataFrame", suite: str, n: int, seed: int, preset: str, seconds: float) -> dict[str, Any]:
    """The content of `metrics.json`: `em` is the mean of the suite's primary score; what was not measured is None."""
    main: Frame = rows[rows["stage"] == "test"] if "test" in set(rows["stage"]) else rows
    metrics = _score(main, "n_items") | {"n_cut": int(has_flag(main, "cut").sum())}
    metrics |= {name: _mean(main[column]) for name, column in MEASURES.items() if column in main}
    metrics |= {f"{stage}_em": _mean(rows.loc[rows["stage"] == stage, "score"]) for stage in STAGES}  # None where there is no such stage
    slices = [joined.split(";") for joined in main["slices"]]
    names = sorted({name for slices_of_row in slices for name in slices_of_row if name})
    return {
        **{"suite": suite, "n": n, "seed": seed, "preset": preset},
        "metrics": {suite: metrics, "compute": _compute(rows, seconds)},
        **{f"by_{column}": {str(name): _score(group) for name, group in main.groupby(column, sort=True)} for column in ("rung", "kind")},
        "by_slice": {name: _score(main[[name in slices_of_row for slices_of_row in slices]]) for name in names},
    }


def metrics(cell: Any, rows: "pd.DataFrame", seconds: float) -> dict[str, Any]:
    """The same of an open cell."""
    parameters = cell.parameters
    asked = asked_metrics(rows, parameters.suite, parameters.n, parameters.seed, parameters.preset, seconds)
    return asked | cell.own_means(rows)


def check(cell: Any, rows: "pd.DataFrame") -> dict[str, Any]:
    """Score the answers again: LabError where they were shifted against their questions, or a score is not the strict one."""
    check_rows(cell.suite, cell.worlds(), rows)
    return {"stages": sorted(rows["stage"].unique())}


ITEMS = Table(
    columns=COLUMNS,
    unit="item_id",
    cluster="world",
    measures=("score",),
    text=(
        *("item_id", "world", "stage", "kind", "rung", "slices", "question", "prompt", "answer", "pred", "forced"),
        *("shown", "recalled_texts", "read", "inner_read", "composed_by", "flags"),
    ),
    whole=("idx", "hops", "distance"),
    metrics=metrics,
    check=check,
    scraps=("metrics", "by_rung", "by_kind", "by_slice"),
)


def has_flag(rows: Frame, flag: str) -> Frame:
    """Which rows have this flag."""
    return rows["flags"].astype(object).fillna("").astype(str).str.contains(rf"(?:^|;){flag}(?:;|$)")


def _mean(values: Frame) -> float | None:
    mean = float(values.mean())
    return None if math.isnan(mean) else mean


def _score(rows: Frame, count: str = "n") -> dict[str, Any]:
    """Mean of the primary score with its 95% interval clustered by world, and how much it rests on."""
    from hippo_core.results.statistics.interval import cluster_interval

    scored = rows[rows["score"].notna()]
    if scored.empty:
        return {"em": None, "low": None, "high": None, count: 0, "n_worlds": 0}
    interval = cluster_interval(scored["score"].to_numpy(dtype=float), scored["world"].to_numpy())
    low, high = (None if math.isnan(bound) else float(bound) for bound in (interval.low, interval.high))
    return {"em": _mean(scored["score"]), "low": low, "high": high, count: len(scored), "n_worlds": int(scored["world"].nunique())}


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
