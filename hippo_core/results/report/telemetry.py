"""What the memories of a run did, in three tables: what recall took, how gates decided, what replays changed."""

from pathlib import Path
from typing import Any

from hippo_core.results.figures.palette import condition_name, look, ordered
from hippo_core.results.formatting import NONE, count, missing, percent, quantity, share
from hippo_core.results.frames import Frame, Row
from hippo_core.results.records import prepared_of, prepared_telemetry, read_meta, read_metrics
from hippo_core.results.report.runs import LISTED, Run
from hippo_core.results.summaries import pair, regimes_of

RECALLS = ("recall_1", "recall_3", "recall_5", "recall_10")
SHARES = (*RECALLS, "replay_contribution")
MEANS = (*SHARES, "k_used", "trace_tokens", "recall_ms", "completion_ms", "encode_ms", "latency_ms", "store_size")


def telemetry(run: Run) -> dict[str, Any]:
    """The lines of each table; one that nothing was measured for is empty. Of many seeds the first are listed."""
    found = [_prepared(run, record) for record in prepared_of(run.folder)]
    seeds = sorted({line["seed"] for line in found})[:LISTED]
    listed = sorted((line for line in found if line["seed"] in seeds), key=lambda line: (line["place"], line["name"], line["seed"]))
    tables = {mode: [line for line in listed if line["mode"] == mode] for mode in ("teach", "replay")}
    return {"recall": _recall(run), "gate": tables["teach"], "replay": tables["replay"]}


def _recall(run: Run) -> list[dict[str, Any]]:
    """A line for each setting, condition and regime that a memory answered in."""
    if "requests" not in run.numbers:
        return []
    asked = run.numbers[run.numbers["requests"].notna()]
    lines = []
    for setting in run.settings:
        here = asked[asked["setting"] == setting]
        for name in ordered(here["condition"]):
            mine = here[here["condition"] == name]
            for regime in regimes_of(mine):
                delta = _after_replay(here, name) if regime == "after_sleep" else NONE
                lines.append(_recalled(setting, name, regime, mine[mine["regime"] == regime]) | {"delta_after_replay": delta})
    return lines


def _after_replay(rows: Frame, name: str) -> str:
    """The score after a replay less that before it, on the same questions, with its interval; a dash where only one was measured."""
    found = pair(rows, (name, "after_sleep"), (name, "delayed"))
    return f"{share(found.difference, sign=True)} ({share(found.low, sign=True)} to {share(found.high, sign=True)})" if found else NONE


def _recalled(setting: str, name: str, regime: str, rows: Frame) -> dict[str, Any]:
    means: Row = rows.reindex(columns=list(MEANS)).mean()
    found = {column: share(means[column]) if column in SHARES else quantity(means[column]) for column in MEANS}
    return {"place": setting, "name": look(name).label, "regime": regime, "requests": count(rows["requests"].sum()), **found}


def _prepared(run: Run, record: Path) -> dict[str, Any]:
    """A line for a cell that taught or replayed."""
    meta, found = read_meta(record), prepared_telemetry(read_metrics(record))
    told, mode = meta["parameters"], meta["mode"]
    model = told["model"] if len(run.models) > 1 else ""
    profile = "" if told["profile"] == "default" else told["profile"]
    split = "" if told["split"] == "test" else f"{told['split']} worlds"
    return {
        "mode": mode,
        "place": " · ".join(filter(None, [model, told["suite"], profile, split])),
        "name": look(condition_name(told["preset"], ", ".join(told["overrides"]))).label,
        "n": count(told["n"]),
        "seed": told["seed"],
        "record": record.relative_to(run.folder).as_posix(),
        **(_gate(found) if mode == "teach" else _replay(found)),
    }


def _gate(found: dict[str, Any]) -> dict[str, str]:
    spread = found["S"]["quantiles"]
    ends = [share(spread[name]) for name in ("5%", "50%", "95%")]
    return {
        **{name: count(found[name]) for name in ("attempts", "inserted", "aggregated", "refused", "evicted")},
        "write_rate": percent(found["write_rate"]),
        "spread": NONE if missing(spread["50%"]) else f"{ends[1]} ({ends[0]} to {ends[2]})",
        **{name: share(found[name]) for name in ("precision", "recall", "pr_auc", "asked_rate")},
        "ms": quantity(found["ms_mean"]),
    }


def _replay(found: dict[str, Any]) -> dict[str, str]:
    change = found["salience_change"]
    return {
        **{name: count(found[name]) for name in ("items", "traces", "cycles")},
        "recalled": percent(found["recalled"]),
        "change": share(change["mean"], sign=True),
        "raised": count(change["raised"]),
        "lowered": count(change["lowered"]),
        "ms": quantity(found["ms_mean"]),
    }
