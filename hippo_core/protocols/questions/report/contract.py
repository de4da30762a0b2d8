"""The contract of a meaningful run (evaluation plan 0.2 and 5.5): what must hold before a cell's numbers may say anything of a memory.

A cell that breaks a clause is INVALID: its condition says so in every table and figure, and no verdict rests on it. Controls and ablations
break clauses on purpose, and are not asked. That a store is what its memory wrote is no clause: it is opened only by the memory, the model
and the weights that its file names (store/identity.py).
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from hippo_core.results.conditions import INVALID, base, before_sleep, condition_name, is_control, is_invalid, is_switched_off
from hippo_core.results.figures.palette import style_of
from hippo_core.results.frames import Frame

FLOOR = 0.2  # how far a baseline without the facts may be above chance
REFUSALS = 0.5
WORTH = 0.2  # what the answers must lose without the store
GATE_COST, GATE_ITEMS = 0.01, 100  # a share of so few items moves by more than that with one
WITHOUT_FACTS = ("baselines/core", "baselines/span_short")
GATES = {"memory/sgc_rss": "relational", "memory/smpd": "spatial"}
MEASURED = ("score", "chance", "refusal", "store_written", "requests", "replayed")
Cell = Mapping[str, Any]  # a line of the table of cells
Cells = Mapping[tuple[str, str], Cell]


class Violation(NamedTuple):
    """A broken clause: the cell, by its record, the condition and setting that it stands for, and why."""

    record: str
    condition: str
    setting: str
    why: str


def violations(rows: Frame) -> list[Violation]:
    """The clauses that cells of a run break, on its test and validation worlds."""
    by_worlds: dict[tuple[object, ...], dict[tuple[str, str], Cell]] = {}
    broken = []
    cells: list[Cell] = _by_cell(rows).to_dict("records")
    for cell in cells:  # of those of several sizes the largest, which comes last
        by_worlds.setdefault((cell["setting"], cell["split"], cell["seed"]), {})[cell["condition"], cell["regime"]] = cell
    for cell in cells:
        here = by_worlds[cell["setting"], cell["split"], cell["seed"]]
        broken += [Violation(cell["record"], cell["condition"], cell["setting"], why) for why in _broken(cell, here)]
    return broken


def _by_cell(rows: Frame) -> Frame:
    """One line a record: the means of what is measured, NaN where it is not, its answers `n`, those with a number `scored`."""
    rows = rows.assign(score=rows["score"].replace([math.inf, -math.inf], math.nan))
    measured = [name for name in MEASURED if name in rows]
    names = ["setting", "split", "seed", "condition", "preset", "regime"]
    cells = rows.groupby("record", sort=False)
    table = cells[names].first().join(cells[measured].mean()).join(cells["score"].agg(n="size", scored="count"))
    return table.reindex(columns=[*names, *MEASURED, "n", "scored"]).sort_values("n", kind="stable").reset_index()


def _broken(cell: Cell, here: Cells) -> Iterator[str]:
    """Why a cell is invalid. `here`: all cells on the same worlds, its own among them, by condition and regime."""
    condition = cell["condition"]
    if cell["scored"] < cell["n"]:
        yield f"{cell['n'] - cell['scored']} of its answers have no score"
    elif condition in WITHOUT_FACTS and cell["regime"] == "delayed":
        if cell["score"] > cell["chance"] + FLOOR:
            yield f"without the facts {cell['score']:.2f} of its answers are right, where chance is {cell['chance']:.2f}"
    elif base(condition).startswith("memory/") and not is_control(condition) and not is_switched_off(condition):
        yield from _of_memory(cell, here)


def _of_memory(cell: Cell, here: Cells) -> Iterator[str]:
    condition, regime = cell["condition"], cell["regime"]
    if cell["store_written"] == 0:
        yield "its store holds nothing of the worlds that are asked about"
    if cell["requests"] == 0:
        yield "its memory was never asked"
    if cell["refusal"] > REFUSALS:
        yield f"the model refuses {cell['refusal']:.2f} of the questions"
    if regime == "after_sleep" and cell["replayed"] == 0:
        yield "nothing was replayed before it"
    elif regime == "after_sleep" and not {(condition, "delayed"), (before_sleep(condition), "delayed")} & here.keys():
        yield "there is no score of it before the replay"
    hidden = next((here[name, regime] for name in _hidden(condition) if (name, regime) in here), None)
    if hidden and (lost := cell["score"] - hidden["score"]) < WORTH:
        yield f"with its store hidden it loses only {lost:.2f} of its answers"
    ungated = here.get((_ungated(condition), regime))
    if ungated and cell["n"] >= GATE_ITEMS and (cost := ungated["score"] - cell["score"]) > GATE_COST:
        yield f"its gate costs {cost:.3f} of the answers"


def beside(condition: str) -> set[str]:
    """The conditions whose cells a condition's clauses look at, itself among them."""
    return {condition, before_sleep(condition), *_hidden(condition), _ungated(condition)} - {""}


def _hidden(condition: str) -> list[str]:
    return [_with(condition, "control=empty"), *(["controls/empty_store"] if condition == "memory/hei_nw" else [])]


def _ungated(condition: str) -> str:
    return f"{condition} ({GATES[condition]}.gate.enabled=false)" if condition in GATES else ""


def _with(condition: str, mark: str) -> str:
    """The condition with one mark more in its brackets."""
    preset = base(condition)
    return condition_name(preset, condition[len(preset) :].strip(" ()"), mark)


def marked(rows: Frame, broken: Iterable[Violation]) -> Frame:
    """The rows with the mark in the condition of each invalid cell."""
    invalid = rows["record"].isin({violation.record for violation in broken})
    return rows.assign(condition=rows["condition"].where(~invalid, rows["condition"].map(lambda name: _with(name, INVALID))))


def valid(rows: Frame) -> Frame:
    """The rows of cells that are not marked."""
    return rows[~rows["condition"].map(is_invalid)] if len(rows) else rows


def violation_messages(broken: Iterable[Violation]) -> list[str]:
    """Each broken clause in a sentence."""
    return [f"{INVALID}: {style_of(violation.condition).label} on {violation.setting}: {violation.why}." for violation in broken]
