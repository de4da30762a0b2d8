"""The tables of a memory's three steps: what was decided about each told fact, what each replay did, what was answered; and
what is summed up of them for `metrics.json`. A cell that teaches or replays answers nothing, so this stands in the place of scores."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hippo_core.evaluation import table
from hippo_core.evaluation.table import ITEMS
from hippo_core.results.frames import Frame
from hippo_core.results.records.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.protocols.questions.protocol import MemoryCell

# Columns that the rows of a memory's test have besides those of every test: how often it was asked, what its codes brought, what was
# put before the question, how many traces of the item's world there are, the time of each part, and what of it a replay touched.
RECALL = ("requests", "candidates", "k_used", "store_size", "recall_ms", "completion_ms", "encode_ms", "replay_contribution")
TEACH_COLUMNS = (
    *("fact_id", "world", "time", "S", "surprise", "novelty", "reward", "pin", "contributions"),
    *("action", "trace_id", "evicted", "ms", "asked"),
)
REPLAY_COLUMNS = ("cycle", "world", "trace_id", "cue", "recalled", "salience_before", "salience_after", "merged", "ms")
OF_STORE = ("store_written", "replayed", "replay_contribution", "replay_cycles_missing")
OWN = ("follows_store", "requests", "candidates", "k_used", "store_size", "recall_ms", "completion_ms", "encode_ms", "scores", *OF_STORE)


def teach_telemetry(rows: Frame) -> dict[str, Any]:
    """Decisions counted, the spread of S, and how well what was kept foretells what is asked (the hidden label `asked`). `rows` has a line
    a told fact: action, S (NaN where nothing was weighed), asked, ms, and, where a budget was kept, evicted. Precision and recall are those
    of what was left in the end, the area under the curve that of S; `goes_with_asked`: the correlation of each term of a gate with that
    label. `false_drops`: the share of facts asked about that were not left in the end; `false_keeps`: the share of facts never asked about
    that were; each with its 95% interval by world. None is what there is nothing to measure by."""
    actions = rows["action"].value_counts()
    counts = {name: int(actions.get(action, 0)) for name, action in _ACTIONS.items()}
    written, evicted = rows["action"] != "refuse", rows.get("evicted", 0.0 * rows["asked"]).astype(bool)
    asked, remaining = rows["asked"].astype(bool), written & ~evicted
    return {
        "attempts": len(rows),
        **counts,
        "evicted": int((written & evicted).sum()),
        "write_rate": _known(written.mean()),
        "asked_rate": _known(asked.mean()),
        "precision": _known(asked[remaining].mean()),
        "recall": _known(remaining[asked].mean()),
        "false_drops": _by_world(rows, asked, ~remaining),
        "false_keeps": _by_world(rows, ~asked, remaining),
        **_salience(rows[rows["S"].notna()]),
        "goes_with_asked": {term: _correlation(rows, term) for term in TERMS if term in rows},
        "ms_mean": _known(rows["ms"].mean()),
    }


def _by_world(rows: Frame, among: Any, counted: Any) -> dict[str, Any]:
    """The share of `counted` among these facts, with its 95% interval clustered by world."""
    from hippo_core.results.statistics.interval import cluster_interval

    interval = cluster_interval(counted[among].astype(float), rows["world"][among])
    shown = {name: _known(getattr(interval, name)) for name in ("mean", "low", "high")}
    return {**shown, "n": interval.n, "n_worlds": interval.n_worlds}


QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
TERMS = ("surprise", "novelty", "reward", "pin")  # of a gate, as hippo_core.methods.episodic.gate weighs them
_ACTIONS = {"inserted": "insert", "aggregated": "aggregate", "routed": "route", "refused": "refuse"}


def _correlation(rows: Frame, term: str) -> float | None:
    values, asked = rows[term].astype(float), rows["asked"].astype(float)
    varies = values.notna().all() and values.nunique() > 1 and asked.nunique() > 1
    return _known(values.corr(asked)) if varies else None


def _salience(rows: Frame) -> dict[str, Any]:
    import numpy as np

    values = rows["S"].to_numpy(dtype=float)
    mean, sd = (values.mean(), values.std()) if len(values) else (math.nan, math.nan)
    spread = np.quantile(values, QUANTILES) if len(values) else [math.nan] * len(QUANTILES)
    quantiles = {f"{100 * share:g}%": _known(value) for share, value in zip(QUANTILES, spread, strict=True)}
    pr_auc = average_precision(values, rows["asked"].to_numpy(dtype=bool))
    return {"pr_auc": _known(pr_auc), "S": {"mean": _known(mean), "sd": _known(sd), "quantiles": quantiles}}


def average_precision(scores: Any, labels: Any) -> float:
    """Sum over thresholds t of (R(t) - R(t + 1)) * P(t), one threshold for each distinct score: equal scores are taken together.

    R and P are recall and precision of "score >= t", t + 1 the next higher threshold; nothing is interpolated (Davis & Goadrich 2006 on
    why not to). NaN without a positive label.
    """
    import numpy as np

    values, positive = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if not positive.sum():
        return math.nan
    order = np.argsort(-values, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(values[order])), len(values) - 1)  # the last of each run of equal scores
    hits = np.cumsum(positive[order])[ends]
    return float((np.diff(hits, prepend=0.0) * hits / (ends + 1)).sum() / positive.sum())


def replay_telemetry(rows: Frame) -> dict[str, Any]:
    """Traces replayed, over how many cycles, the share recalled from their noisy cue, and what that did to their salience; `rows` has a
    line a trace and cycle."""
    change = rows["salience_after"] - rows["salience_before"]
    return {
        "items": len(rows),
        "traces": int(rows["trace_id"].nunique()),
        "cycles": int(rows["cycle"].nunique()),
        "recalled": _known(rows["recalled"].mean()),
        "salience_change": {"mean": _known(change.mean()), "raised": int((change > 0).sum()), "lowered": int((change < 0).sum())},
        "ms_mean": _known(rows["ms"].mean()),
    }


def recall_telemetry(rows: Frame) -> dict[str, Any]:
    """Means of what recall took, for rows that a memory answered; empty for others. `requests` is a sum."""
    if "requests" not in rows:
        return {}
    means = {f"{name}_mean": _known(rows[name].mean()) for name in RECALL if name != "requests"}
    return {"requests": int(rows["requests"].sum()), **means, "trace_tokens_mean": _known(rows["trace_tokens"].mean())}


def _known(value: Any) -> float | None:
    number = float(value)
    return None if math.isnan(number) else number


def taught_metrics(cell: "MemoryCell", rows: "pd.DataFrame", seconds: float) -> dict[str, Any]:
    """How the gate decided, by the name of the memory."""
    memory: Any = cell.resolved.preset.method
    return _cell(cell) | {"gates": {memory.algorithm(): {**teach_telemetry(rows), "runtime_s": round(seconds, 3)}}} | cell.own_means(rows)


def replayed_metrics(cell: "MemoryCell", rows: "pd.DataFrame", seconds: float) -> dict[str, Any]:
    """What the replay did."""
    return _cell(cell) | {"telemetry": {**replay_telemetry(rows), "runtime_s": round(seconds, 3)}} | cell.own_means(rows)


def tested_metrics(cell: "MemoryCell", rows: "pd.DataFrame", seconds: float) -> dict[str, Any]:
    """The scores, what recall took, and what the gate of a map decided when it was read. A score is also `pre_em` where nothing was
    replayed, and `post_<cycles>_em` after a sleep, which is None where nothing was replayed."""
    metrics = table.metrics(cell, rows, seconds)
    scores, parts = metrics["metrics"][cell.parameters.suite], cell.resolved.preset.parts.values()
    if cell.parameters.regime == "after_sleep":
        cycles = max(getattr(getattr(part.settings, "replay", None), "cycles", 1) for part in parts)
        scores[f"post_{cycles}_em"] = scores["em"] if rows["replayed"].astype(bool).to_numpy().all() else None
    elif cell.parameters.regime == "delayed":
        scores["pre_em"] = scores["em"]
    return metrics | {"telemetry": recall_telemetry(rows)} | map_gates(rows)


def map_gates(rows: Frame) -> dict[str, Any]:
    """How often the gate of a map decided how, over the maps of all worlds, whose rows say it each time; empty of other memories."""
    actions = {"inserted": "gate_inserted", "aggregated": "gate_aggregated", "blocked_new_edges": "gate_blocked"}
    counts = {name: int(rows.groupby("world")[column].max().sum()) for name, column in actions.items() if column in rows}
    return {"gates": {"smpd": {"attempts": sum(counts.values()), **counts}}} if counts else {}


def _cell(cell: "MemoryCell") -> dict[str, Any]:
    return {name: getattr(cell.parameters, name) for name in ("suite", "n", "seed", "preset")}


TEST = replace(ITEMS, columns=(*ITEMS.columns, *OWN), text=(*ITEMS.text, "scores"), metrics=tested_metrics)
TEACH = Table(
    columns=TEACH_COLUMNS,
    unit="fact_id",
    cluster="world",
    measures=("S",),
    step="teach",
    file="teach.csv",
    text=("fact_id", "world", "contributions", "action"),
    metrics=taught_metrics,
    scraps=("gates",),
)
REPLAY = Table(
    columns=REPLAY_COLUMNS,
    unit="trace_id",
    cluster="world",
    measures=("recalled",),
    step="replay",
    file="replay.csv",
    text=("world", "cue"),
    metrics=replayed_metrics,
    scraps=("telemetry",),
)
