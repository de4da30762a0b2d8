"""The table of a consolidation: a row a question, a probe and a stage; a row a paragraph for plain text."""

import math
from collections.abc import Mapping
from typing import Any

from hippo_core.results.frames import Frame
from hippo_core.results.records.table import Table, mean_by_cluster

PROBES: Mapping[str, str] = {  # what is asked, and the preset that asks; "" the memory's own
    "off": "baselines/span_short",
    "memory": "",
    "rag": "baselines/rag_hybrid",
    "longctx": "baselines/longctx",
    "in_context": "baselines/longctx",
    "other_suites": "baselines/longctx",
    "text": "",
}
TITLES = {
    "off": "memory off",
    "memory": "memory on",
    "rag": "hybrid rag",
    "longctx": "all facts in the prompt",
    "in_context": "other facts in the prompt",
    "other_suites": "other suites in the prompt",
    "text": "plain text",
}
OTHER_SUITES = ("babi", "spatial")  # no sleep practises their questions
ABOUT_STORE = ("off", "memory", "rag", "longctx")  # the questions about the stored facts; the others show what is lost
SPENT = ("rehearsals", "tokens", "seconds")  # on the traces that a question is about, in all cycles so far
COLUMNS = (
    *("question_id", "world", "probe", "stage", "kind", "rung", "question", "answer", "pred", "read", "score", "nats", "abstained"),
    *("prompt_tokens", "generated_tokens", "latency_ms"),
    *SPENT,
)
# Of sleeps in a row.
OFF, ORACLE = "off", "oracle"
SLEEPS_PROBES: Mapping[str, str] = {  # what is asked, and the preset that asks
    OFF: "baselines/span_short",  # about all groups, before and after every sleep
    ORACLE: "controls/oracle",  # about all groups with their facts in the prompt, before the first sleep
    "in_context": "baselines/longctx",  # about facts of no group, before the first sleep and after the last
    "text": "",  # plain text, then too
}
SLEEPS_COLUMNS = (
    *("question_id", "world", "probe", "sleep", "group", "kind", "rung", "question", "answer", "pred", "read", "score", "f1", "nats"),
    *("abstained", "prompt_tokens", "generated_tokens", "latency_ms"),
)


def measure_of(probe: Any) -> str:
    """What a probe measures."""
    return "nats" if probe == "text" else "score"


def metrics(cell: Any, rows: Frame, seconds: float) -> dict[str, Any]:
    """The means of each probe in each stage, their differences from before, and what the sleep took."""
    scores: dict[str, Any] = {}
    for (probe, stage), group in rows.groupby(["probe", "stage"], sort=False):
        scores.setdefault(str(probe), {})[str(stage)] = mean_by_cluster(group, measure_of(probe), "world")
    off = {f"{stage}_em": interval["mean"] for stage, interval in scores.get(OFF, {}).items()}  # as the evaluation plan names them
    delta = list(off.values())[-1] - off["pre_em"] if len(off) > 1 and None not in off.values() else None
    about = {name: getattr(cell.parameters, name) for name in ("suite", "n", "seed", "preset")} | off | {"delta_after_replay": delta}
    return {**about, "metrics": scores, "changes": changes(rows), "sleep": cell.slept, "runtime_s": round(seconds, 3)}


def changes(rows: Frame) -> dict[str, Any]:
    """Of each probe and each stage after the first the paired difference from before (`change`)."""
    differences: dict[str, Any] = {}
    for probe, group in rows.groupby("probe", sort=False):
        before = group[group["stage"] == "pre"]
        for stage, after in group[group["stage"] != "pre"].groupby("stage", sort=False):
            differences.setdefault(str(probe), {})[str(stage)] = change(after, before, measure_of(probe))
    return differences


def change(after: Frame, before: Frame, measure: str) -> dict[str, Any]:
    """The paired difference of a measure on the same questions, with its 95% interval by world; of answers also how many are `won` (right
    after, wrong before) and how many `lost`."""
    from hippo_core.results.statistics.paired import compare

    pair = compare(after, before, metric=measure, key="question_id", cluster="world")
    bounds = {name: None if math.isnan(end) else float(end) for name, end in (("low", pair.low), ("high", pair.high))}
    turned = {"won": pair.only_a, "lost": pair.only_b} if measure == "score" else {}
    return {"difference": float(pair.difference), **bounds, "n": pair.n, "n_worlds": pair.n_worlds, **turned}


ROWS = Table(
    columns=COLUMNS,
    unit="question_id",
    cluster="world",
    measures=("score", "nats"),
    step="consolidate",
    text=("question_id", "world", "probe", "stage", "kind", "rung", "question", "answer", "pred", "read"),
    metrics=metrics,
    scraps=("metrics", "changes", "sleep"),
)
