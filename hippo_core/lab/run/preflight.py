"""What cells need of the machine that they run on: models, their adapters, encoders, cores."""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from hippo_core.errors import LabError
from hippo_core.lab.run.cells import Cell
from hippo_core.models.packages.pins import available, missing, packages
from hippo_core.models.spec import load_spec


@dataclass(frozen=True)
class Requirements:
    """The models and the encoders that cells need where they run, by name."""

    models: tuple[str, ...]
    encoders: tuple[str, ...]

    def require(self) -> None:
        """LabError where one of them is not on this machine."""
        require_weights(self.models)
        require_encoders(self.encoders)


def materials(cells: Iterable[Cell]) -> Requirements:
    """What these cells need."""
    plans = [cell.plan for cell in cells if cell.plan]
    models, encoders = ({name for plan in plans for name in getattr(plan, kind)} for kind in ("models", "encoders"))
    return Requirements(tuple(sorted(models)), tuple(sorted(encoders)))


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
