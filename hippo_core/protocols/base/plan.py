"""A cell as its experiment plans it: what it is told, which cells it needs by name, and what its rows rest on besides."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class CellPlan:
    """One execution of a notebook, before it has an id and a record.

    Args:
        experiment: the experiment's name; empty for a notebook that is none, such as that of data sets.
        notebook: the stem of a file in `notebooks/`, or the path of one from the lab's root.
        parameters: plain values, by the names of the notebook's parameters cell.
        kind: how its id begins.
        folder: the folders between that of the run and that of the cell.
        label: what a person calls it.
        condition: what a person chooses cells by (`--only`).
        step: the step that it is of the experiment.
        needs: cells whose records must be there first, by what they are to this one.
        modules: what makes its rows; these and all that they import decide when a record is out of date.
        inputs: checksums of further files and values that its rows depend on.
        models, encoders: what must be on the disk.
        config: sections of `config_snapshot.yaml` that say what the parameters stand for.
        expected: a row of what it will hold, from which is said beforehand which claims rest on too few clusters.
    """

    notebook: str
    parameters: dict[str, Any]
    kind: str
    folder: tuple[str, ...]
    label: str
    experiment: str = ""
    condition: str = ""
    step: str = "test"
    needs: Mapping[str, "CellPlan"] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict)
    models: tuple[str, ...] = ()
    encoders: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    expected: Mapping[str, Any] | None = None
