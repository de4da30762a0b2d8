"""What was found of tasks in sequence, in plain words and as a picture: what was learnt, and what each way of learning keeps in the end."""

from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd

from hippo_core.protocols.forgetting import figures as forgetting
from hippo_core.protocols.forgetting.table import spent, summaries
from hippo_core.results.figures import drawing
from hippo_core.results.formatting import NONE, percent, share, span
from hippo_core.results.frames import Frame
from hippo_core.results.records.table import mean_by_cluster
from hippo_core.results.report.sections import Section

REFERENCES = ("none", "joint", "scratch")  # methods between which the others lie
READ_BY = {  # what not all methods go by
    "stored": ("replay", "forever"),
    "rehearsed": ("replay", "forever", "generative"),
    "policy": ("replay", "forever"),
    "strength": ("ewc", "l2", "lwf", "generative"),
    "rank": ("lora",),
}
KEPT, RIGHT = "kept", "average_accuracy"


def names(told: Sequence[Mapping[str, str]]) -> list[str]:
    """What each cell is called by its values: its method, and what else it was told that most of the cells whose method goes by it were
    not."""
    usual = {name: _commonest([values[name] for values in told if _goes_by(values["method"], name)]) for name in told[0]}
    own = [
        [
            f"{name} {value}"
            for name, value in values.items()
            if name != "method" and value != usual[name] and _goes_by(values["method"], name)
        ]
        for values in told
    ]
    return [", ".join([values["method"], *others]) for values, others in zip(told, own, strict=True)]


def _goes_by(method: str, name: str) -> bool:
    """Whether a method goes by a parameter."""
    return method in READ_BY.get(name, (method,))


def _commonest(values: Sequence[str]) -> str | None:
    """The value that is there more often than any other; None where there is none."""
    counts = Counter(values).most_common(2)
    return counts[0][0] if counts and (len(counts) == 1 or counts[0][1] > counts[1][1]) else None


def first_plain(cells: Sequence[Frame]) -> int | None:
    """The place of the first cell of a plain model, if possible of one without control and with the usual architecture; None where there
    is none."""
    plain = [place for place, cell in enumerate(cells) if cell["method"].iloc[0] == "none"]
    return min(plain, key=lambda place: _controlled(cells[place]) + _varied(cells[place]), default=None)


def in_words(cells: Sequence[Frame], named: Sequence[str]) -> Section:
    """What was learnt in some cells and what is left of it, in sentences and as a picture."""
    by_cell = [summaries(cell) for cell in cells]
    means: Frame = pd.DataFrame([own.mean() for own in by_cell])
    order = list(map(int, means[KEPT].dropna().sort_values(ascending=False, kind="stable").index))
    kept = "; ".join(f"{named[place]}: {shown(_by_init(by_cell[place]), KEPT)}" for place in order)
    sentence = (
        "Kept: of what was learnt to 99% before the last phase, the share that is still answered after it. What was not learnt cannot be "
        "lost, so these are not the same tasks in every line."
    )
    brackets = "In brackets: (95% interval) over initialisations from ten of them on, else [least to most], too few to show a difference."
    findings = [_learnt(cells), *_compared(cells, by_cell, named, means[RIGHT]), f"Kept, most first: {kept or NONE}.", brackets]
    lines = [(named[place], means[KEPT][place], *_ends(_by_init(by_cell[place]), KEPT), _reference(cells[place])) for place in order]
    return Section("What is left", sentence, _picture(lines), findings=findings)


def _compared(cells: Sequence[Frame], by_cell: Sequence[Frame], named: Sequence[str], right: Frame) -> list[str]:
    """The plain model, the upper bound, the best of the others, and those that are not shown to answer more than the plain one."""
    none = first_plain(cells)
    joint = next((place for place, cell in enumerate(cells) if cell["method"].iloc[0] == "joint" and not _controlled(cell)), None)
    others = [place for place, cell in enumerate(cells) if not _reference(cell)]
    found = []
    if none is not None:
        found.append(f"A plain model ({named[none]}) {_both(by_cell[none])}.")
    if joint is not None:
        found.append(f"A model that learns all tasks so far at once ({named[joint]}), the upper bound, {_both(by_cell[joint])}.")
    if others:
        best = max(others, key=lambda place: right[place])
        found.append(f"Of {len(others)} other ways the one with most answers right in the end is {named[best]}: it {_both(by_cell[best])}.")
    if others and none is not None:
        found.append(_without_gain({named[place]: _by_init(by_cell[place] - by_cell[none]) for place in others}))
    return found


def _without_gain(apart: Mapping[str, Frame]) -> str:
    """Which ways do not gain on the plain model, by their paired differences from it."""
    listed = ", ".join(name for name, own in apart.items() if not _ends(own, RIGHT)[0] > 0) or "none of these"
    if any(mean_by_cluster(own, RIGHT, "init")["low"] is None for own in apart.values()):
        return f"Not right more often than the plain model in every initialisation: {listed}."
    return f"Not shown to be right more often than the plain model (the 95% interval of the paired difference reaches 0): {listed}."


def _learnt(cells: Sequence[Frame]) -> str:
    tasks: Frame = pd.DataFrame([line for cell in cells for line in spent(cell)])
    lines = tasks.groupby("task", sort=False)[["learnt", "of"]].sum()
    counts = ", ".join(f"{line.Index} by {line.learnt} of {line.of}" for line in lines.itertuples())
    return f"Learnt to 99% in its own phase, models of all {len(cells)} ways together: {counts}."


def _both(own: Frame) -> str:
    by_init = _by_init(own)
    return f"keeps {shown(by_init, KEPT)} of what it learnt, and is right in {shown(by_init, RIGHT)} of answers to all tasks in the end"


def _controlled(cell: Frame) -> bool:
    return "control" in cell and cell["control"].iloc[0] != "none"


def _varied(cell: Frame) -> bool:
    """Whether the model has bands or a sort layer."""
    values = [cell[name].iloc[0] for name in ("fc1", "fc2", "sort") if name in cell]
    return any(value == value and bool(value) for value in values)


def _reference(cell: Frame) -> bool:
    return (cell["method"].iloc[0] in REFERENCES and not _varied(cell)) or _controlled(cell)


def _by_init(own: Frame) -> Frame:
    return own.rename_axis("init").reset_index()


def _ends(by_init: Frame, name: str) -> tuple[float, float]:
    """The 95% interval over initialisations, or the least and the most where they are too few for one."""
    value = mean_by_cluster(by_init, name, "init")
    return (by_init[name].min(), by_init[name].max()) if value["low"] is None else (value["low"], value["high"])


def shown(by_init: Frame, name: str, sign: bool = False) -> str:
    """A mean over initialisations with its 95% interval in round brackets, or with the least and the most in square ones."""
    value = mean_by_cluster(by_init, name, "init")
    if value["low"] is not None:
        return f"{share(value['mean'], value['low'], value['high'], sign=sign)} ({span(value['low'], value['high'], sign=sign)})"
    if not value["n"]:
        return NONE
    least, most = (share(end, sign=sign) for end in (by_init[name].min(), by_init[name].max()))
    return f"{share(value['mean'], sign=sign)} [{least} to {most}]"


def _picture(lines: Sequence[tuple[str, float, float, float, bool]]) -> bytes | None:
    """What is kept, a line a cell, most first; None where nothing was learnt that could be lost."""
    if not lines:
        return None
    table = pd.DataFrame(lines, columns=["name", "mean", "low", "high", "reference"])
    most, least = lines[0], lines[-1]
    title = f"{most[0]} keeps {percent(most[1])} of what it learnt" + (f", {least[0]} {percent(least[1])}" if len(lines) > 1 else "")
    return drawing.png(forgetting.kept(table, title))
