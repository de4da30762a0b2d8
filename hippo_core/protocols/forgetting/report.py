"""What a report says of tasks in sequence: what was found, all cells side by side, what learning took, then the matrix of each."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from hippo_core.protocols.forgetting.sections import first_plain, in_words, names, shown
from hippo_core.protocols.forgetting.table import LEVELS, matched, matrix, spent, summaries
from hippo_core.results.criteria.tables import TableRows
from hippo_core.results.figures import drawing, sleeps
from hippo_core.results.formatting import NONE
from hippo_core.results.frames import Frame
from hippo_core.results.report.sections import Section

TOLD = (
    *("model", "fc1", "fc2", "sort", "method", "policy", "stored", "rehearsed", "strength", "control", "subset", "tasks"),
    *("optimizer", "early_stop", "steps", "batch", "rate", "decay", "bf16", "compiled", "seed", "split"),
)
SHOWN = {
    "average_accuracy": "average accuracy",
    "kept": "kept",
    "forgetting_from_max": "forgetting, max less last",
    "forgetting_from_initial": "forgetting, initial less last",
    "forward_transfer": "forward transfer",
}
AT_EQUAL_LOSS = {"loss": "validation loss", "accuracy": "accuracy", "earlier": "accuracy on earlier tasks"}
COMPARED = ("average_accuracy", "kept")  # with a plain model


def found(tables: Sequence[TableRows]) -> list[Section]:
    """A section of what was found in the cells of a table, one that compares them, one that does so with a plain model, one that does so at
    equal training loss, one of what learning took, and one a cell. Cells are called by what tells them apart."""
    sections = []
    for table in tables:
        rows: Frame = table.rows
        cells = [rows[rows["record"] == record] for record in dict.fromkeys(rows["record"])]
        told = [name for name in TOLD if name in rows and (rows[name].astype(str).nunique(dropna=False) > 1 or name == "method")]
        named = names([_named(cell, told) for cell in cells])
        sections += [in_words(cells, named), *_side_by_side(cells, named), *_matched(cells, named), _spent(cells, named)]
        sections += map(_of_cell, cells, named)
    return sections


def picture(rows: Frame) -> bytes:
    """The matrix of accuracy, mean of the initialisations, as a heat map (PNG)."""
    values = matrix(rows).to_numpy()
    own, end = values[1:].diagonal().mean(), values[-1].mean()
    title = f"Just after its own phase a task is answered to {own:.0%}, after the last phase to {end:.0%}; darker is better"
    named = matrix(rows).set_axis(["before", *matrix(rows).columns], axis="index")
    return drawing.png(sleeps.drawn(named, title, "asked about task", "after phase", left=1.1))


def _named(cell: Frame, told: Sequence[str]) -> dict[str, str]:
    values = {name: cell[name].iloc[0] for name in told}
    return {name: NONE if value is None or value != value else _said(value) for name, value in values.items()}


def _said(value: Any) -> str:
    """A value as a person tells it; a column with gaps has made floats of whole numbers."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _side_by_side(cells: Sequence[Frame], named: Sequence[str]) -> list[Section]:
    by_cell = [summaries(cell) for cell in cells]
    plain = first_plain(cells)
    places = ranks(by_cell)
    order = [int(number) for number in places.median(axis="columns").sort_values(kind="stable").index]
    lines = []
    for number in order:
        own, mine = by_cell[number], places.loc[number]
        line = {"method": named[number], "rank": f"{mine.median():g} ({mine.min():g} to {mine.max():g})"}
        line |= {title: shown(own.rename_axis("init").reset_index(), name) for name, title in SHOWN.items()}
        lines.append(line | {"initialisations": str(len(own))})
    sentence = (
        "Best first. rank: by average accuracy among the cells with the same initialisation, median (least to most). Means over "
        "initialisations (95% interval) from ten of them on, else [least to most]. kept: of the accuracy on "
        "earlier tasks just after their own phases the share that is left after the last. It and both forgettings count the tasks that "
        "were learnt to 99% in their own phase; the average accuracy counts all. An answer is right as a whole or not at all."
    )
    section = Section("Tasks in sequence", sentence, table=pd.DataFrame(lines))
    others = [number for number in order if number != plain]
    return [section] if plain is None or not others else [section, _against_plain(by_cell, named, plain, others)]


def _against_plain(by_cell: Sequence[Frame], named: Sequence[str], plain: int, others: Sequence[int]) -> Section:
    lines = []
    for number in others:
        apart = (by_cell[number] - by_cell[plain]).rename_axis("init").reset_index()
        lines.append({"method": named[number], **{SHOWN[name]: shown(apart, name, sign=True) for name in COMPARED}})
    sentence = f"Each less {named[plain]}, initialisation by initialisation."
    return Section("Against a plain model", sentence, table=pd.DataFrame(lines))


def _matched(cells: Sequence[Frame], named: Sequence[str]) -> list[Section]:
    by_cell, plain, lines = [matched(cell) for cell in cells], first_plain(cells), []
    for level in LEVELS:
        for number, cell in enumerate(cells):
            own = by_cell[number]
            own = own[(own["level"] == level) & own["loss"].notna()]
            if own.empty:
                continue
            line = {"training loss": f"{level:g}", "method": named[number]}
            line["reached by"] = f"{len(own)} of {cell['init'].nunique() * cell['task'].nunique()}"
            line |= {title: shown(_by_init(own, name), name) for name, title in AT_EQUAL_LOSS.items()}
            if plain is not None:
                both = own.merge(by_cell[plain], on=["init", "task", "level"], suffixes=("", "_plain"))
                for name, title in AT_EQUAL_LOSS.items():
                    apart = _by_init(both.assign(**{name: both[name] - both[f"{name}_plain"]}), name)
                    line[f"{title}, less that of none"] = NONE if number == plain else shown(apart, name, sign=True)
            lines.append(line)
    if not lines:
        return []
    sentence = (
        "What was answered when the loss of 64 training items of the phase's own task had fallen to a level, in nats a token; "
        "interpolated between two looks, which are ten steps apart. Validation items. reached by: tasks and initialisations whose training "
        "came so far. Means over initialisations of the mean over these tasks (95% interval) from ten of them on, else [least to most]; "
        "differences are paired by task and initialisation. earlier tasks: those that had been learnt to 99%, 64 items of each."
    )
    return [Section("At equal training loss", sentence, table=pd.DataFrame(lines))]


def _by_init(values: Frame, name: str) -> Frame:
    """The mean over tasks of each initialisation, where there is one."""
    return values.groupby("init")[name].mean().reset_index()


def ranks(by_cell: Sequence[Frame]) -> Frame:
    """The rank of each cell (index) among those with the same initialisation (columns), by average accuracy; 1 is best, ties share."""
    found = pd.DataFrame({number: own["average_accuracy"] for number, own in enumerate(by_cell)}).T
    return found.rank(ascending=False)


def _spent(cells: Sequence[Frame], named: Sequence[str]) -> Section:
    lines = []
    for cell, name in zip(cells, named, strict=True):
        for line in spent(cell):
            words = {measure: _ranged(line[measure]) for measure in ("steps_to_99", "seconds_to_99")}
            end = cell[cell["phase"] == cell["phase"].max()]
            at_end = float(end[end["task"] == line["task"]]["accuracy"].mean())
            own = cell[(cell["phase"] == cell["own"]) & (cell["task"] == line["task"])]["accuracy"].mean()
            learnt = f"{line['learnt']} of {line['of']}"
            lines.append({"method": name, "task": line["task"], "learnt by": learnt, "steps to 99%": words["steps_to_99"]})
            lines[-1] |= {"seconds to 99%": words["seconds_to_99"], "accuracy after its phase": f"{own:.2f}", "at the end": f"{at_end:.2f}"}
    sentence = (
        "Until 99% of a task's validation answers were right, in its own phase: median (least to most) of the initialisations that got "
        "there; seconds are of all initialisations together, which learn in step. A task that some did not learn is not counted as "
        "forgotten by them."
    )
    return Section("What learning took", sentence, table=pd.DataFrame(lines))


def _ranged(values: Sequence[float] | None) -> str:
    return NONE if values is None else f"{values[0]:.0f} ({values[1]:.0f} to {values[2]:.0f})"


def _of_cell(cell: Frame, name: str) -> Section:
    accuracy, loss = matrix(cell), matrix(cell, "loss")
    lines = accuracy.rename_axis(columns=None).reset_index(names="after phase")
    lines = lines.assign(**{f"{task}, nats": loss[task].to_numpy() for task in loss})
    sentence = (
        "Accuracy, then nats a token, on each task after each phase; 0: before the first. Tasks are learnt in the order of their columns."
    )
    return Section(name, sentence, picture(cell), lines.round(3), group="After each phase")
