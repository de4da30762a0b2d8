"""The status of a grid: which cells have a finished record, which records are of older code, and how long the rest would take."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.lab.run.cells import Cell
from hippo_core.results.records import RUNS, clear_record, is_complete, read_meta

EXECUTION_KEYS = ("run_id", "record_dir", "threads", "batch_size")  # parameters that say where and how, not what
SAMPLE = 40  # records that an estimate looks at: there may be thousands


@dataclass(frozen=True)
class RecordStatus:
    """The cells whose record is finished, and those that wait to be run."""

    finished: tuple[Cell, ...]
    waiting: tuple[Cell, ...]

    def estimates(self) -> dict[str, float]:
        """How many seconds each waiting cell would take, by its id: as long as like cells of its preset and suite did in any run, else as
        any like cells. A cell that no record tells of is left out."""
        history = cache(_history)
        estimates: dict[str, float] = {}
        for cell in self.waiting:
            folder, size = Path(*cell.record.parts[len(root().parts) + 2 : -2]), cell.parameters.get("n", 0)
            own = _typical(cell, history(folder, size))
            seconds = own if own is not None else _typical(cell, history(Path(*("*" for _ in folder.parts)), size))
            if seconds is not None:
                estimates[cell.id] = seconds
        return estimates


def status_of(cells: Sequence[Cell]) -> RecordStatus:
    """Look up the record of each cell. A data set or a store does not wait unless a cell that needs it waits."""
    complete = {cell.id for cell in cells if is_complete(cell.record)}
    sources = {need for cell in cells for need in cell.needed}
    wanted = {cell.id for cell in cells} - sources - complete
    for cell in reversed(cells):  # needs come first
        if cell.id in wanted:
            wanted |= cell.needed - complete
    return RecordStatus(tuple(cell for cell in cells if cell.id in complete), tuple(cell for cell in cells if cell.id in wanted))


def supersede(cells: Iterable[Cell]) -> int:
    """Put away the records of older code or settings that one of these cells replaces; returns how many there were."""
    wanted: dict[Path, list[Cell]] = {}
    for cell in cells:
        wanted.setdefault(cell.record.parent, []).append(cell)
    old = [record for parent, here in wanted.items() if parent.is_dir() for record in parent.iterdir() if _is_older(record, here)]
    for record in old:
        clear_record(record)
    return len(old)


def _is_older(record: Path, here: list[Cell]) -> bool:
    if "." in record.name or record.name in {cell.id for cell in here} or not (record / "meta.json").is_file():
        return False
    old = _what(read_meta(record)["parameters"])
    return any(old == _what(cell.parameters) for cell in here)


def _what(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name not in EXECUTION_KEYS}


def _history(subfolder: Path, size: int) -> list[tuple[tuple, int, float]]:
    """Kind, size and seconds of finished records in this folder of all runs: SAMPLE of those nearest in size, of equals the newest."""

    def nearness(folder: Path) -> tuple[int, float]:
        number = folder.name.split("_")[0]
        return abs(int(number) - size) if number.isdecimal() else 0, -folder.stat().st_mtime

    history = []
    folders = sorted((root() / RUNS).glob(f"*/{subfolder}/*"), key=nearness)
    for record in islice((path.parent for folder in folders for path in folder.glob("*/meta.json")), SAMPLE):
        with suppress(LabError, OSError, KeyError):
            meta = read_meta(record)
            history.append((_kind(meta["phase"], meta["parameters"]), meta["parameters"].get("n", 0), meta["cell_seconds"]))
    return history


def _typical(cell: Cell, history: list[tuple[tuple, int, float]]) -> float | None:
    """The median of the cells of the same notebook, model and step at the nearest size; None where there are none."""
    size, kind = cell.parameters.get("n", 0), _kind(cell.phase, cell.parameters)
    similar = [(abs(n - size), seconds) for other, n, seconds in history if other == kind]
    nearest = min((distance for distance, _ in similar), default=0)
    return median(seconds for distance, seconds in similar if distance == nearest) if similar else None


def _kind(phase: str, parameters: dict[str, Any]) -> tuple:
    return phase, parameters.get("model"), parameters.get("step")
