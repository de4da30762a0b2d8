"""How a grid stands: which cells have a whole record, which records are of older code, and what the rest would take."""

import json
import shutil
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hippo_core.files import root
from hippo_core.results.records import DONE, RUNS, is_complete, read_meta, set_aside

from .cells import Cell

HOW = ("run_id", "record_dir", "threads", "batch_size")  # parameters that say where and how, not what
History = dict[tuple, list[tuple[int, float]]]  # kinds of cells, and size and seconds of each that ended


@dataclass(frozen=True)
class Standing:
    """Cells with a whole record, and cells left to run."""

    finished: tuple[Cell, ...]
    waiting: tuple[Cell, ...]


def stand(cells: Sequence[Cell]) -> Standing:
    """Look at the record of each cell. A data set is left out where no cell that needs it is left."""
    whole = {cell.id for cell in cells if is_complete(cell.record)}
    needed = {need for cell in cells if cell.id not in whole for need in cell.needs}
    sources = {need for cell in cells for need in cell.needs}
    idle = {cell.id for cell in cells if cell.id in sources - needed}
    return Standing(
        tuple(cell for cell in cells if cell.id in whole), tuple(cell for cell in cells if cell.id not in whole and cell.id not in idle)
    )


def supersede(cells: Iterable[Cell]) -> int:
    """Keep aside the records of older code or settings whose place one of these cells takes; returns how many there were."""
    wanted: dict[Path, list[Cell]] = {}
    for cell in cells:
        wanted.setdefault(cell.record.parent, []).append(cell)
    old = [record for parent, here in wanted.items() if parent.is_dir() for record in parent.iterdir() if _is_older(record, here)]
    for record in old:
        if (record / DONE).exists():
            set_aside(record)
        else:
            shutil.rmtree(record)
    return len(old)


def _is_older(record: Path, here: list[Cell]) -> bool:
    if "." in record.name or record.name in {cell.id for cell in here} or not (record / "meta.json").is_file():
        return False
    old = _what(read_meta(record)["parameters"])
    return any(old == _what(cell.parameters) for cell in here)


def _what(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name not in HOW}


def estimate(cells: Sequence[Cell]) -> list[float | None]:
    """Seconds that each cell would take, from the records of all runs; None where there is none like it."""
    history = _history()
    return [guess(cell, history) for cell in cells]


def guess(cell: Cell, history: History) -> float | None:
    """Seconds that a cell would take: the median of the same notebook, model, suite and preset at the nearest size, else of the same
    notebook and model, else None."""
    for key in _keys(cell.phase, cell.parameters):
        if key in history:
            size = cell.parameters.get("n", 0)
            nearest = min((abs(n - size) for n, _ in history[key]))
            return statistics.median(seconds for n, seconds in history[key] if abs(n - size) == nearest)
    return None


def note(history: History, phase: str, told: dict[str, Any], seconds: float) -> None:
    """Add what a cell with these parameters took."""
    for key in _keys(phase, told):
        history.setdefault(key, []).append((told.get("n", 0), seconds))


def kind(phase: str, told: dict[str, Any]) -> tuple:
    """What cells that should take about as long have in common, their size aside."""
    return phase, told.get("model"), told.get("suite"), told.get("preset")


def _keys(phase: str, told: dict[str, Any]) -> tuple[tuple, tuple]:
    return kind(phase, told), (phase, told.get("model"))


def _history() -> History:
    found = History()
    for path in (root() / RUNS).rglob("meta.json"):
        try:
            meta = json.loads(path.read_text(encoding="utf-8"))
            note(found, meta["phase"], meta["parameters"], meta["cell_seconds"])
        except (OSError, json.JSONDecodeError, KeyError):
            continue
    return found
