"""The report of consolidations: what each update rule gains and costs, a line each; then each probe before and after, a line a cell. Of
sleeps in a row: all cells compared, then the matrix of each. And the uplift test, by which a command's exit status says whether
consolidation helped."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import pandas as pd

from hippo_core.errors import LabError
from hippo_core.protocols.consolidation import figures
from hippo_core.protocols.consolidation.sleeps_table import damage, matrix, stream
from hippo_core.protocols.consolidation.table import COLUMNS, ROWS, SPENT, TITLES, changes, measure_of
from hippo_core.results.criteria.tables import TableRows
from hippo_core.results.figures import drawing
from hippo_core.results.formatting import NONE, missing, share, span
from hippo_core.results.frames import Frame
from hippo_core.results.records import read_table, records_with, run_folder
from hippo_core.results.records.table import mean_by_cluster
from hippo_core.results.report.sections import Section
from hippo_core.results.statistics.interval import ratio_interval
from hippo_core.results.statistics.paired import Comparison, compare, paired

PARAMETERS = ("model", "suite", "n", "seed", "way", "steps", "cycles", "policy", "wordings", "restatements", "distilled", "replay")
ALWAYS = ("model", "n", "way", "steps")  # in every line, whether cells differ in it or not
POOLED = ("seed", "run_id", "record_dir", "threads", "dry_run", "cell", "record")  # in which cells of one line may differ
SLEEPS_PARAMETERS = ("model", "suite", "n", "seed", "way", "steps", "wordings", "groups", "rehearse_earlier", "apart")
SLEEPS_ALWAYS = ("model", "way", "rehearse_earlier", "apart")
STREAM = {
    "before": "before",
    "oracle": "facts in the prompt",
    "just_learnt": "just learnt",
    "at_the_end": "at the end",
    "forgetting_from_max": "forgetting, max less last",
    "forgetting_from_initial": "forgetting, initial less last",
    "first_group_kept": "first group kept",
}
Mode = Literal["fixed", "ci"]
NAME_COLUMNS = ("model", "suite", "n", "seed", "way", "steps", "cycles", "policy", "wordings")


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
        last, change = _last(group["stage"]), changes(group)
        name = ", ".join(str(value) if name == "way" else f"{name} {value}" for name, value in named.items() if name != "model")
        points.append((name, named["way"], change["off"][last], change["in_context"][last]))
        lines.append(named | _costs(group, last, change))
    picture = drawing.png(figures.uplift_against_damage(points))
    sentence = (
        "With the memory off before and after sleep, what is kept of the answers with it (B3 / B1), and what sleep changed besides; seeds "
        "pooled, 95% intervals by world. Won: questions right after that were wrong before."
    )
    return Section("What sleep brings and costs", sentence, picture, pd.DataFrame(lines))


def _last(stages: Frame | Mapping[str, Any]) -> str:
    return list(dict.fromkeys(stages))[-1]


def _of(rows: Frame, probe: str, stage: str) -> Frame:
    return rows[(rows["probe"] == probe) & (rows["stage"] == stage)]


def _costs(rows: Frame, last: str, change: Mapping[str, Any]) -> dict[str, Any]:
    """An update rule's line but for its name."""
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
    picture = drawing.png(figures.before_and_after(cells[last.index(best)]))
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
            line = {name: cell[name].iloc[0] for name in parameters}
            line |= {
                "asked with": TITLES.get(probe, probe) + (", nats a token" if probe == "text" else ""),
                "cycle": stage.removeprefix("post_"),
            }
            line |= {"before": round(float(before), 3), "after": round(float(before + change["difference"]), 3)}
            line |= {"difference": round(change["difference"], 3), "95% interval": span(change["low"], change["high"])}
            lines.append(line | {"questions": change["n"], "worlds": change["n_worlds"]})
    return lines


def sleeps_sections(tables: Sequence[TableRows]) -> list[Section]:
    """A section that compares the cells of a table, and one a cell."""
    sentence = (
        "Memory off. just learnt: a group right after its own sleep; at the end: all groups after the last sleep. Forgetting goes by the "
        "groups before the last one. half-life: sleeps until at most half of what was just learnt is left. The last two columns compare "
        "the end with the unchanged model on the same questions and texts, with 95% intervals by world."
    )
    parts = []
    for table in tables:
        cells, parameters = _cells(table.rows), _shown_parameters(table.rows, SLEEPS_PARAMETERS, SLEEPS_ALWAYS)
        parts.append(Section("Sleeps in a row", sentence, table=pd.DataFrame([_sleeps_line(cell, parameters) for cell in cells])))
        parts += [_of_cell(cell, parameters) for cell in cells]
    return parts


def _sleeps_line(cell: Frame, parameters: Sequence[str]) -> dict[str, Any]:
    score, f1, lost = stream(cell), stream(cell, "f1"), damage(cell)
    in_a_row, half = score.get("at_the_end") is not None, score.get("half_life")
    return {
        **{name: str(cell[name].iloc[0]) for name in parameters},
        "sleeps": str(int(cell["sleep"].max())),
        **{title: share(score.get(name)) for name, title in STREAM.items()},
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


class Uplift(NamedTuple):
    """The uplift of a cell, EM with the memory off after its last sleep less before, and whether it passes."""

    cell: str
    change: Comparison
    passed: bool

    def __str__(self) -> str:
        change = self.change
        bounds = "" if math.isnan(change.low) else f" ({span(change.low, change.high)})"
        return f"{'pass' if self.passed else 'FAIL'}  {change.difference:+.3f}{bounds}, {change.n} questions  {self.cell}"


def uplifts(run_id: str, mode: Mode = "ci", min_uplift: float = 0.05, alpha: float = 0.05) -> list[Uplift]:
    """The uplift of every cell of a run that slept.

    Args:
        mode: fixed: the mean is at least `min_uplift`; ci: and the lower end of its interval is above 0.
        alpha: one less the confidence of the interval.

    Raises:
        LabError: the run has no consolidation, or a number is out of range.
    """
    if not 0 < alpha < 1:
        raise LabError(f"alpha lies between 0 and 1, got {alpha}")
    run = run_folder(run_id)
    if not run.is_dir() or not records_with(run, True, "consolidation", ROWS.step):
        raise LabError(f"run {run_id} has no consolidation; run one: make grid GRID=consolidation")
    rows: Frame = read_table(run, "consolidation", ROWS.step, dry_run=True)
    off = rows[(rows["probe"] == "off") & rows["replay"].astype(bool)]
    return [_uplift(cell, mode, min_uplift, alpha) for _, cell in off.groupby("record", sort=True)]


def _uplift(cell: Frame, mode: Mode, min_uplift: float, alpha: float) -> Uplift:
    change = compare(cell[cell["stage"] == _last(cell["stage"])], cell[cell["stage"] == "pre"], key="question_id", confidence=1 - alpha)
    passed = change.difference >= min_uplift and (mode == "fixed" or change.low > 0)
    name = " ".join(f"{column}={cell[column].iloc[0]}" for column in NAME_COLUMNS)
    return Uplift(name, change, bool(passed))
