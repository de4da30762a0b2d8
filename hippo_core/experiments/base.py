"""An experiment's descriptor: its notebook, its parameters, which cells need which, and how a result is said and drawn."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hippo_core.experiments.parameters import Parameters, Resolved
from hippo_core.files import LabError, unknown
from hippo_core.methods.presets import Preset
from hippo_core.plugins import imported, is_path

if TYPE_CHECKING:
    import pandas as pd

OURS = {"answer": "hippo_core.experiments.answer.experiment:ANSWER", "memory": "hippo_core.experiments.memory.experiment:MEMORY"}


@dataclass(frozen=True)
class Experiment:
    """One protocol.

    Args:
        name: what a person calls it; of one's own, its module path (`package.module:NAME`).
        notebook: the stem of a file in `notebooks/`, or the path of one from the lab's root.
        parameters: the form of the notebook's parameters cell.
        run: the module that makes the rows; what it imports decides when a record is out of date.
        suits: whether a preset's cells are of this experiment where a grid does not say.
        needs: the cells of this experiment that one rests on, the last of them being its source.
        canonical: the cell with what does not matter to it taken out of its parameters.
        reads: the file of the user's own that a cell reads in the place of its source.
        sentence: a result in words, from the metrics.
        figure: a result as a picture (PNG), from the rows.
    """

    name: str
    notebook: str
    parameters: type[Parameters]
    run: str
    suits: Callable[[Preset], bool]
    sentence: Callable[[Any, Mapping[str, Any]], str]
    figure: Callable[[Any, "pd.DataFrame"], bytes]
    needs: Callable[[Resolved], tuple[Resolved, ...]] = lambda cell: ()
    canonical: Callable[[Resolved], Resolved] = lambda cell: cell
    reads: Callable[[Resolved], Path | None] = lambda cell: None

    @property
    def phase(self) -> str:
        """The stem of its notebook's file."""
        return Path(self.notebook).stem


@cache
def load_experiment(name: str) -> Experiment:
    """The experiment of this name or module path; LabError with what is legal otherwise."""
    if name not in OURS and not is_path(name):
        raise unknown("experiment", name, [*OURS, "package.module:NAME"])
    experiment = imported(OURS.get(name, name), f"experiment {name}")
    if not isinstance(experiment, Experiment):
        raise LabError(f"experiment {name} is no hippo_core.experiments.Experiment")
    return experiment


def experiment_of(preset: Preset) -> Experiment:
    """The one of ours that asks with a preset where nothing else is said."""
    return next(one for one in map(load_experiment, OURS) if one.suits(preset))
