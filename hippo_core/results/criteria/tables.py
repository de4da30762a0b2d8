"""Criteria of the tables of experiments: rows are paired by their unit, intervals go by their clusters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pandas as pd

from hippo_core.errors import LabError
from hippo_core.results.criteria.criterion import TableCriterion, Values
from hippo_core.results.criteria.evidence import Evidence, at_chance
from hippo_core.results.criteria.sides import NotJudged
from hippo_core.results.frames import Frame
from hippo_core.results.statistics.interval import Interval, cluster_interval, ratio_interval
from hippo_core.results.statistics.paired import compare, paired


@dataclass(frozen=True)
class TableRows:
    """The rows of an experiment's step in a run, with its parameters as columns.

    Args:
        unit, cluster: the columns that say what a row is about, and to which cluster it belongs.
        measures: the columns that are summed up.
        within: further parameters that tell rows of one unit apart, such as the model and the seed.
    """

    experiment: str
    step: str
    unit: str
    cluster: str
    rows: pd.DataFrame
    measures: tuple[str, ...] = ()
    within: tuple[str, ...] = ("model", "seed")

    def keyed(self) -> pd.DataFrame:
        """The rows with `cluster_key`, the cluster told apart by the model and the seed of its cell, and `unit_key`, the unit within it."""
        names = [name for name in self.within if name in self.rows and name not in (self.cluster, self.unit)]
        cluster = reduce(lambda left, right: left + "/" + right, (self.rows[name].astype(str) for name in (*names, self.cluster)))
        return self.rows.assign(cluster_key=cluster, unit_key=cluster + "/" + self.rows[self.unit].astype(str))


def tables_of(criterion: TableCriterion, tables: Sequence[TableRows]) -> TableRows | None:
    """The rows that a criterion is about; None where the run does not hold the experiment."""
    steps = [table for table in tables if table.experiment == criterion.experiment and criterion.step in ("", table.step)]
    return steps[0] if steps else None


def gather_table(criterion: TableCriterion, table: TableRows) -> Evidence:
    """Measure a criterion. Raises NotJudged where columns or rows are missing, LabError where rows do not pair."""
    rows = table.keyed()
    if criterion.metric not in rows:
        raise NotJudged(f"no measurement of {criterion.metric} in this run")
    sides = [_where(rows, values) for values in criterion.sides]
    cells = tuple(dict.fromkeys(str(cell) for side in sides for cell in sorted(side["cell"].unique())))
    names = [*(_named(values) for values in criterion.sides), ""][:2]
    if criterion.value:
        values, clusters = sides[0][criterion.metric].to_numpy(dtype=float), sides[0]["cluster_key"]
        inside = bool(np.all(np.isnan(values) | ((values >= 0) & (values <= 1))))
        return Evidence(cluster_interval(values, clusters, bounds=(0.0, 1.0) if inside else None), cells=cells, a=names[0])
    keys = {"key": "unit_key", "cluster": "cluster_key"}
    found = compare(*sides, metric=criterion.metric, **keys)
    interval = Interval(found.difference, found.low, found.high, found.n, found.n_worlds)
    pairs = paired(*sides, metric=criterion.metric, **keys)
    if criterion.same:
        same = ((pairs["a"] - pairs["b"]).abs() <= criterion.tolerance).to_numpy(dtype=float)
        return Evidence(cluster_interval(same, pairs["cluster"], bounds=(0.0, 1.0)), cells=cells, a=names[0], b=names[1])
    if criterion.ratio:
        interval = ratio_interval(pairs["a"], pairs["b"], pairs["cluster"])
    return Evidence(interval, found, cells, a=names[0], b=names[1], says_nothing=at_chance(criterion, sides[1], names[1]))


def _where(rows: Frame, values: Values) -> Frame:
    for name, value in values.items():
        if name not in rows:
            raise LabError(f"no column {name!r}; there are: {', '.join(map(str, rows.columns))}")
        rows = rows[rows[name] == value]
    if rows.empty:
        raise NotJudged(f"no rows with {_named(values)}")
    return rows


def _named(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())
