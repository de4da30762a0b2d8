"""The contract of a meaningful run (evaluation plan 0.2 and 5.5): what must hold before a cell's numbers may say anything of a memory.

A cell that breaks a clause is INVALID: its condition says so in every table and figure, and no verdict rests on it. Controls and ablations
break clauses on purpose, and are not asked. That a store is what its memory wrote is no clause: it is opened only by the memory, the model
and the weights that its file names (store/identity.py).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from hippo_core.results.figures.palette import base, condition_name, is_control, look
from hippo_core.results.frames import Frame

MARK = "INVALID"
FLOOR = 0.2  # how far a baseline without the facts may be above chance
REFUSALS = 0.5
WORTH = 0.2  # what the answers must lose without the store
GATE_COST, GATE_ITEMS = 0.01, 100  # a share of so few items moves by more than that with one
WITHOUT_FACTS = ("baselines/core", "baselines/span_short")
OFF = "gate.enabled=false"


class Violation(NamedTuple):
    """A broken clause: the cell, by its record, the condition and setting that it stands for, and why."""

    record: str
    condition: str
    setting: str
    why: str


def violations(rows: Frame) -> list[Violation]:
    """The clauses that cells of a run break, on its test and validation worlds."""
    found = []
    for _, here in rows.groupby(["setting", "split", "seed"], sort=False):
        for record, cell in here.groupby("record", sort=False):
            first = cell.iloc[0]
            found += [Violation(str(record), first["condition"], first["setting"], why) for why in broken(cell, here)]
    return found


def broken(cell: Frame, here: Frame) -> Iterator[str]:
    """Why a cell is invalid. `here`: all rows on the same worlds, its own among them."""
    if cell["score"].isna().any():
        yield f"{cell['score'].isna().sum()} of its answers have no score"
        return
    condition, regime = cell["condition"].iloc[0], cell["regime"].iloc[0]
    if condition in WITHOUT_FACTS and regime == "delayed":
        if cell["score"].mean() > cell["chance"].mean() + FLOOR:
            yield f"without the facts {cell['score'].mean():.2f} of its answers are right, where chance is {cell['chance'].mean():.2f}"
    elif base(condition).startswith("memory/") and not is_control(condition):
        yield from (why for clause in CLAUSES if (why := clause(cell, here)))


def _store(cell: Frame, here: Frame) -> str:
    return "its store holds nothing of the worlds that are asked about" if _mean(cell, "store_written") == 0 else ""


def _requests(cell: Frame, here: Frame) -> str:
    return "its memory was never asked" if _mean(cell, "requests") == 0 else ""


def _refusals(cell: Frame, here: Frame) -> str:
    rate = _mean(cell, "refusal")
    return f"the model refuses {rate:.2f} of the questions" if rate is not None and rate > REFUSALS else ""


def _replay(cell: Frame, here: Frame) -> str:
    if cell["regime"].iloc[0] != "after_sleep":
        return ""
    if _mean(cell, "replayed") == 0:
        return "nothing was replayed before it"
    before = here[(here["condition"] == cell["condition"].iloc[0]) & (here["regime"] == "delayed")]
    return "" if before["score"].notna().any() else "there is no score of it before the replay"


def _worth(cell: Frame, here: Frame) -> str:
    """A store must matter: with what is recalled hidden, answers get worse."""
    condition, regime = cell["condition"].iloc[0], cell["regime"].iloc[0]
    hidden = {_with(condition, "control=empty"), *(("controls/empty_store",) if condition == "memory/hei_nw" else ())}
    empty = here[here["condition"].isin(hidden) & (here["regime"] == regime)]
    lost = cell["score"].mean() - empty["score"].mean()
    return f"with its store hidden it loses only {lost:.2f} of its answers" if lost < WORTH else ""


def _gate(cell: Frame, here: Frame) -> str:
    condition, regime = cell["condition"].iloc[0], cell["regime"].iloc[0]
    ungated = here[(here["preset"] == base(condition)) & here["condition"].str.contains(OFF, regex=False) & (here["regime"] == regime)]
    cost = ungated["score"].mean() - cell["score"].mean()
    return f"its gate costs {cost:.3f} of the answers" if OFF not in condition and len(cell) >= GATE_ITEMS and cost > GATE_COST else ""


CLAUSES: tuple[Callable[[Frame, Frame], str], ...] = (_store, _requests, _refusals, _replay, _worth, _gate)


def _mean(cell: Frame, column: str) -> float | None:
    """The mean of a column; None where it is not there, or of none of the rows."""
    return float(cell[column].mean()) if column in cell and cell[column].notna().any() else None


def _with(condition: str, mark: str) -> str:
    """The condition with one mark more in its brackets."""
    preset = base(condition)
    return condition_name(preset, condition[len(preset) :].strip(" ()"), mark)


def marked(rows: Frame, found: Iterable[Violation]) -> Frame:
    """The rows with the mark in the condition of each invalid cell."""
    invalid = rows["record"].isin({one.record for one in found})
    return rows.assign(condition=rows["condition"].where(~invalid, rows["condition"].map(lambda name: _with(name, MARK))))


def valid(rows: Frame) -> Frame:
    """The rows of cells that are not marked."""
    return rows[~rows["condition"].map(is_invalid)] if len(rows) else rows


def is_invalid(condition: str) -> bool:
    """Whether a condition is that of an invalid cell."""
    return MARK in condition[len(base(condition)) :].strip(" ()").split(", ")


def said(found: Iterable[Violation]) -> list[str]:
    """Each broken clause in a sentence."""
    return [f"{MARK}: {look(one.condition).label} on {one.setting}: {one.why}." for one in found]
