"""What a report says of consolidations: what each way brings and costs, a line a way; then each probe before and after, a line a cell."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from hippo_core.protocols.consolidation import figures as consolidation
from hippo_core.protocols.consolidation.table import COLUMNS, SPENT, TITLES, changes
from hippo_core.results.criteria.tables import TableRows
from hippo_core.results.figures import drawing
from hippo_core.results.formatting import missing, share, span
from hippo_core.results.frames import Frame
from hippo_core.results.records.table import mean_by_cluster
from hippo_core.results.report.sections import Section
from hippo_core.results.statistics.interval import ratio_interval
from hippo_core.results.statistics.paired import paired

TOLD = ("model", "suite", "n", "seed", "way", "steps", "cycles", "policy", "wordings", "restatements", "distilled", "replay")
ALWAYS = ("model", "n", "way", "steps")
POOLED = ("seed", "run_id", "record_dir", "threads", "dry_run", "cell", "record")  # in which cells of one line may differ


def found(tables: Sequence[TableRows]) -> list[Section]:
    """Two sections a table."""
    return [section for table in tables for section in (by_way(table), by_probe(table))]


def by_way(table: TableRows) -> Section:
    """What each way brings and costs, its seeds pooled, and the picture of one against the other."""
    keyed = table.keyed()
    rows: Frame = keyed.assign(question_id=keyed["unit_key"], world=keyed["cluster_key"]).drop(columns=["unit_key", "cluster_key"])
    told = [name for name in rows if name not in (*COLUMNS, *POOLED)]
    differing = [name for name in told if name in ALWAYS or rows[name].astype(str).nunique() > 1]
    ways = [way for _, way in rows.groupby([rows[name].astype(str) for name in differing], sort=True)]
    named = [{name: way[name].iloc[0] for name in differing} for way in ways]
    points = [_point(values, way) for values, way in zip(named, ways, strict=True)]
    picture = drawing.png(consolidation.uplift_against_damage(pd.DataFrame(points)))
    lines = [_costs(way) for way in ways]
    sentence = (
        "With the memory off before and after sleep, what is kept of the answers with it (B3 / B1), and what sleep changed besides; seeds "
        "pooled, 95% intervals by world. Won: questions right after that were wrong before."
    )
    table_of_ways = pd.DataFrame([values | line for values, line in zip(named, lines, strict=True)])
    return Section("What sleep brings and costs", sentence, picture, table_of_ways)


def _last(rows: Frame) -> str:
    return list(dict.fromkeys(rows["stage"]))[-1]


def _of(rows: Frame, probe: str, stage: str) -> Frame:
    return rows[(rows["probe"] == probe) & (rows["stage"] == stage)]


def _costs(rows: Frame) -> dict[str, Any]:
    """A way's line but for its name."""
    last, change = _last(rows), changes(rows)
    before, after, memory = _of(rows, "off", "pre"), _of(rows, "off", last), _of(rows, "memory", "pre")
    right = mean_by_cluster(after, "score", "world")
    pairs = paired(after, memory, key="question_id")
    kept = ratio_interval(pairs["a"], pairs["b"], pairs["cluster"])
    measured = [name for name in SPENT if name in after]  # older records have none of them
    return {
        "memory off, before": round(float(before["score"].mean()), 3),
        "after": share(right["mean"], right["low"], right["high"]) + _bounds(right),
        "won": change["off"][last]["won"],
        "memory on, before": round(float(memory["score"].mean()), 3),
        "B3 / B1": share(kept.mean, kept.low, kept.high) + _bounds({"low": kept.low, "high": kept.high}),
        TITLES["in_context"]: _changed(change["in_context"][last]),
        f"{TITLES['text']}, nats a token": _changed(change["text"][last]),
        **{f"{name} a fact": round(float(after[name].mean()), 3) for name in measured},
        "questions": len(after),
        "worlds": after["world"].nunique(),
    }


def _changed(change: dict[str, Any]) -> str:
    return share(change["difference"], change["low"], change["high"], sign=True) + _bounds(change)


def _point(values: dict[str, Any], rows: Frame) -> dict[str, Any]:
    """A way in the picture: uplift with the memory off, and the share of answers about other facts in the prompt that is lost."""
    last, change = _last(rows), changes(rows)
    won, lost = change["off"][last], change["in_context"][last]
    name = ", ".join(str(value) if name in ("model", "way") else f"{name} {value}" for name, value in values.items() if name != "model")
    ends = {"uplift_low": won["low"], "uplift_high": won["high"], "lost_low": _minus(lost["high"]), "lost_high": _minus(lost["low"])}
    return {"name": name, "way": values["way"], "uplift": won["difference"], "lost": -lost["difference"], **ends}


def _minus(value: float | None) -> float | None:
    return None if value is None else -value


def by_probe(table: TableRows) -> Section:
    """The differences of all cells, and the picture of the one that gained most."""
    rows: Frame = table.rows
    records = list(dict.fromkeys(rows["record"]))
    cells = [rows[rows["record"] == record] for record in records]
    varied = [name for name in TOLD if name in rows and (rows[name].nunique() > 1 or name in ALWAYS)]
    lines = [line for cell in cells for line in _lines(cell, varied)]
    gains = [changes(cell)["off"] for cell in cells]
    best = max((list(gain.values())[-1] for gain in gains), key=lambda change: change["difference"])
    sentence = (
        f"Memory off, after sleep less before: {best['difference']:+.2f}{_bounds(best)} at best of {len(cells)}. "
        "Every number is on the same questions before and after, with a 95% interval by world."
    )
    shown = max(cells, key=lambda cell: list(changes(cell)["off"].values())[-1]["difference"])
    picture = drawing.png(consolidation.before_and_after(shown, TITLES))
    return Section("Consolidation", sentence, picture, pd.DataFrame(lines))


def _lines(cell: Frame, varied: Sequence[str]) -> list[dict[str, Any]]:
    lines = []
    told = {name: cell[name].iloc[0] for name in varied}
    for probe, stages in changes(cell).items():
        measure = "nats" if probe == "text" else "score"
        before = _of(cell, probe, "pre")[measure].mean()
        for stage, change in stages.items():
            after = before + change["difference"]
            lines.append(
                {
                    **told,
                    "asked with": TITLES.get(probe, probe) + (", nats a token" if probe == "text" else ""),
                    "cycle": stage.removeprefix("post_"),
                    "before": round(float(before), 3),
                    "after": round(float(after), 3),
                    "difference": round(change["difference"], 3),
                    "95% interval": _span(change),
                    "questions": change["n"],
                    "worlds": change["n_worlds"],
                }
            )
    return lines


def _span(change: dict[str, Any]) -> str:
    return span(change["low"], change["high"])


def _bounds(change: dict[str, Any]) -> str:
    return "" if missing(change["low"]) else f" ({_span(change)})"
