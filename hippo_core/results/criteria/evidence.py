"""The rows that speak for a criterion: those of its sides, of comparable cells, with keys that are unique over seeds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from hippo_core.results.criteria.criterion import Criteria, Criterion, Side
from hippo_core.results.statistics.interval import Interval, cluster_interval, ratio_interval
from hippo_core.results.statistics.paired import Comparison, compare, paired

Choices = Mapping[str, str]


class NotJudged(Exception):
    """Why the rows at hand cannot speak for a criterion."""


@dataclass(frozen=True)
class Evidence:
    """What was measured for a criterion: value with interval, the comparison where there is one, cells, and remarks for the reason."""

    interval: Interval
    comparison: Comparison | None = None
    cells: tuple[str, ...] = ()
    remarks: tuple[str, ...] = field(default=())


def gather(criteria: Criteria, criterion: Criterion, rows: pd.DataFrame, chosen: Choices) -> Evidence:
    """Measure a criterion on the rows of one model. Raises NotJudged where rows, columns or worlds are missing."""
    options = [_options(criteria, criterion, side, rows, chosen) for side in criterion.sides]
    if criterion.metric not in rows:
        raise NotJudged(_because(criterion, f"no measurement of {criterion.metric} in this run"))
    sides, remarks, confidence = [], [], 0.95
    for side, presets in zip(criterion.sides, options, strict=True):
        found, among = _best(criteria, criterion, side, presets, rows)
        sides.append(found)
        if side.preset in criteria.groups:
            remarks.append(_remark(side, found, among, by_validation=_was_chosen(side, criterion, chosen)))
        if among > 1 and not _conservative(criterion, side):
            confidence = 1 - 0.05 / among
            remarks.append(f"interval at {confidence:.1%}, for the best of {among} is claimed")
    sides = _common(sides)
    _check_size(criteria, criterion, sides[0])
    evidence = _measure(criterion, sides, confidence)
    cells = tuple(sorted({str(cell) for side in sides for cell in side["cell"].unique()}))
    return replace(evidence, cells=cells, remarks=tuple(remarks))


def _because(criterion: Criterion, reason: str) -> str:
    return f"{reason}; needs {criterion.needs}" if criterion.needs else reason


def _was_chosen(side: Side, criterion: Criterion, chosen: Choices) -> bool:
    return side.preset == "best_rag" and criterion.suites[0] in chosen


def _options(criteria: Criteria, criterion: Criterion, side: Side, rows: pd.DataFrame, chosen: Choices) -> Sequence[str]:
    """The presets that may stand for a side and have rows."""
    presets = criteria.groups.get(side.preset, (side.preset,))
    if _was_chosen(side, criterion, chosen):
        presets = (chosen[criterion.suites[0]],)
    there = [preset for preset in presets if len(_rows_of(criteria, criterion, _standing_for(side, preset), rows))]
    if not there:
        place = f"{criterion.suites[0]}, {criterion.profile}, {criterion.regime}"
        raise NotJudged(_because(criterion, f"no rows of {side} ({place})"))
    return there


def _standing_for(side: Side, preset: str) -> Side:
    """The same side for one preset of its group."""
    return side.model_copy(update={"preset": preset})


def _rows_of(criteria: Criteria, criterion: Criterion, side: Side, rows: pd.DataFrame) -> pd.DataFrame:
    """A side's rows. A preset that does not show the window has the same prompts in both regimes and may have run as delayed only."""
    overrides = rows["overrides"].fillna("").astype(str) if "overrides" in rows else pd.Series("", index=rows.index)
    mine = rows.loc[
        (rows["suite"] == criterion.suites[0])
        & (rows["profile"] == criterion.profile)
        & (rows["preset"] == side.preset)
        & (rows["stage"] == side.stage)
        & (rows["mode"] == side.mode)
        & (overrides == side.overrides)
    ]
    for column, wanted in criterion.where.model_dump().items():
        mine = mine.loc[mine[column].isin(wanted)] if wanted else mine
    here = mine.loc[mine["regime"] == criterion.regime]
    if not len(here) and criterion.regime == "immediate" and side.preset not in criteria.shows_window:
        here = mine.loc[mine["regime"] == "delayed"]
    return here


def _best(criteria: Criteria, criterion: Criterion, side: Side, presets: Sequence[str], rows: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The rows of the preset with the highest mean, and among how many it was chosen. Ties go to the first in the file's order."""
    tables = [_rows_of(criteria, criterion, _standing_for(side, preset), rows) for preset in presets]
    means = [_mean(table, criterion.metric) for table in tables]
    return tables[max(range(len(tables)), key=means.__getitem__)], len(tables)


def _mean(rows: pd.DataFrame, metric: str) -> float:
    """The mean of what was scored, minus infinity where nothing was."""
    values = rows[metric].to_numpy(dtype=float)
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else -math.inf


def _conservative(criterion: Criterion, side: Side) -> bool:
    """Whether taking the highest mean on the test rows makes the criterion harder to meet: b of a difference, or a value at most x."""
    if criterion.value:
        return criterion.rule in ("at_most", "at_most_chance_plus")
    return criterion.difference is not None and side is criterion.sides[1] and criterion.rule != "within"


def _remark(side: Side, found: pd.DataFrame, among: int, by_validation: bool) -> str:
    name = found["preset"].iloc[0]
    if by_validation:
        return f"{side.preset} is {name}, chosen on validation worlds"
    return f"{side.preset} is {name}, the highest of {among} on test worlds"


def _common(sides: Sequence[pd.DataFrame]) -> list[pd.DataFrame]:
    """The sides cut to the cells that all have, per seed the largest n (it holds the worlds of the smaller ones); ids unique over seeds."""
    sizes = [set(zip(side["seed"], side["n"], strict=True)) for side in sides]
    largest: dict[object, int] = {}
    for seed, n in sorted(set.intersection(*sizes)):
        largest[seed] = n
    if not largest:
        raise NotJudged("the two sides share no cell of one size and seed")
    cut = []
    for side in sides:
        side = side.loc[[largest.get(seed) == n for seed, n in zip(side["seed"], side["n"], strict=True)]]
        seed = side["seed"].astype(str) + "/"
        side = side.assign(item_id=seed + side["item_id"].astype(str), world=seed + side["world"].astype(str))
        if side.duplicated("item_id").any():
            raise NotJudged(f"several cells hold the same items: {', '.join(sorted(map(str, side['cell'].unique())))}")
        cut.append(side)
    return cut


def _check_size(criteria: Criteria, criterion: Criterion, side: pd.DataFrame) -> None:
    """A claim rests on enough scored items and worlds; a claim per rung on at least 200 and 20."""
    by_rung = bool(criterion.where.rung)
    items = max(criterion.min_items, criteria.rung_items if by_rung else 0)
    worlds = max(criterion.min_worlds, criteria.rung_worlds if by_rung else 0, 2)
    known = side["world"][side[criterion.metric].notna()]
    n, n_worlds = len(known), len(set(known))
    if n < items or n_worlds < worlds:
        raise NotJudged(f"{n} items in {n_worlds} worlds are too few: at least {items} items and {worlds} worlds")


def _interval_of_value(criterion: Criterion, side: pd.DataFrame, confidence: float) -> Interval:
    """The mean of a column, less the items' chance where that is the bar; a column that leaves 0 to 1 has no bounds."""
    values = side[criterion.metric].to_numpy(dtype=float)
    inside = bool(np.all(np.isnan(values) | ((values >= 0) & (values <= 1))))
    if criterion.rule != "at_most_chance_plus":
        return cluster_interval(values, side["world"], confidence, bounds=(0.0, 1.0) if inside else None)
    above = values - side["chance"].to_numpy(dtype=float)
    return cluster_interval(above, side["world"], confidence, bounds=(-1.0, 1.0) if inside else None)


def _measure(criterion: Criterion, sides: Sequence[pd.DataFrame], confidence: float) -> Evidence:
    if criterion.value:
        return Evidence(_interval_of_value(criterion, sides[0], confidence))
    found = compare(*sides, metric=criterion.metric, confidence=confidence)
    if criterion.difference:
        return Evidence(Interval(found.difference, found.low, found.high, found.n, found.n_worlds), found)
    pairs = paired(*sides, metric=criterion.metric)
    return Evidence(ratio_interval(pairs["a"], pairs["b"], pairs["cluster"], confidence), found)
