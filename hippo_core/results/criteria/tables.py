"""Criteria of the tables of experiments: rows are paired by their unit, intervals go by their clusters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pandas as pd

from hippo_core.errors import LabError
from hippo_core.results.criteria.criterion import TableCriterion, Values
from hippo_core.results.criteria.evidence import Evidence, NotAsked, NotJudged, measured
from hippo_core.results.frames import Frame


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


def gather_table(criterion: TableCriterion, tables: Sequence[TableRows]) -> Evidence:
    """Measure a criterion. Raises NotAsked where its experiment was not run, NotJudged where columns or rows are missing, LabError where
    rows do not pair."""
    steps = [table for table in tables if table.experiment == criterion.experiment and criterion.step in ("", table.step)]
    if not steps:
        raise NotAsked(f"no table of {criterion.experiment}")
    rows = steps[0].keyed()
    if criterion.metric not in rows:
        raise NotJudged(f"no measurement of {criterion.metric} in this run")
    compared = [_where(rows, values) for values in criterion.conditions]
    return measured(criterion, compared, [_named(values) for values in criterion.conditions], key="unit_key", cluster="cluster_key")


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
