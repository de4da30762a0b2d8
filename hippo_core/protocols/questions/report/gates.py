"""Each memory with its gate beside the same one without it, on the same questions: what the gate costs, and what it saves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hippo_core.protocols.questions.report.runs import Run, prepared_in, taught_by
from hippo_core.results.conditions import base, condition_name, marks_of, unmarked
from hippo_core.results.figures.palette import style_of
from hippo_core.results.formatting import NONE, count, missing, quantity, share, share_and_span
from hippo_core.results.frames import Frame
from hippo_core.results.records import read_metrics
from hippo_core.results.summaries import pair

SWITCHES = {"memory/hei_nw": "episodic.use_gate=true", "memory/sgc_rss": "relational.gate.enabled=false"}  # turn a gate on, or off
SWITCHES |= {"memory/smpd": "spatial.gate.enabled=false"}
WRITTEN = ("inserted", "aggregated", "routed", "refused")
COLUMNS = (  # of the table: how each is headed, and its key in a line
    *(("inserted", "inserted"), ("aggregated", "aggregated"), ("routed to episodic", "routed"), ("refused", "refused")),
    *(("blocked new edges", "blocked"), ("nodes / 1k", "nodes_per_1k"), ("edges / 1k", "edges_per_1k"), ("ms", "item_ms_taught")),
)
GROWN = ("nodes_per_1k", "edges_per_1k", "item_ms_taught")  # means over questions


def gate_pairs(run: Run) -> list[dict[str, Any]]:
    """A line a setting, memory and seed, and one over all seeds where there are several: the score with the gate less that without (with
    its 95% interval by world), and of each side the decisions, the nodes and edges for 1,000 statements, the milliseconds a question."""
    lines, prepared = [], prepared_in(run.folder)
    for setting in run.settings:
        rows = run.numbers[run.numbers["setting"] == setting]
        rows = rows.assign(condition=rows["condition"].map(unmarked))  # a gate that costs too much is looked at all the more
        for gated, ungated in _pairs(rows):
            seeds = sorted(rows.loc[rows["condition"] == gated, "seed"].unique())
            for seed in [*seeds, *(["all"] if len(seeds) > 1 else [])]:
                here = rows if seed == "all" else rows[rows["seed"] == seed]
                lines += [{"place": setting, "seed": str(seed), **line} for line in _lines(run.folder, prepared, here, gated, ungated)]
    return lines


def _pairs(rows: Frame) -> Iterator[tuple[str, str]]:
    """The conditions with a gate that have one without it."""
    there = set(rows["condition"])
    for name in sorted(there):
        switch = SWITCHES.get(base(name))
        other = condition_name(base(name), *(mark for mark in marks_of(name) if mark != switch))
        if switch and switch in marks_of(name) and other in there:
            yield (name, other) if switch.endswith("true") else (other, name)


def _lines(folder: Path, prepared: dict[str, Path], rows: Frame, gated: str, ungated: str) -> Iterator[dict[str, Any]]:
    for regime in sorted(rows.loc[rows["condition"] == gated, "regime"].unique()):
        if change := pair(rows, (gated, regime), (ungated, regime)):
            answers = [rows[(rows["condition"] == name) & (rows["regime"] == regime)] for name in (gated, ungated)]
            counted = [_counted(folder, prepared, one) for one in answers]
            yield {
                **{"name": style_of(gated).label, "regime": regime, "n": count(change.n)},
                **{"on": share(change.mean_a), "off": share(change.mean_b)},
                "difference": share_and_span(change.difference, change.low, change.high, sign=True),
                **{name: " / ".join(one[name] for one in counted) for name in counted[0]},
            }


def _counted(folder: Path, prepared: dict[str, Path], rows: Frame) -> dict[str, str]:
    """What a gate decided and what the store or the map grew to, of one side."""
    taught = [record for record in rows["record"].unique() for record in taught_by(folder / str(record), prepared)]
    gates = [gate for record in dict.fromkeys(taught) for gate in read_metrics(record)["gates"].values()]
    blocked = rows.groupby(["record", "world"])["gate_blocked"].max().sum() if "gate_blocked" in rows else float("nan")
    means = {name: rows[name].mean() if name in rows else float("nan") for name in GROWN}
    return {
        **{name: count(sum(gate[name] for gate in gates)) if gates else NONE for name in WRITTEN},
        "blocked": NONE if missing(blocked) or rows["gate_blocked"].isna().all() else count(blocked),
        **{name: NONE if missing(mean) else quantity(mean) for name, mean in means.items()},
    }
