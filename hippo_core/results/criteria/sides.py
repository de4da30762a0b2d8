"""Whose rows stand for a side of a criterion: those of its preset, or of the best one of its group."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hippo_core.results.criteria.criterion import Criteria, Criterion, Side, Where
from hippo_core.results.frames import Frame
from hippo_core.results.rivals import OWN_VECTORS, rivals


class NotJudged(Exception):
    """Why the rows at hand cannot speak for a criterion."""


@dataclass(frozen=True)
class Pick:
    """The one of `options` that stands for a side, with its rows, and whether validation worlds decided which."""

    rows: pd.DataFrame
    side: Side
    options: Sequence[Side]
    by_validation: bool

    @property
    def among(self) -> int:
        """Among how many it was the highest on the very rows that are judged."""
        return 1 if self.by_validation else len(self.options)

    def remarks(self, group: str) -> list[str]:
        """What a reader must know of the pick from a group."""
        how = "chosen on validation worlds" if self.by_validation else f"the highest of {self.among} on test worlds"
        own = any(one.encoder == "own" for one in self.options)
        return [f"{group} is {self.side}, {how}", *([OWN_VECTORS] if own else [])]


def because(criterion: Criterion, reason: str) -> str:
    """The reason with what the criterion needs, where it says so."""
    return f"{reason}; needs {criterion.needs}" if criterion.needs else reason


def options_of(criteria: Criteria, criterion: Criterion, side: Side, rows: pd.DataFrame) -> list[Side]:
    """The sides with rows that may stand for a side: itself, or the members of its group. Raises NotJudged where there are none."""
    told = {"stage": side.stage, "mode": side.mode, "overrides": side.overrides}
    members = [member.model_copy(update=told) for member in criteria.groups.get(side.preset, ())]
    there = [one for one in members or [side] if len(_rows_of(criteria, criterion, one, rows))]
    if not there:
        place = f"{criterion.suites[0]}, {criterion.profile}, {criterion.regime}"
        raise NotJudged(because(criterion, f"no rows of {side} ({place})"))
    return rivals(there, [one.encoder for one in there])


def pick(
    criteria: Criteria, criterion: Criterion, side: Side, options: Sequence[Side], rows: pd.DataFrame, validation: pd.DataFrame
) -> Pick:
    """The best of the options: of rags by validation worlds, else by the mean on the rows; of equals the first in the file."""
    tables = [_rows_of(criteria, criterion, one, rows) for one in options]
    chosen = _by_validation(criteria, criterion, options, validation) if side.preset == "best_rag" else None
    best = _highest(tables, criterion.metric) if chosen is None else chosen
    return Pick(tables[best], options[best], options, chosen is not None)


def _by_validation(criteria: Criteria, criterion: Criterion, options: Sequence[Side], validation: pd.DataFrame) -> int | None:
    """The option with the highest score on all validation worlds of the suite; None where one of them has no such rows."""
    whole = criterion.model_copy(update={"where": Where()})
    tables = [_rows_of(criteria, whole, one, validation) for one in options]
    return _highest(tables, "score") if all(map(len, tables)) else None


def _highest(tables: Sequence[pd.DataFrame], metric: str) -> int:
    """The place of the table with the highest mean of what was scored; one without a score comes last."""
    values = [table[metric].to_numpy(dtype=float) for table in tables]
    known = [column[~np.isnan(column)] for column in values]
    means = [float(column.mean()) if len(column) else -math.inf for column in known]
    return max(range(len(means)), key=means.__getitem__)


def _rows_of(criteria: Criteria, criterion: Criterion, side: Side, rows: pd.DataFrame) -> pd.DataFrame:
    """A side's rows. A preset that does not show the window has the same prompts in both regimes and may have run as delayed only."""
    mine = rows.loc[
        (rows["suite"] == criterion.suites[0])
        & (rows["profile"] == criterion.profile)
        & (rows["preset"] == side.preset)
        & (rows["stage"] == side.stage)
        & (rows["mode"] == side.mode)
        & (_told(rows, "suite_overrides") == "")
        & (_told(rows, "preset_overrides") == side.overrides)
        & (_told(rows, "encoder").replace("own", "") == (side.encoder or "own").replace("own", ""))
    ]
    for column, wanted in criterion.where.model_dump().items():
        mine = mine.loc[mine[column].isin(wanted)] if wanted else mine
    here = mine.loc[mine["regime"] == criterion.regime]
    if not len(here) and criterion.regime == "immediate" and side.preset not in criteria.shows_window:
        here = mine.loc[mine["regime"] == "delayed"]
    return here


def _told(rows: Frame, column: str) -> Frame:
    """A column of text that rows may lack."""
    return rows[column].fillna("").astype(str) if column in rows else pd.Series("", index=rows.index)
