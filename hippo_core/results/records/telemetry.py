"""What cells of a memory say of their work: how a gate decided, what a replay did, what recall took; for `metrics.json`.

A cell that teaches or replays answers nothing, so this stands in the place of scores; a cell that tests has both.
"""

import math
from typing import Any

Frame = Any  # a pandas DataFrame or Series: what its methods return is wider than the type checker can follow

# Columns that the rows of a memory's test have besides those of every test, and what each is:
RECALL = {
    "requests": "times that the memory was asked for this item",
    "candidates": "traces that the codes brought",
    "k_used": "traces put before the question",
    "store_size": "traces of the item's world that could be recalled",
    "recall_ms": "from the cue to the candidates",
    "completion_ms": "from the candidates to their ranking",
}


def teach_telemetry(rows: Frame) -> dict[str, Any]:
    """Decisions counted, the spread of S, and how well what was written foretells what is asked (the hidden label `asked`).

    `rows` has a line a told fact: action (insert, aggregate, refuse), S (NaN where nothing was weighed), asked, ms, and contributions.
    A repeated fact that adds to a trace counts as written. None is what there is nothing to measure by.
    """
    actions = rows["action"].value_counts()
    counts = {name: int(actions.get(action, 0)) for name, action in _ACTIONS.items()}
    return {
        "attempts": len(rows),
        **counts,
        "write_rate": _known(1 - counts["refused"] / len(rows)) if len(rows) else None,
        **_gate(rows),
        "ms_mean": _known(rows["ms"].mean()),
    }


_ACTIONS = {"inserted": "insert", "aggregated": "aggregate", "refused": "refuse"}


def _gate(rows: Frame) -> dict[str, Any]:
    from hippo_core.memory.gate_scores import QUANTILES, gate_scores

    weighed = rows[rows["S"].notna()]
    written = (weighed["action"] != "refuse").to_numpy(dtype=bool)
    found = gate_scores(weighed["S"].to_numpy(dtype=float), written, weighed["asked"].to_numpy(dtype=bool))
    spread = {f"{100 * share:g}%": _known(value) for share, value in zip(QUANTILES, found.quantiles, strict=True)}
    return {
        "asked_rate": _known(found.base_rate),
        "precision": _known(found.precision),
        "recall": _known(found.recall),
        "pr_auc": _known(found.average_precision),
        "S": {"mean": _known(found.mean), "sd": _known(found.sd), "quantiles": spread},
    }


def replay_telemetry(rows: Frame) -> dict[str, Any]:
    """Traces replayed, over how many cycles, the share recalled from their noisy cue, and what that did to their salience.

    `rows` has a line a trace and cycle: cycle, trace_id, recalled (0 or 1), salience_before, salience_after, ms. `traces` counts the
    different ones.
    """
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
