"""What the memories of a run did, in three tables: what recall took, how gates decided, what replays changed."""

from pathlib import Path
from typing import Any

from hippo_core.protocols.questions.report.gates import gate_pairs
from hippo_core.protocols.questions.report.runs import LISTED, Run
from hippo_core.protocols.questions.report.tables import condition_keys
from hippo_core.results.conditions import before_sleep, condition_name, replay_cycles, suite_position
from hippo_core.results.figures.palette import style_of
from hippo_core.results.formatting import NONE, count, missing, percent, quantity, share, share_and_span
from hippo_core.results.frames import Frame
from hippo_core.results.records import read_meta, read_metrics, records_with
from hippo_core.results.statistics.paired import Comparison
from hippo_core.results.summaries import pair

SHARES = ("recall_1", "recall_3", "recall_5", "recall_10", "replay_contribution")
PEAK = 0.95  # of the best score: from where on a memory counts as stable
MEANS = (*SHARES, "k_used", "trace_tokens", "recall_ms", "completion_ms", "encode_ms", "latency_ms", "store_size")


def telemetry(run: Run) -> dict[str, Any]:
    """The lines of each table; one that nothing was measured for is empty. Of many seeds the first are listed."""
    lines = [_prepared(run, record) for step in ("teach", "replay") for record in records_with(run.folder, step=step)]
    seeds = sorted({line["seed"] for line in lines})[:LISTED]
    listed = sorted((line for line in lines if line["seed"] in seeds), key=lambda line: (line["place"], line["name"], line["seed"]))
    tables = {step: [line for line in listed if line["step"] == step] for step in ("teach", "replay")}
    return {"recall": _recall(run), "gate": tables["teach"], "replay": tables["replay"], "own": _own(run), "gates": gate_pairs(run)}


def _own(run: Run) -> list[dict[str, Any]]:
    """The means of the columns that methods declare: a line a record and column, by suite and condition."""
    lines = []
    for record in records_with(run.folder):
        if own := read_metrics(record).get("own"):
            meta = read_meta(record)
            parameters = meta["parameters"]
            name = style_of(condition_name(parameters.get("preset", meta["experiment"]), ", ".join(parameters.get("overrides", ())))).label
            where = {"place": parameters.get("suite", ""), "name": name, "step": meta["step"], "seed": parameters["seed"]}
            lines += [{**where, "column": column, "mean": NONE if mean is None else quantity(mean)} for column, mean in own.items()]
    return sorted(lines, key=lambda line: (suite_position(line["place"]), line["name"], line["step"], line["seed"]))


def _recall(run: Run) -> list[dict[str, Any]]:
    if "requests" not in run.numbers:
        return []
    answered = run.numbers[run.numbers["requests"].notna()]
    lines = []
    for setting in run.settings:
        here = answered[answered["setting"] == setting]
        for name, regime in condition_keys(here):
            rows = here[(here["condition"] == name) & (here["regime"] == regime)]
            means = rows.reindex(columns=list(MEANS)).mean()
            columns = {column: share(means[column]) if column in SHARES else quantity(means[column]) for column in MEANS}
            line = {"place": setting, "name": style_of(name).label, "regime": regime, "requests": count(rows["requests"].sum()), **columns}
            change = _after_replay(here, name) if regime == "after_sleep" else None
            line |= {"delta_after_replay": share_and_span(change.difference, change.low, change.high, sign=True) if change else NONE}
            lines.append(line | {"stable_after": _stable_after(here, name) if change else NONE})
    return lines


def _after_replay(rows: Frame, name: str) -> Comparison | None:
    """The score after a sleep less that before it, on the same questions; None where only one was measured."""
    after = (name, "after_sleep")
    return pair(rows, after, (name, "delayed")) or pair(rows, after, (before_sleep(name), "delayed"))


def _stable_after(rows: Frame, name: str) -> str:
    """Time to stabilise: the fewest replay cycles, of those that were measured, whose score is PEAK of the best; 0 is before any."""
    asleep = rows["condition"].map(lambda condition: before_sleep(condition, "replay.cycles=")) == before_sleep(name, "replay.cycles=")
    before = (rows["regime"] == "delayed") & (rows["condition"] == before_sleep(name))
    means = rows[before | (asleep & (rows["regime"] == "after_sleep"))].groupby(["condition", "regime"])["score"].mean()
    scores = {replay_cycles(condition) * (regime == "after_sleep"): mean for (condition, regime), mean in means.items()}
    return f"{min(cycles for cycles, mean in scores.items() if mean >= PEAK * max(scores.values()))} of {sorted(scores)}"


def _prepared(run: Run, record: Path) -> dict[str, Any]:
    """A line for a cell that taught or replayed."""
    meta, metrics = read_meta(record), read_metrics(record)
    parameters, step = meta["parameters"], meta["step"]
    model = parameters["model"] if len(run.models) > 1 else ""
    profile = "" if parameters["profile"] == "default" else parameters["profile"]
    split = "" if parameters["split"] == "test" else f"{parameters['split']} worlds"
    return {
        "step": step,
        "place": " · ".join(filter(None, [model, parameters["suite"], profile, split])),
        "name": style_of(condition_name(parameters["preset"], ", ".join(parameters["overrides"]))).label,
        "n": count(parameters["n"]),
        "seed": parameters["seed"],
        "record": record.relative_to(run.folder).as_posix(),
        **(_replay(metrics["telemetry"]) if step == "replay" else _gate(next(iter(metrics["gates"].values())))),
    }


def _gate(telemetry: dict[str, Any]) -> dict[str, str]:
    spread = telemetry["S"]["quantiles"]
    low, median, high = (share(spread[name]) for name in ("5%", "50%", "95%"))
    rates = {name: telemetry.get(name) for name in ("false_drops", "false_keeps")}  # older records have none
    return {
        **{name: count(telemetry[name]) for name in ("attempts", "inserted", "aggregated", "routed", "refused", "evicted")},
        "write_rate": percent(telemetry["write_rate"]),
        "spread": NONE if missing(spread["50%"]) else f"{median} ({low} to {high})",
        **{name: share(telemetry[name]) for name in ("precision", "recall", "pr_auc", "asked_rate")},
        **{name: share_and_span(rate["mean"], rate["low"], rate["high"]) if rate else NONE for name, rate in rates.items()},
        "ms": quantity(telemetry["ms_mean"]),
    }


def _replay(telemetry: dict[str, Any]) -> dict[str, str]:
    change = telemetry["salience_change"]
    return {
        **{name: count(telemetry[name]) for name in ("items", "traces", "cycles")},
        "recalled": percent(telemetry["recalled"]),
        "change": share(change["mean"], sign=True),
        **{name: count(change[name]) for name in ("raised", "lowered")},
        "ms": quantity(telemetry["ms_mean"]),
    }
