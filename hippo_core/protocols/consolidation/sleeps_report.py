"""What a report says of sleeps in a row: all cells side by side, then the matrix of each."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from hippo_core.protocols.consolidation.sleeps_table import damage, matrix, stream
from hippo_core.results.criteria.tables import TableRows
from hippo_core.results.figures import drawing, sleeps
from hippo_core.results.formatting import NONE, share, span
from hippo_core.results.frames import Frame
from hippo_core.results.report.sections import Section

TOLD = ("model", "suite", "n", "seed", "way", "steps", "wordings", "groups", "rehearse_earlier", "apart")
NAMED = ("model", "way", "rehearse_earlier", "apart")  # in every line, whether cells differ in it or not


def found(tables: Sequence[TableRows]) -> list[Section]:
    """A section that compares the cells of a table, and one a cell."""
    sections = []
    for table in tables:
        rows: Frame = table.rows
        cells = [rows[rows["record"] == record] for record in dict.fromkeys(rows["record"])]
        told = [name for name in TOLD if name in rows and (rows[name].nunique() > 1 or name in NAMED)]
        sections.append(_side_by_side(cells, told))
        sections += [_of_cell(cell, told) for cell in cells]
    return sections


def _side_by_side(cells: Sequence[Frame], told: Sequence[str]) -> Section:
    lines = [_line(cell, told) for cell in cells]
    sentence = (
        "Memory off. just learnt: a group right after its own sleep; at the end: all groups after the last sleep. Forgetting goes by the "
        "groups before the last one. half-life: sleeps until at most half of what was just learnt is left. The last two columns compare "
        "the end with the unchanged model on the same questions and texts, with 95% intervals by world."
    )
    return Section("Sleeps in a row", sentence, table=pd.DataFrame(lines))


def _line(cell: Frame, told: Sequence[str]) -> dict[str, Any]:
    score, f1, lost = stream(cell), stream(cell, "f1"), damage(cell)
    in_a_row = score.get("at_the_end") is not None

    def shown(values: dict[str, Any], name: str) -> str:
        return share(values.get(name))

    half = score.get("half_life")
    return {
        **{name: str(cell[name].iloc[0]) for name in told},
        "sleeps": str(int(cell["sleep"].max())),
        "before": shown(score, "before"),
        "facts in the prompt": shown(score, "oracle"),
        "just learnt": shown(score, "just_learnt"),
        "at the end": shown(score, "at_the_end"),
        "forgetting, max less last": shown(score, "forgetting_from_max"),
        "forgetting, initial less last": shown(score, "forgetting_from_initial"),
        "first group kept": shown(score, "first_group_kept"),
        "half-life": str(half) if half else "not reached" if in_a_row else NONE,
        "groups below before": str(score["below_before"]) if in_a_row else NONE,
        "F1 in the prompt": shown(f1, "oracle"),
        "F1 just learnt": shown(f1, "just_learnt"),
        "F1 at the end": shown(f1, "at_the_end"),
        "reading other facts": _difference(lost["in_context"]),
        "plain text, nats": _difference(lost["text"]),
    }


def _of_cell(cell: Frame, told: Sequence[str]) -> Section:
    table = matrix(cell)
    name = ", ".join(f"{column} {cell[column].iloc[0]}" for column in told)
    shown = table.rename(columns=lambda group: f"group {group}").rename_axis(columns=None).reset_index(names="after sleep")
    shown = shown.assign(mean=table.mean(axis=1).to_numpy())
    sentence = "Accuracy on each group after each sleep, memory off; 0: before the first. A group is learnt in the sleep of its number."
    return Section(f"Sleeps: {name}", sentence, drawing.png(sleeps.heat_map(table)), shown)


def _difference(change: dict[str, Any]) -> str:
    bounds = "" if change["low"] is None else f" ({span(change['low'], change['high'], sign=True)})"
    return share(change["difference"], change["low"], change["high"], sign=True) + bounds
