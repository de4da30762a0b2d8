"""What the records of a run say without their rows: which cells there are, under the names that the report gives them; and the panels
that choose among them.

Only `meta.json` and the settings of each record are read; rows are read of the cells that are asked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import ipywidgets
import pandas as pd

from hippo_core.dashboard.choices import Choices, Options
from hippo_core.errors import LabError
from hippo_core.files import COMMAND, in_a_line, root
from hippo_core.protocols.questions.report.contract import Violation, beside, violations
from hippo_core.protocols.questions.report.findings import memory_of
from hippo_core.protocols.questions.report.runs import natural, with_conditions, with_keys, with_settings
from hippo_core.results.conditions import ordered, suite_position
from hippo_core.results.figures.palette import style_of
from hippo_core.results.frames import Frame
from hippo_core.results.records import RUNS, key_of_record, origins_of, rows_of, run_names
from hippo_core.results.records import damaged as left_out
from hippo_core.results.summaries import regimes_of


@dataclass(frozen=True)
class RunIndex:
    """The cells of a run that answer questions of test worlds: a line of `cells` a record and stage, and the `meta.json` of each record;
    `left_out` are records that are not what their seals say. A setting is what the report compares conditions in: a suite with its
    settings and size, of one model."""

    folder: Path
    cells: Frame
    metas: dict[str, dict[str, Any]]
    left_out: tuple[str, ...] = ()

    @property
    def but(self) -> str:
        """What is said behind a problem where a record is left out, which may be why; empty where none is."""
        return "".join(f" A record is {fault}." for fault in self.left_out[:1])

    @property
    def models(self) -> list[str]:
        return sorted(self.cells["model"].unique())

    def settings(self, model: str) -> list[str]:
        """The settings of a model in the report's order."""
        mine = self.cells[self.cells["model"] == model].drop_duplicates("setting")
        order = {row.setting: (suite_position(row.suite), natural(row.setting), row.setting) for row in mine.itertuples()}
        return sorted(order, key=order.__getitem__)

    def of(self, setting: str) -> Frame:
        return self.cells[self.cells["setting"] == setting]

    def regimes(self, setting: str) -> list[str]:
        return regimes_of(self.of(setting))

    def regime(self, setting: str, condition: str, regime: str) -> str:
        """The regime under which a condition's records lie: one that ignores the window has the same for both."""
        cells = self.of(setting)
        return regime if ((cells["condition"] == condition) & (cells["regime"] == regime)).any() else "delayed"

    def conditions(self, setting: str, regime: str) -> list[str]:
        """The conditions that have answers in a regime, in the report's order."""
        cells = self.of(setting)
        return ordered(cells.loc[cells["regime"].isin([regime, "delayed"]), "condition"])

    def rows(self, cells: Frame) -> Frame:
        """The rows of some of its cells, with condition, key and cluster, as those of a report, and all columns of the cells."""
        rows = with_keys(with_conditions(self._rows(cells["record"].unique())))
        added = [name for name in cells if name not in rows]
        return rows.merge(cells[["record", "stage", *added]], on=["record", "stage"])

    def broken(self, setting: str, conditions: Iterable[str], regime: str) -> list[Violation]:
        """The clauses of the contract of a meaningful run that the cells of these conditions break in a setting, under a regime."""
        cells, chosen = self.of(setting), set(conditions)
        judged = cells["condition"].isin(chosen) & cells["regime"].isin([regime, "delayed"])
        near = cells["condition"].isin(set().union(*map(beside, chosen))) & cells["regime"].isin([regime, "delayed"])
        broken_clauses = violations(self.rows(cells[near])) if judged.any() else []
        return [violation for violation in broken_clauses if violation.record in set(cells.loc[judged, "record"])]

    def _rows(self, records: Iterable[str]) -> Frame:
        try:
            return rows_of(self.folder, {self.folder / record: self.metas[record] for record in records})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise damaged(self.folder, error) from None


@lru_cache(maxsize=2)  # for the panels that show the same run; `read_index.cache_clear()` before a run is looked at anew
def read_index(folder: Path) -> RunIndex:
    """The index of a run. LabError, a line for a reader, where it has no answers or its records cannot be read."""
    try:
        origins = origins_of(folder, split=None) or origins_of(folder, split=None, dry_run=True)
        lines = [
            {**key_of_record(record, meta, folder), "stage": stage}
            for record, meta in origins.items()
            for stage in meta.get("stages") or ["test"]
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(folder, error) from None
    cells: Frame = pd.DataFrame(lines)
    faults = tuple(f"left out: {fault}" for fault in left_out(folder))
    if cells.empty and faults:
        raise LabError(f"Run {folder.name} has nothing that can be shown; {faults[0]}")
    if cells.empty or not (cells["split"] == "test").any():
        raise LabError(f"Run {folder.name} has no answers yet: no finished record of questions to test worlds.")
    cells = with_settings(with_conditions(cells))
    kept = cells[cells["split"] == "test"].reset_index(drop=True)
    metas = {record.relative_to(folder).as_posix(): meta for record, meta in origins.items()}
    return RunIndex(folder, kept, metas, faults)


def damaged(folder: Path, error: BaseException) -> LabError:
    """What is said of records that cannot be read."""
    return LabError(f"Run {folder.name} is damaged, `{COMMAND} records verify` says where: {type(error).__name__}: {in_a_line(error)}")


class RunPanel:
    """What the panels that read runs share: dropdowns that narrow down a run, a button that reads its records anew, a line at the head.

    Args:
        labels: of the dropdowns, by name.
        runs: the folder of all runs; `executed` of the lab where it is None.
        remedy: what a reader can do where there is no run.
    """

    def __init__(self, labels: Mapping[str, str], runs: Path | None, remedy: str) -> None:
        self._runs, self._remedy = runs or root() / RUNS, remedy
        self.choices = Choices(labels, self._options, self._default, self._show)
        self._head = ipywidgets.HTML()
        again = ipywidgets.Button(description="Read again", icon="refresh", tooltip="Read the records of this run anew")
        again.layout.width = "110px"
        again.on_click(lambda _: self.refresh())
        self._top = ipywidgets.HBox([self.choices.widget, again])
        self._top.layout = {"justify_content": "space-between", "align_items": "flex-start"}

    def refresh(self) -> None:
        """Read the records of the run anew."""
        read_index.cache_clear()
        self.choices.fill()

    @property
    def _index(self) -> RunIndex:
        return read_index(self._runs / self.choices["run"])

    def _options(self, name: str) -> Options:
        """What a dropdown offers. LabError without a run, which ends in the way out."""
        if name == "run":
            if not (names := run_names(self._runs)):
                raise LabError(f"No run yet in {self._runs.name}: {self._remedy}.")
            return [(value, value) for value in names]
        model, setting = self.choices["model"], self.choices["suite"]
        if name == "model":
            return [(value, value) for value in self._index.models]
        if name == "suite":
            return [(value.removeprefix(f"{model} · "), value) for value in self._index.settings(model)]
        if name == "regime":
            return [(value, value) for value in self._index.regimes(setting)]
        return [(style_of(value).label, value) for value in self._conditions(name)]

    def _default(self, name: str, values: Sequence[str]) -> str:
        return "delayed" if name == "regime" and "delayed" in values else values[0]

    def _memory(self, values: Sequence[str]) -> str | None:
        """The memory of the chosen setting, where it is among the values."""
        memory = memory_of(self._index.of(self.choices["suite"]))
        return memory if memory in values else None

    def _conditions(self, name: str) -> list[str]:
        """The conditions that a dropdown offers; LabError where there is none."""
        raise NotImplementedError

    def _show(self) -> None:
        """Show what is chosen."""
        raise NotImplementedError
