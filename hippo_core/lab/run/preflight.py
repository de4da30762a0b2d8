"""What cells need of the machine that they run on: models, their adapters, encoders, cores."""

import os
from collections.abc import Iterable

from hippo_core.experiments.parameters import resolve
from hippo_core.files import LabError
from hippo_core.lab.run.cells import Cell
from hippo_core.models.packages.pins import available, missing, packages
from hippo_core.models.spec import load_spec


def materials(cells: Iterable[Cell]) -> tuple[list[str], list[str]]:
    """The models and the encoders that cells need where they run, by name."""
    parameters = [one for one in (cell.experiment_parameters for cell in cells) if one]
    encoders = {encoder for one in parameters for encoder in resolve(one).preset.settings.requires}
    return sorted({one.model for one in parameters}), sorted(encoders)


def require_weights(models: Iterable[str]) -> None:
    """LabError where a model that lies on this disk, or its adapter, is not there, before any cell starts."""
    for spec in map(load_spec, sorted(models)):
        if reason := missing(spec):
            raise LabError(reason)


def require_encoders(encoders: Iterable[str]) -> None:
    """LabError where one of these encoders comes with `make models` and is not there, before any cell starts."""
    for encoder in sorted({*encoders} & packages().keys()):
        if reason := available(encoder):
            raise LabError(f"encoder {encoder}: {reason}")


def require_threads(threads: int) -> None:
    """LabError where a cell is to compute with more threads than this machine has cores."""
    cores = os.cpu_count() or 1
    if threads > cores:
        raise LabError(f"threads: expected at most {cores}, the cores of this machine, got {threads}")
