"""A table: what a step of an experiment writes, a row a unit; what its columns are, and which clusters its intervals go by."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hippo_core.errors import LabError
from hippo_core.results.frames import Frame

if TYPE_CHECKING:
    import pandas as pd


def no_check(cell: Any, rows: "pd.DataFrame") -> dict[str, Any]:
    """Nothing is checked, and nothing is added to the record's `meta.json`."""
    return {}


@dataclass(frozen=True)
class Table:
    """The rows of one step.

    Args:
        columns: the names of all columns, in order. A method may declare more; any other column is an error.
        unit: the column that says what a row is about: an item, a layer, a step of a training, a pair of tasks.
        cluster: the column whose values are the clusters of every interval: a world, an article, a dialogue, a seed.
        measures: columns whose means, with intervals by cluster, are the metrics.
        step: the step that writes it. An experiment of several steps has a parameter `step`.
        file: its name in the record.
        text, whole: columns of text, and of whole numbers; all others are numbers, empty where not measured.
        metrics: from the open cell, its rows and the seconds that it took, the content of `metrics.json`; None for the means of `measures`.
        check: raises LabError where rows cannot be right; returns what is added to `meta.json`.
        scraps: the keys of the metrics that are glued into the notebook.
    """

    columns: tuple[str, ...]
    unit: str
    cluster: str
    measures: tuple[str, ...] = ()
    step: str = "test"
    file: str = "metrics.csv"
    text: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    metrics: Callable[[Any, "pd.DataFrame", float], dict[str, Any]] | None = None
    check: Callable[[Any, "pd.DataFrame"], dict[str, Any]] = no_check
    scraps: tuple[str, ...] = ("metrics",)

    def described(self) -> dict[str, Any]:
        """What a record says of it, so that its rows can be read without the experiment."""
        names = ("step", "file", "unit", "cluster", "measures", "text", "whole")
        return {name: list(value) if isinstance(value := getattr(self, name), tuple) else value for name in names}

    def require(self, where: str) -> None:
        """LabError where it names a column that it does not have, or no plain CSV file."""
        where, there = f"{where}: step {self.step}", ", ".join(self.columns)
        for role in ("unit", "cluster"):
            if getattr(self, role) not in self.columns:
                raise LabError(f"{where}: the {role} column {getattr(self, role)!r} is none of its columns: {there}")
        for role in ("measures", "text", "whole"):
            if missing := [name for name in getattr(self, role) if name not in self.columns]:
                raise LabError(f"{where}: {role} names {missing[0]!r}, which is none of its columns: {there}")
        if not self.file.endswith(".csv") or "/" in self.file:
            raise LabError(f"{where}: expected the name of a CSV file, as metrics.csv, got {self.file!r}")

    def arranged(self, rows: "pd.DataFrame", more: tuple[str, ...] = ()) -> "pd.DataFrame":
        """The rows with their columns in order; LabError where one is missing or is not declared here or in `more`."""
        declared = [*self.columns, *(name for name in more if name not in self.columns)]
        if missing := [name for name in declared if name not in rows]:
            raise LabError(f"rows of step {self.step} lack the column {missing[0]!r}; they have: {', '.join(map(str, rows.columns))}")
        if strangers := [name for name in rows if name not in declared]:
            of_step = f"rows of step {self.step} have the column {strangers[0]!r}"
            raise LabError(f"{of_step}, which nobody declares; declared: {', '.join(declared)}")
        arranged: Frame = rows[declared]
        return arranged

    def means(self, rows: "pd.DataFrame") -> dict[str, Any]:
        """The mean of each measure with its 95% interval by cluster, and how much it rests on; None is what was not measured."""
        return {"metrics": {name: mean_by_cluster(rows, name, self.cluster) for name in self.measures}}


def mean_by_cluster(rows: Frame, measure: str, cluster: str) -> dict[str, Any]:
    """`mean`, `low` and `high` (95%, by cluster), `n` and `n_clusters` of a column, of the rows where it was measured."""
    from hippo_core.results.statistics.interval import cluster_interval

    measured = rows[rows[measure].notna()]
    if measured.empty:
        return {"mean": None, "low": None, "high": None, "n": 0, "n_clusters": 0}
    clusters = measured[cluster].astype(str).to_numpy()
    interval = cluster_interval(measured[measure].to_numpy(dtype=float), clusters, bounds=None)
    values = {"mean": interval.mean, "low": interval.low, "high": interval.high}
    known = {name: float(value) if value == value else None for name, value in values.items()}
    return {**known, "n": len(measured), "n_clusters": len(set(clusters))}
