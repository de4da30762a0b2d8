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

from hippo_core.dashboard.page import piece
from hippo_core.errors import LabError, unknown
from hippo_core.files import COMMAND, in_a_line, root
from hippo_core.protocols.questions.report.contract import Violation, beside, violation_messages, violations
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
    """What the panels that read runs share: dropdowns of which each offers what those before it leave, a button that reads the records
    anew, and what is said at the head. `panel["run"]` is what a dropdown stands at, `problem` why one could not be filled.

    Args:
        labels: of the dropdowns, by name: run, model, suite, regime, and those of conditions.
        runs: the folder of all runs; `executed` of the lab where it is None.
        remedy: what a reader can do where there is no run.
    """

    def __init__(self, labels: Mapping[str, str], runs: Path | None, remedy: str) -> None:
        self._runs, self._remedy, self._filling, self.problem = runs or root() / RUNS, remedy, False, ""
        self.fields = {name: ipywidgets.Dropdown(description=label, options=[]) for name, label in labels.items()}
        for name, field in self.fields.items():
            field.style.description_width = "initial"
            field.layout = ipywidgets.Layout(width="auto", max_width="340px", min_width="130px", margin="2px 14px 2px 2px")
            field.observe(lambda _, name=name: self._filling or self.fill(after=name), "value")
        self._head = ipywidgets.HTML()
        again = ipywidgets.Button(description="Read again", icon="refresh", tooltip="Read the records of this run anew")
        again.layout.width = "110px"
        again.on_click(lambda _: self.refresh())
        self._top = ipywidgets.HBox([ipywidgets.HBox(list(self.fields.values()), layout={"flex_flow": "row wrap"}), again])
        self._top.layout = {"justify_content": "space-between", "align_items": "flex-start"}

    def __getitem__(self, name: str) -> str:
        return self.fields[name].value or ""

    def refresh(self) -> None:
        """Read the records of the run anew."""
        read_index.cache_clear()
        self.fill()

    def fill(self, after: str = "", wanted: Mapping[str, str] | None = None) -> None:
        """Fill the dropdowns behind one, or all; each keeps its value where that is offered. LabError for a wanted value that is not."""
        names = list(self.fields)
        self._filling, self.problem = True, ""
        try:
            for name in names[names.index(after) + 1 if after else 0 :]:
                self._fill_field(name, (wanted or {}).get(name, ""))
        finally:
            self._filling = False
        if not self.problem:
            try:
                self._head.value = self._compared()
            except LabError as error:
                self.problem = str(error)
        if self.problem:
            self._head.value = piece("note", self.problem)
        self._show()

    def _fill_field(self, name: str, wanted: str) -> None:
        """A problem empties this dropdown and those behind."""
        field, offered = self.fields[name], []
        if not self.problem:
            try:
                offered = self._options(name)
            except LabError as error:
                self.problem = str(error)
        values, before = [value for _, value in offered], field.value
        if wanted and not self.problem and wanted not in values:
            raise unknown(name, wanted, values)
        if list(field.options) != offered:
            field.options = offered
        if values:
            field.value = wanted or (before if before in values else self._default(name, values))
        field.disabled = not values

    @property
    def _index(self) -> RunIndex:
        return read_index(self._runs / self["run"])

    def _options(self, name: str) -> list[tuple[str, str]]:
        """What a dropdown offers: what is shown, and what it stands for. LabError without a run, which ends in the way out."""
        if name == "run":
            if not (names := run_names(self._runs)):
                raise LabError(f"No run yet in {self._runs.name}: {self._remedy}.")
            return [(value, value) for value in names]
        model = self["model"]
        if name == "model":
            return [(value, value) for value in self._index.models]
        if name == "suite":
            return [(value.removeprefix(f"{model} · "), value) for value in self._index.settings(model)]
        if name == "regime":
            return [(value, value) for value in self._index.regimes(self["suite"])]
        return [(style_of(value).label, value) for value in self._conditions(name)]

    def _default(self, name: str, values: Sequence[str]) -> str:
        return "delayed" if name == "regime" and "delayed" in values else values[0]

    def _memory(self, values: Sequence[str]) -> str | None:
        """The memory of the chosen setting, where it is among the values."""
        memory = memory_of(self._index.of(self["suite"]))
        return memory if memory in values else None

    def _notes(self, broken: Sequence[Violation]) -> str:
        """What must be known of the run beside its numbers."""
        return "".join(piece("note", one) for one in (*self._index.left_out, *violation_messages(broken)))

    def _conditions(self, name: str) -> list[str]:
        """The conditions that a dropdown offers; LabError where there is none."""
        raise NotImplementedError

    def _compared(self) -> str:
        """Compare what is chosen; what the head says of it. LabError where that cannot be."""
        raise NotImplementedError

    def _show(self) -> None:
        """Show what was compared; nothing where there is a problem."""
        raise NotImplementedError
