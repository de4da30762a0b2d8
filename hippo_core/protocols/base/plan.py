"""A cell as its experiment plans it: what it is told, which cells it needs by name, and what its rows rest on besides."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class CellPlan:
    """One execution of a notebook, before it has an id and a record."""

    notebook: str  # the stem of a file in `notebooks/`, or the path of one from the lab's root
    parameters: dict[str, Any]  # plain values, by the names of the notebook's parameters cell
    kind: str  # how its id begins
    folder: tuple[str, ...]  # between that of the run and that of the cell
    label: str  # what a person calls it
    experiment: str = ""  # its name; empty for a notebook that is none, such as that of data sets
    condition: str = ""  # what a person chooses cells by (`--only`)
    step: str = "test"  # of the experiment
    needs: Mapping[str, "CellPlan"] = field(default_factory=dict)  # cells whose records must be there first, by what they are to this one
    modules: tuple[str, ...] = ()  # make its rows; these and all that they import decide when a record is out of date
    inputs: Mapping[str, Any] = field(default_factory=dict)  # checksums of further files and values that its rows depend on
    models: tuple[str, ...] = ()  # must be on the disk
    encoders: tuple[str, ...] = ()  # likewise
    config: Mapping[str, Any] = field(default_factory=dict)  # sections of `config_snapshot.yaml` that say what the parameters stand for
    expected: Mapping[str, Any] | None = None  # a row of what it will hold, which says beforehand which claims rest on too few clusters
