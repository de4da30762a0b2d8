"""A run as the report sees it: item rows with their condition and setting, the records behind them, and what failed.

A *setting* is what must be equal before conditions may be compared: suite, model, profile, size and suite overrides. Seeds are pooled.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hippo_core.files import LabError
from hippo_core.results.figures.palette import suite_place
from hippo_core.results.frames import Frame, Row
from hippo_core.results.records import read_meta, read_rows

CONDITION_KEYS = frozenset({"k", "encoder", "decoding", "store_kv"})


@dataclass(frozen=True)
class Cell:
    """One record: its path below the run, the condition and setting it belongs to, and its `meta.json`."""

    record: str
    condition: str
    setting: str
    regime: str
    split: str
    seed: int
    n: int
    model: str
    id: str
    meta: dict[str, Any]

    @property
    def page(self) -> str:
        """The name of the page that lists its items."""
        return re.sub(r"[^A-Za-z0-9_.-]+", "-", self.record.replace("/", "--")) + ".html"


@dataclass(frozen=True)
class Unfinished:
    """A cell without a finished record: where it is, and its error where it failed."""

    record: str
    error: str

    @property
    def last_line(self) -> str:
        """The error's last line, which names it."""
        lines = self.error.strip().splitlines()
        return lines[-1] if lines else "stopped before it was done"

    @property
    def notebook(self) -> str:
        """Its notebook with the traceback."""
        return f"{self.record}/notebook.failed.ipynb"


@dataclass(frozen=True)
class Run:
    """All that a report needs of a run. `validation` are rows of the same settings on validation worlds, and may be empty."""

    folder: Path
    rows: Frame
    validation: Frame
    cells: tuple[Cell, ...]
    unfinished: tuple[Unfinished, ...]
    dry: bool

    @property
    def numbers(self) -> Frame:
        """The rows without their long texts: all that tables, figures and verdicts need."""
        return self.rows.drop(columns=["prompt", "pred", "shown"])

    @property
    def settings(self) -> list[str]:
        """The settings, in the order of their suites."""
        pairs = self.rows[["suite", "setting"]].drop_duplicates().itertuples(index=False)
        return [setting for _, setting in sorted((suite_place(suite), setting) for suite, setting in pairs)]

    def cells_of(self, setting: str, split: str = "test") -> list[Cell]:
        """The records of one setting."""
        return [cell for cell in self.cells if cell.setting == setting and cell.split == split]


def load_run(folder: Path) -> Run:
    """Read every finished record of a run. Raises LabError where the folder is missing or holds none."""
    if not folder.is_dir():
        raise LabError(f"no run at {folder}; run a grid first: make grid")
    rows, dry = _rows(folder)
    rows = _settings(_conditions(rows))
    cells = tuple(_cell(folder, first) for _, first in rows.groupby("record", sort=False).first().reset_index().iterrows())
    test, validation = rows[rows["split"] == "test"], rows[rows["split"] == "val"]
    if test.empty:
        raise LabError(f"{folder} holds records of validation worlds only; a report needs test worlds: run cells with split=test")
    return Run(folder, test, validation, cells, tuple(_unfinished(folder)), dry)


def _rows(folder: Path) -> tuple[Frame, bool]:
    """All rows; those of dry runs only where there are no others."""
    try:
        return read_rows(folder, split=None), False
    except LabError:
        return read_rows(folder, split=None, dry_run=True), True


def _conditions(rows: Frame) -> Frame:
    """Rows with the columns `condition` (preset and what sets it apart), `cluster` (seed and world) and `key` (seed and item)."""
    seed = rows["seed"].astype(str)
    variant = {told: _split(told)[0] for told in rows["overrides"].unique()}
    marks = rows["overrides"].map(variant) + rows["stage"].map(lambda stage: "" if stage == "test" else f" {stage}")
    condition = rows["preset"] + marks.map(lambda mark: f" [{mark.strip()}]" if mark.strip() else "")
    keys = {"cluster": seed + "/" + rows["world"], "key": seed + "/" + rows["item_id"]}
    return rows.assign(condition=condition, suite_overrides=rows["overrides"].map(lambda told: _split(told)[1]), **keys)


def _split(overrides: str) -> tuple[str, str]:
    """The overrides of a cell that belong to its condition, and those that belong to its suite."""
    sides: tuple[list[str], list[str]] = [], []
    for told in filter(None, overrides.split(";")):
        sides[told.split("=")[0] not in CONDITION_KEYS].append(told)
    return ", ".join(sides[0]), ", ".join(sides[1])


def _settings(rows: Frame) -> Frame:
    """Rows with the column `setting`: the suite's name, and whatever else differs between cells of that suite."""
    names = {}
    for suite, group in rows.groupby("suite", sort=False):
        parts = [name for name in ("model", "profile", "n", "suite_overrides") if group[name].nunique() > 1]
        short = str(suite) if not str(suite).startswith("folder:") else Path(str(suite)).name
        for values in group[["model", "profile", "n", "suite_overrides"]].drop_duplicates().itertuples(index=False):
            said = [f"n={getattr(values, part)}" if part == "n" else str(getattr(values, part)) for part in parts]
            names[(suite, *values)] = " · ".join([short, *filter(None, said)])
    keys = zip(rows["suite"], rows["model"], rows["profile"], rows["n"], rows["suite_overrides"], strict=True)
    return rows.assign(setting=[names[key] for key in keys])


def _cell(folder: Path, first: Row) -> Cell:
    names = ("record", "condition", "setting", "regime", "split", "seed", "n", "model")
    return Cell(**{name: first[name] for name in names}, id=first["cell"], meta=read_meta(folder / first["record"]))


def _unfinished(folder: Path) -> Iterable[Unfinished]:
    """Cells that began (they have a config snapshot) and have no done-marker; those set aside and the report's own are left out."""
    for snapshot in sorted(folder.rglob("config_snapshot.yaml")):
        place = snapshot.parent
        record = place.relative_to(folder).as_posix()
        if "." in record or record.startswith("report/") or (place / "DONE").exists():
            continue
        error = place / "error.txt"
        yield Unfinished(record, error.read_text(encoding="utf-8") if error.is_file() else "")
