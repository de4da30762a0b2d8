"""What a report says of tasks in sequence: the findings, all cells compared, what learning took, then the matrix of each."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from hippo_core.protocols.forgetting.figures import figure, kept_figure
from hippo_core.protocols.forgetting.table import LEVELS, learnt, matched, matrix, spent, summaries
from hippo_core.results.criteria.tables import TableRows
from hippo_core.results.figures import drawing
from hippo_core.results.formatting import NONE, missing, share, span
from hippo_core.results.frames import Frame
from hippo_core.results.records.table import mean_by_cluster
from hippo_core.results.report.sections import Section

PARAMETERS = (
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
REFERENCES = ("none", "joint", "scratch")  # methods between which the others lie
READ_BY = {  # what not all methods go by
    "stored": ("replay", "forever"),
    "rehearsed": ("replay", "forever", "generative"),
    "policy": ("replay", "forever"),
    "strength": ("ewc", "l2", "lwf", "generative"),
    "rank": ("lora",),
}
KEPT, RIGHT = "kept", "average_accuracy"


def sections(tables: Sequence[TableRows]) -> list[Section]:
    """What was found in the cells of a table, all of them compared in the end and at equal training loss; what learning took; and a section
    a cell. Cells are called by what tells them apart."""
    parts = []
    for table in tables:
        rows: Frame = table.rows
        cells = [rows[rows["record"] == record] for record in dict.fromkeys(rows["record"])]
        differing = {name for name in rows if rows[name].astype(str).nunique(dropna=False) > 1}
        parameters = [name for name in PARAMETERS if name in rows and (name == "method" or name in differing)]
        named = names([{name: _formatted(cell[name].iloc[0]) for name in parameters} for cell in cells])
        parts += [in_words(cells, named), _comparison(cells, named), *_matched(cells, named), _spent(cells, named)]
        parts += map(_of_cell, cells, named)
    return parts


def _formatted(value: Any) -> str:
    """A value as a person writes it; a column with gaps has made floats of whole numbers."""
    if missing(value):
        return NONE
    return f"{value:g}" if isinstance(value, float) else str(value)


def _comparison(cells: Sequence[Frame], named: Sequence[str]) -> Section:
    by_cell, plain = [summaries(cell) for cell in cells], first_plain(cells)
    ranking = ranks(by_cell)
    lines = []
    for number in map(int, ranking.median(axis="columns").sort_values(kind="stable").index):
        own, mine = by_cell[number], ranking.loc[number]
        line = {"method": named[number], "rank": f"{mine.median():g} ({mine.min():g} to {mine.max():g})"}
        line |= {title: shown(own, name) for name, title in SHOWN.items()}
        if plain is not None:
            for name in (RIGHT, KEPT):
                apart = NONE if number == plain else shown(own - by_cell[plain], name, sign=True)
                line[f"{SHOWN[name]}, less that of none"] = apart
        earlier = learnt(cells[number]).iloc[:, :-1].to_numpy(bool)
        lines.append(line | {"kept rests on": f"{earlier.sum()} of {earlier.size}", "initialisations": str(len(own))})
    sentence = (
        "Best first. rank: by average accuracy among the cells with the same initialisation, median (least to most). Means over "
        "initialisations (95% interval) from ten of them on, else [least to most]; differences from the plain model are paired by "
        "initialisation. kept: of the accuracy on "
        "earlier tasks just after their own phases the share that is left after the last. It and both forgettings count the tasks that "
        "were learnt to 99% in their own phase, which kept rests on (tasks before the last, initialisation by initialisation); the average "
        "accuracy counts all. An answer is right as a whole or not at all."
    )
    return Section("Tasks in sequence", sentence, table=pd.DataFrame(lines))


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
            line |= {title: shown(own.groupby("init")[[name]].mean(), name) for name, title in AT_EQUAL_LOSS.items()}
            if plain is not None:
                both = own.merge(by_cell[plain], on=["init", "task", "level"], suffixes=("", "_plain"))
                for name, title in AT_EQUAL_LOSS.items():
                    apart = both.assign(**{name: both[name] - both[f"{name}_plain"]}).groupby("init")[[name]].mean()
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


def ranks(by_cell: Sequence[Frame]) -> Frame:
    """The rank of each cell (index) among those with the same initialisation (columns), by average accuracy; 1 is best, ties share."""
    accuracies = pd.DataFrame({number: own["average_accuracy"] for number, own in enumerate(by_cell)}).T
    return accuracies.rank(ascending=False)


def _spent(cells: Sequence[Frame], named: Sequence[str]) -> Section:
    lines = []
    for cell, name in zip(cells, named, strict=True):
        for line in spent(cell):
            mine = cell[cell["task"] == line["task"]]
            own, end = mine[mine["phase"] == mine["own"]], mine[mine["phase"] == cell["phase"].max()]
            row = {"method": name, "task": line["task"], "learnt by": f"{line['learnt']} of {line['of']}"}
            for measure in ("steps", "seconds"):
                took = line[f"{measure}_to_99"]
                row[f"{measure} to 99%"] = f"{took[0]:.0f} ({took[1]:.0f} to {took[2]:.0f})" if took else NONE
            row |= {"accuracy after its phase": f"{own['accuracy'].mean():.2f}", "at the end": f"{end['accuracy'].mean():.2f}"}
            lines.append(row)
    sentence = (
        "Until 99% of a task's validation answers were right, in its own phase: median (least to most) of the initialisations that got "
        "there; seconds are of all initialisations together, which learn in step. A task that some did not learn is not counted as "
        "forgotten by them."
    )
    return Section("What learning took", sentence, table=pd.DataFrame(lines))


def _of_cell(cell: Frame, name: str) -> Section:
    accuracy, loss = matrix(cell), matrix(cell, "loss")
    lines = accuracy.rename_axis(columns=None).reset_index(names="after phase")
    lines = lines.assign(**{f"{task}, nats": loss[task].to_numpy() for task in loss})
    sentence = (
        "Accuracy, then nats a token, on each task after each phase; 0: before the first. Tasks are learnt in the order of their columns."
    )
    return Section(name, sentence, figure(None, cell), lines.round(3), group="After each phase")


def names(cells: Sequence[Mapping[str, str]]) -> list[str]:
    """A label for each cell: its method, and the values in which it differs from most of the cells whose method reads them."""
    labels = [[values["method"]] for values in cells]
    for name in cells[0]:
        counts = Counter(values[name] for values in cells if _goes_by(values["method"], name)).most_common(2)
        usual = counts[0][0] if counts and (len(counts) == 1 or counts[0][1] > counts[1][1]) else None
        for own, values in zip(labels, cells, strict=True):
            if name != "method" and values[name] != usual and _goes_by(values["method"], name):
                own.append(f"{name} {values[name]}")
    return list(map(", ".join, labels))


def _goes_by(method: str, name: str) -> bool:
    """Whether a method goes by a parameter."""
    return method in READ_BY.get(name, (method,))


def first_plain(cells: Sequence[Frame]) -> int | None:
    """The index of the first cell of a plain model, if possible of one without control and with the usual architecture; None where there
    is none."""
    plain = [index for index, cell in enumerate(cells) if cell["method"].iloc[0] == "none"]
    return min(plain, key=lambda index: _controlled(cells[index]) + _varied(cells[index]), default=None)


def in_words(cells: Sequence[Frame], named: Sequence[str]) -> Section:
    """What was learnt in some cells and what is left of it, in sentences and as a picture."""
    by_cell = [summaries(cell) for cell in cells]
    means: Frame = pd.DataFrame([own.mean() for own in by_cell])
    order = list(map(int, means[KEPT].dropna().sort_values(ascending=False, kind="stable").index))
    kept = "; ".join(f"{named[index]}: {shown(by_cell[index], KEPT)}" for index in order)
    sentence = (
        "Kept: of what was learnt to 99% before the last phase, the share that is still answered after it. What was not learnt cannot be "
        "lost, so these are not the same tasks in every line."
    )
    brackets = "In brackets: (95% interval) over initialisations from ten of them on, else [least to most], too few to show a difference."
    findings = [_learnt(cells), *_compared(cells, by_cell, named, means[RIGHT]), f"Kept, most first: {kept or NONE}.", brackets]
    lines = [(named[index], means[KEPT][index], *_ends(by_cell[index], KEPT), _reference(cells[index])) for index in order]
    left = pd.DataFrame(lines, columns=["name", "mean", "low", "high", "reference"])
    return Section("What is left", sentence, drawing.png(kept_figure(left)) if order else None, findings=findings)


def _compared(cells: Sequence[Frame], by_cell: Sequence[Frame], named: Sequence[str], right: Frame) -> list[str]:
    """The plain model, the upper bound, the best of the others, and those that are not shown to answer more than the plain one."""

    def both(index: int) -> str:
        own = by_cell[index]
        return f"keeps {shown(own, KEPT)} of what it learnt, and is right in {shown(own, RIGHT)} of answers to all tasks in the end"

    none = first_plain(cells)
    joint = next((index for index, cell in enumerate(cells) if cell["method"].iloc[0] == "joint" and not _controlled(cell)), None)
    others = [index for index, cell in enumerate(cells) if not _reference(cell)]
    sentences = []
    if none is not None:
        sentences.append(f"A plain model ({named[none]}) {both(none)}.")
    if joint is not None:
        sentences.append(f"A model that learns all tasks so far at once ({named[joint]}), the upper bound, {both(joint)}.")
    if others:
        best = max(others, key=lambda index: right[index])
        sentences.append(f"Of {len(others)} other ways the one with most answers right in the end is {named[best]}: it {both(best)}.")
    if others and none is not None:
        apart = {named[index]: by_cell[index] - by_cell[none] for index in others}
        listed = ", ".join(name for name, own in apart.items() if not _ends(own, RIGHT)[0] > 0) or "none of these"
        few = any(_mean(own, RIGHT)["low"] is None for own in apart.values())
        not_shown = "Not shown to be right more often than the plain model (the 95% interval of the paired difference reaches 0)"
        sentences.append(f"{'Not right more often than the plain model in every initialisation' if few else not_shown}: {listed}.")
    return sentences


def _learnt(cells: Sequence[Frame]) -> str:
    tasks: Frame = pd.DataFrame([line for cell in cells for line in spent(cell)])
    lines = tasks.groupby("task", sort=False)[["learnt", "of"]].sum()
    counts = ", ".join(f"{line.Index} by {line.learnt} of {line.of}" for line in lines.itertuples())
    return f"Learnt to 99% in its own phase, models of all {len(cells)} ways together: {counts}."


def _controlled(cell: Frame) -> bool:
    return "control" in cell and cell["control"].iloc[0] != "none"


def _varied(cell: Frame) -> bool:
    """Whether the model has bands or a sort layer."""
    values = [cell[name].iloc[0] for name in ("fc1", "fc2", "sort") if name in cell]
    return any(value == value and bool(value) for value in values)


def _reference(cell: Frame) -> bool:
    return (cell["method"].iloc[0] in REFERENCES and not _varied(cell)) or _controlled(cell)


def _mean(own: Frame, name: str) -> dict[str, Any]:
    """The mean over initialisations, the index, with its 95% interval where they are enough for one."""
    return mean_by_cluster(own.rename_axis("init").reset_index(), name, "init")


def _ends(own: Frame, name: str) -> tuple[float, float]:
    """The 95% interval over initialisations, or the least and the most where they are too few for one."""
    value = _mean(own, name)
    return (own[name].min(), own[name].max()) if value["low"] is None else (value["low"], value["high"])


def shown(own: Frame, name: str, sign: bool = False) -> str:
    """A mean over initialisations with its 95% interval in round brackets, or with the least and the most in square ones."""
    value, (low, high) = _mean(own, name), _ends(own, name)
    if value["low"] is not None:
        return f"{share(value['mean'], low, high, sign=sign)} ({span(low, high, sign=sign)})"
    return f"{share(value['mean'], sign=sign)} [{share(low, sign=sign)} to {share(high, sign=sign)}]" if value["n"] else NONE
