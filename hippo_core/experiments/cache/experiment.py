"""The experiment `cache`: a cache is damaged between the pass that wrote it and those that read it, repaired, and read."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from hippo_core.cache.names import DefenceName, Field as BitField, Format, Kind, Parts, Task, Times
from hippo_core.experiments.base import Experiment
from hippo_core.experiments.cache.table import MEASURE
from hippo_core.experiments.cell import OpenCell
from hippo_core.experiments.parameters import Parameters, Positive
from hippo_core.models.kv_storage import Precision

if TYPE_CHECKING:
    import pandas as pd

    from hippo_core.results.criteria import TableRows
    from hippo_core.results.report.sections import Section

DRY = 4  # probes of a dry run
Severity = Annotated[float, Field(ge=0, le=1)]


class CacheParameters(Parameters):
    """What `06_cache_robustness` can be told."""

    tasks: list[Task] = Field(default=["text", "choice", "needle", "traces"], min_length=1)
    n: Positive = 40
    kinds: list[Kind] = Field(default=["gaussian", "contiguous_overwrite"], min_length=1)
    severities: list[Severity] = Field(default=[0.25, 0.5, 1.0], min_length=1)
    defences: list[DefenceName] = Field(default=["reset", "clipping", "recompute"])
    layers: list[int] | None = None
    heads: list[int] | None = None
    times: Times = "all_past"
    recent: Annotated[int, Field(ge=0)] = 32
    window: list[int] = Field(default=[16, 48], min_length=2, max_length=2)
    parts: Parts = "KV"
    stored: Format = "bfloat16"
    bits: BitField = "all"
    budget: Annotated[float, Field(gt=0, le=1)] = 1.0
    precision: Precision = "bfloat16"

    @property
    def items(self) -> int:
        """How many probes a task has."""
        return min(self.n, DRY) if self.dry_run else self.n


class CacheCell(OpenCell):
    """A cell that breaks a cache and repairs it."""

    @property
    def checkpoint(self) -> Path | None:
        """The folder of the trained repair; None where none is needed."""
        return self.sources.get("repair")


def sentence(parameters: CacheParameters, metrics: Mapping[str, Any]) -> str:
    """The result in words, from its numbers."""
    from hippo_core.experiments.cache.report import in_words

    return in_words(parameters.model, metrics["tasks"])


def figure(parameters: CacheParameters, rows: "pd.DataFrame") -> bytes:
    """What is left of the score along severity, a panel a kind (PNG)."""
    from hippo_core.experiments.cache.table import kept
    from hippo_core.results.figures import cache, drawing

    return drawing.png(cache.robustness(kept(rows)))


def sections(tables: "Sequence[TableRows]") -> "Sequence[Section]":
    """What a report says: the curves, what each defence recovers, and what it costs."""
    from hippo_core.experiments.cache.report import found

    return found(tables)


CACHE = Experiment(
    name="cache",
    notebook="06_cache_robustness",
    parameters=CacheParameters,
    run="hippo_core.training.cache.run",
    tables=(MEASURE,),
    cell=CacheCell,
    always_said=("model", "n", "seed"),
    axes={"sizes": "n", "models": "model", "seeds": "seed"},
    sentence=sentence,
    figure=figure,
    sections=sections,
)
