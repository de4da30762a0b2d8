"""How a grid stands: which cells have a whole record, which records are of older code, and what the rest would take."""

import shutil
import statistics
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from hippo_core.files import LabError, root
from hippo_core.lab.run.cells import Cell
from hippo_core.results.records import DONE, RUNS, is_complete, read_meta, set_aside

EXECUTION_KEYS = ("run_id", "record_dir", "threads", "batch_size")  # parameters that say where and how, not what
SAMPLE = 40  # records that an estimate looks at: there may be thousands


@dataclass(frozen=True)
class Standing:
    """Cells with a whole record, and cells left to run."""

    finished: tuple[Cell, ...]
    waiting: tuple[Cell, ...]


def stand(cells: Sequence[Cell]) -> Standing:
    """Look at the record of each cell. A data set, or a store, is left out where no cell that needs it is left."""
    whole = {cell.id for cell in cells if is_complete(cell.record)}
    sources = {need for cell in cells for need in cell.needs}
    wanted = {cell.id for cell in cells} - sources - whole
    for cell in reversed(cells):  # needs come first
        if cell.id in wanted:
            wanted |= set(cell.needs) - whole
    return Standing(tuple(cell for cell in cells if cell.id in whole), tuple(cell for cell in cells if cell.id in wanted))


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


def _what(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name not in EXECUTION_KEYS}


def estimate(cells: Sequence[Cell]) -> list[float | None]:
    """Seconds that each cell would take, from the records of all runs: the median of the same notebook, mode, model, suite and preset
    at the nearest size, else of the same notebook, mode and model, else None. Of many records SAMPLE are looked at, the newest folders'."""
    history, kinds = cache(_history), [_kind(cell) for cell in cells]
    seconds = {kind: history(*kind) or history(*_wider(*kind)) for kind in set(kinds)}
    return [statistics.median(seconds[kind]) if seconds[kind] else None for kind in kinds]


Kind = tuple[str | None, str | None]  # model and mode


def _kind(cell: Cell) -> tuple[str, Kind, Path, int]:
    """Notebook, model and mode, the place of its records below a run (preset and suite), and size."""
    folder = Path(*cell.record.parts[len(root().parts) + 2 : -2])
    return cell.phase, (cell.parameters.get("model"), cell.parameters.get("mode")), folder, cell.parameters.get("n", 0)


def _wider(phase: str, kind: Kind, folder: Path, size: int) -> tuple[str, Kind, Path, int]:
    """The same at any place."""
    return phase, kind, Path(*("*" for _ in folder.parts)), size


def _history(phase: str, kind: Kind, subfolder: Path, size: int) -> list[float]:
    """The seconds of finished records of a notebook, model and mode at a place, of those that are nearest in size."""

    def nearness(folder: Path) -> tuple[int, float]:
        number = folder.name.split("_")[0]
        return abs(int(number) - size) if number.isdecimal() else 0, -folder.stat().st_mtime

    folders = sorted((root() / RUNS).glob(f"*/{subfolder}/*"), key=nearness)
    records = islice((path.parent for folder in folders for path in folder.glob("*/meta.json")), SAMPLE)
    seconds_by_distance: dict[int, list[float]] = {}
    for record in records:
        with suppress(LabError, OSError, KeyError):
            meta = read_meta(record)
            parameters = meta["parameters"]
            if (meta["phase"], parameters.get("model"), parameters.get("mode")) == (phase, *kind):
                seconds_by_distance.setdefault(nearness(record.parent)[0], []).append(meta["cell_seconds"])
    return seconds_by_distance[min(seconds_by_distance)] if seconds_by_distance else []
