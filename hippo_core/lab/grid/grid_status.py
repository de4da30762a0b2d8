"""The status of a grid: which cells have a finished record, which records are of older code, and how long the rest would take."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from math import log
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.lab.run.cells import Cell
from hippo_core.models.spec import load_spec
from hippo_core.protocols.base.experiment import load_experiment
from hippo_core.results.records import RUNS, clear_record, is_complete, read_meta

EXECUTION_KEYS = ("run_id", "record_dir", "threads", "batch_size")  # parameters that say where and how, not what
SAMPLE = 40  # records that an estimate looks at: there may be thousands
START = 2.5  # seconds of a cell that do not grow with its work: a kernel, its imports, its model


class Timing(NamedTuple):
    """What a finished record says of time: the notebook, step and model of its cell, how much work that was, the seconds that it took."""

    phase: str
    step: str | None
    model: str | None
    work: float
    seconds: float


@dataclass(frozen=True)
class RecordStatus:
    """The cells whose record is finished, and those that wait to be run."""

    finished: tuple[Cell, ...]
    waiting: tuple[Cell, ...]

    @cached_property
    def estimates(self) -> dict[str, float]:
        """How many seconds each waiting cell would take, by its id, from those of like cells in any run: of its preset, suite and model,
        else of its model, else of another. A cell that no record tells of is left out."""
        history = cache(_history)
        estimates: dict[str, float] = {}
        for cell in self.waiting:
            folder, size = Path(*cell.record.parts[len(root().parts) + 2 : -2]), cell.parameters.get("n", 0)
            own, any_folder = (history(at, size, cell.experiment) for at in (folder, Path(*("*" for _ in folder.parts))))
            tried = (_typical(cell, timings, same) for same in (True, False) for timings in (own, any_folder))
            if (seconds := next((value for value in tried if value is not None), None)) is not None:
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


def _history(subfolder: Path, size: int, experiment: str) -> list[Timing]:
    """Of the finished records of an experiment in this folder of all runs SAMPLE of those nearest in size, of equals the newest."""

    def nearness(folder: Path) -> tuple[int, float]:
        number = folder.name.split("_")[0]
        return abs(int(number) - size) if number.isdecimal() else 0, -folder.stat().st_mtime

    history = []
    folders = sorted((root() / RUNS).glob(f"*/{subfolder}/*"), key=nearness)
    for record in islice((path.parent for folder in folders for path in folder.glob("*/meta.json")), SAMPLE):
        with suppress(LabError, OSError, KeyError, ValueError):  # such as of parameters that the experiment no longer has
            meta = read_meta(record)
            if meta.get("experiment", "") == experiment:
                values, seconds = meta["parameters"], float(meta["cell_seconds"])
                work = _work(experiment, values)
                history.append(Timing(meta["phase"], values.get("step"), values.get("model"), work, seconds))
    return history


def _work(experiment: str, values: dict[str, Any]) -> float:
    """How much a cell with these parameters has to do, beside others of its experiment."""
    if not experiment:
        return float(values.get("n", 1))
    own = load_experiment(experiment)
    return own.work(own.parameters(**values))


def _typical(cell: Cell, history: list[Timing], same_model: bool) -> float | None:
    """The median of the cells of the same notebook and step whose work is nearest, as if their work were this cell's; None where there
    are none. Of another model: as if its weights were as large as this one's."""
    step, model = cell.parameters.get("step"), cell.parameters.get("model")
    similar = [timing for timing in history if timing[:2] == (cell.phase, step) and (timing.model == model) == same_model]
    if not similar:
        return None
    work = _work(cell.experiment, cell.parameters)
    ratios = [(work / timing.work, timing) for timing in similar]
    nearest = min(abs(log(ratio)) for ratio, _ in ratios)
    near = [(ratio * _weight_ratio(model, timing.model), timing.seconds) for ratio, timing in ratios if abs(log(ratio)) <= nearest]
    return median(min(seconds, START) + max(0.0, seconds - START) * ratio for ratio, seconds in near)


def _weight_ratio(model: str | None, other: str | None) -> float:
    """How much larger the weights of a model are than another's; 1 where one of them is not on the disk."""
    size, others_size = (_weights(name) if name and model != other else 0 for name in (model, other))
    return size / others_size if size and others_size else 1.0


def _weights(model: str) -> int:
    """The bytes of a model's weights; 0 where they are not on the disk."""
    with suppress(LabError, OSError):
        return sum(path.stat().st_size for path in load_spec(model).path.glob("*.safetensors"))
    return 0
