"""What a report says of consolidations: each probe before and after, and what it cost, a line a cell."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from hippo_core.experiments.consolidation.table import TITLES, changes
from hippo_core.results.criteria.tables import TableRows
from hippo_core.results.figures import consolidation, drawing
from hippo_core.results.formatting import NONE, span
from hippo_core.results.frames import Frame
from hippo_core.results.report.sections import Section

TOLD = ("model", "suite", "n", "seed", "way", "steps", "cycles", "policy", "wordings", "replay")


def found(tables: Sequence[TableRows]) -> list[Section]:
    """A section a table."""
    return [section(table) for table in tables]


def section(table: TableRows) -> Section:
    """The differences of all cells, and the picture of the one that gained most."""
    rows: Frame = table.rows
    records = list(dict.fromkeys(rows["record"]))
    cells = [rows[rows["record"] == record] for record in records]
    varied = [name for name in TOLD if name in rows and (rows[name].nunique() > 1 or name in ("model", "n", "way", "steps"))]
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
        before = cell[(cell["probe"] == probe) & (cell["stage"] == "pre")][measure].mean()
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
    return NONE if change["low"] is None else span(change["low"], change["high"])


def _bounds(change: dict[str, Any]) -> str:
    return "" if change["low"] is None else f" ({_span(change)})"
