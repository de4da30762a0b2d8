"""The report of consolidations: what each update rule gains and costs, a line each; then each probe before and after, a line a cell. Of
sleeps in a row: all cells compared, then the matrix of each."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from hippo_core.protocols.consolidation import figures as consolidation
from hippo_core.protocols.consolidation.sleeps_table import damage, matrix, stream
from hippo_core.protocols.consolidation.table import COLUMNS, SPENT, TITLES, changes, measure_of
from hippo_core.results.criteria.tables import TableRows
from hippo_core.results.figures import drawing
from hippo_core.results.formatting import NONE, missing, share, span
from hippo_core.results.frames import Frame
from hippo_core.results.records.table import mean_by_cluster
from hippo_core.results.report.sections import Section
from hippo_core.results.statistics.interval import ratio_interval
from hippo_core.results.statistics.paired import paired

PARAMETERS = ("model", "suite", "n", "seed", "way", "steps", "cycles", "policy", "wordings", "restatements", "distilled", "replay")
ALWAYS = ("model", "n", "way", "steps")  # in every line, whether cells differ in it or not
POOLED = ("seed", "run_id", "record_dir", "threads", "dry_run", "cell", "record")  # in which cells of one line may differ
SLEEPS_PARAMETERS = ("model", "suite", "n", "seed", "way", "steps", "wordings", "groups", "rehearse_earlier", "apart")
SLEEPS_ALWAYS = ("model", "way", "rehearse_earlier", "apart")


def sections(tables: Sequence[TableRows]) -> list[Section]:
    """Two sections a table."""
    return [section for table in tables for section in (by_update_rule(table), by_probe(table))]


def by_update_rule(table: TableRows) -> Section:
    """What each update rule gains and costs, its seeds pooled, and the picture of one against the other."""
    keyed = table.keyed()
    rows: Frame = keyed.assign(question_id=keyed["unit_key"], world=keyed["cluster_key"]).drop(columns=["unit_key", "cluster_key"])
    parameters = [name for name in rows if name not in (*COLUMNS, *POOLED)]
    differing = [name for name in parameters if name in ALWAYS or rows[name].astype(str).nunique() > 1]
    points, lines = [], []
    for _, group in rows.groupby([rows[name].astype(str) for name in differing], sort=True):
        named = {name: group[name].iloc[0] for name in differing}
        points.append(_point(named, group))
        lines.append(named | _costs(group))
    picture = drawing.png(consolidation.uplift_against_damage(points))
    sentence = (
        "With the memory off before and after sleep, what is kept of the answers with it (B3 / B1), and what sleep changed besides; seeds "
        "pooled, 95% intervals by world. Won: questions right after that were wrong before."
    )
    return Section("What sleep brings and costs", sentence, picture, pd.DataFrame(lines))


def _last(stages: Frame | Mapping[str, Any]) -> str:
    return list(dict.fromkeys(stages))[-1]


def _of(rows: Frame, probe: str, stage: str) -> Frame:
    return rows[(rows["probe"] == probe) & (rows["stage"] == stage)]


def _costs(rows: Frame) -> dict[str, Any]:
    """An update rule's line but for its name."""
    last, change = _last(rows["stage"]), changes(rows)
    before, after, memory = _of(rows, "off", "pre"), _of(rows, "off", last), _of(rows, "memory", "pre")
    right = mean_by_cluster(after, "score", "world")
    pairs = paired(after, memory, key="question_id")
    kept = ratio_interval(pairs["a"], pairs["b"], pairs["cluster"])
    return {
        "memory off, before": round(float(before["score"].mean()), 3),
        "after": share(right["mean"], right["low"], right["high"]) + _bounds(right),
        "won": change["off"][last]["won"],
        "memory on, before": round(float(memory["score"].mean()), 3),
        "B3 / B1": share(kept.mean, kept.low, kept.high) + _bounds({"low": kept.low, "high": kept.high}),
        TITLES["in_context"]: _changed(change["in_context"][last]),
        f"{TITLES['text']}, nats a token": _changed(change["text"][last]),
        **{f"{name} a fact": round(float(after[name].mean()), 3) for name in SPENT if name in after},  # older records have none of them
        "questions": len(after),
        "worlds": after["world"].nunique(),
    }


def _changed(change: dict[str, Any], sign: bool = False) -> str:
    """A difference with its interval; `sign`: the ends of that have signs too."""
    return share(change["difference"], change["low"], change["high"], sign=True) + _bounds(change, sign)


def _bounds(change: dict[str, Any], sign: bool = False) -> str:
    return "" if missing(change["low"]) else f" ({span(change['low'], change['high'], sign)})"


def _point(values: dict[str, Any], rows: Frame) -> consolidation.UpdateRulePoint:
    """An update rule in the picture: uplift with the memory off, and the share of answers about other facts in the prompt that is lost."""
    last, change = _last(rows["stage"]), changes(rows)
    name = ", ".join(str(value) if name == "way" else f"{name} {value}" for name, value in values.items() if name != "model")
    return consolidation.UpdateRulePoint(name, values["way"], won=change["off"][last], read=change["in_context"][last])


def by_probe(table: TableRows) -> Section:
    """The differences of all cells, and the picture of the one that gained most."""
    rows: Frame = table.rows
    cells = _cells(rows)
    lines = [line for cell in cells for line in _lines(cell, _shown_parameters(rows, PARAMETERS, ALWAYS))]
    gains = [changes(cell)["off"] for cell in cells]
    last = [gain[_last(gain)] for gain in gains]
    best = max(last, key=lambda change: change["difference"])
    sentence = (
        f"Memory off, after sleep less before: {best['difference']:+.2f}{_bounds(best)} at best of {len(cells)}. "
        "Every number is on the same questions before and after, with a 95% interval by world."
    )
    picture = drawing.png(consolidation.before_and_after(cells[last.index(best)], TITLES))
    return Section("Consolidation", sentence, picture, pd.DataFrame(lines))


def _cells(rows: Frame) -> list[Frame]:
    return [rows[rows["record"] == record] for record in dict.fromkeys(rows["record"])]


def _shown_parameters(rows: Frame, names: Sequence[str], always: Sequence[str]) -> list[str]:
    """The parameters that lines name: those of `names` in which the rows differ, and `always` some."""
    return [name for name in names if name in rows and (rows[name].nunique() > 1 or name in always)]


def _lines(cell: Frame, parameters: Sequence[str]) -> list[dict[str, Any]]:
    lines = []
    for probe, stages in changes(cell).items():
        before = _of(cell, probe, "pre")[measure_of(probe)].mean()
        for stage, change in stages.items():
            lines.append(
                {
                    **{name: cell[name].iloc[0] for name in parameters},
                    "asked with": TITLES.get(probe, probe) + (", nats a token" if probe == "text" else ""),
                    "cycle": stage.removeprefix("post_"),
                    "before": round(float(before), 3),
                    "after": round(float(before + change["difference"]), 3),
                    "difference": round(change["difference"], 3),
                    "95% interval": span(change["low"], change["high"]),
                    "questions": change["n"],
                    "worlds": change["n_worlds"],
                }
            )
    return lines


def sleeps_sections(tables: Sequence[TableRows]) -> list[Section]:
    """A section that compares the cells of a table, and one a cell."""
    parts = []
    for table in tables:
        cells, parameters = _cells(table.rows), _shown_parameters(table.rows, SLEEPS_PARAMETERS, SLEEPS_ALWAYS)
        parts.append(_comparison(cells, parameters))
        parts += [_of_cell(cell, parameters) for cell in cells]
    return parts


def _comparison(cells: Sequence[Frame], parameters: Sequence[str]) -> Section:
    sentence = (
        "Memory off. just learnt: a group right after its own sleep; at the end: all groups after the last sleep. Forgetting goes by the "
        "groups before the last one. half-life: sleeps until at most half of what was just learnt is left. The last two columns compare "
        "the end with the unchanged model on the same questions and texts, with 95% intervals by world."
    )
    return Section("Sleeps in a row", sentence, table=pd.DataFrame([_sleeps_line(cell, parameters) for cell in cells]))


def _sleeps_line(cell: Frame, parameters: Sequence[str]) -> dict[str, Any]:
    score, f1, lost = stream(cell), stream(cell, "f1"), damage(cell)
    in_a_row, half = score.get("at_the_end") is not None, score.get("half_life")
    return {
        **{name: str(cell[name].iloc[0]) for name in parameters},
        "sleeps": str(int(cell["sleep"].max())),
        "before": share(score["before"]),
        "facts in the prompt": share(score["oracle"]),
        "just learnt": share(score["just_learnt"]),
        "at the end": share(score.get("at_the_end")),
        "forgetting, max less last": share(score.get("forgetting_from_max")),
        "forgetting, initial less last": share(score.get("forgetting_from_initial")),
        "first group kept": share(score.get("first_group_kept")),
        "half-life": str(half) if half else "not reached" if in_a_row else NONE,
        "groups below before": str(score["below_before"]) if in_a_row else NONE,
        "F1 in the prompt": share(f1["oracle"]),
        "F1 just learnt": share(f1["just_learnt"]),
        "F1 at the end": share(f1.get("at_the_end")),
        "reading other facts": _changed(lost["in_context"], sign=True),
        "plain text, nats": _changed(lost["text"], sign=True),
    }


def _of_cell(cell: Frame, parameters: Sequence[str]) -> Section:
    table = matrix(cell)
    name = ", ".join(f"{column} {cell[column].iloc[0]}" for column in parameters)
    shown = table.rename(columns=lambda group: f"group {group}").rename_axis(columns=None).reset_index(names="after sleep")
    shown = shown.assign(mean=table.mean(axis=1).to_numpy())
    sentence = "Accuracy on each group after each sleep, memory off; 0: before the first. A group is learnt in the sleep of its number."
    return Section(f"Sleeps: {name}", sentence, drawing.png(drawing.heat_map(table)), shown)
