"""The cells of `03_memory`: one teaches a store, one replays it, one asks with it; each in a process of its own.

    data <- teach <- test (immediate, delayed)
            teach <- replay <- test (after_sleep)

What a teach or a replay cell does not depend on is no part of its parameters: its preset is the one at the bottom of what the tested
preset extends, its overrides are those of the settings that its phase reads. So a memory's controls, and the ablations of its recall,
are tested on one taught store.
"""

import json
from pathlib import Path
from typing import cast

from hippo_core.files import LabError
from hippo_core.lab.grid.summary import command
from hippo_core.lab.run.cells import MEMORY, Cell, asking_cell, baseline_cell, dataset_cell
from hippo_core.lab.run.parameters import BaselineParameters, MemoryParameters, Parameters, resolve
from hippo_core.methods.episodic.settings import MemoryPreset, Mode
from hippo_core.results.records import is_complete

STORE = "store"  # the folder of a record that holds what was taught
REGIMES: dict[Mode, str] = {"teach": "delayed", "replay": "after_sleep"}  # that cells of these modes count as


def with_needs(parameters: Parameters, data: Cell | None = None) -> tuple[Cell, ...]:
    """The cell with these parameters, last, behind all cells that it needs; `data` is the cell of its data set where it is known."""
    data = data or dataset_cell(parameters)
    if isinstance(parameters, BaselineParameters):
        return data, baseline_cell(parameters, data)
    teach = asking_cell(MEMORY, canonical(parameters, "teach"), (data.id,), "teach")
    if parameters.mode == "teach":
        return data, teach
    replay = asking_cell(MEMORY, canonical(parameters, "replay"), (teach.id,), "replay")
    if parameters.mode == "replay":
        return data, teach, replay
    slept = parameters.regime == "after_sleep"
    test = asking_cell(MEMORY, parameters, (data.id, (replay if slept else teach).id), parameters.regime)
    return (data, teach, replay, test) if slept else (data, teach, test)


def canonical(parameters: MemoryParameters, mode: Mode) -> MemoryParameters:
    """The parameters of the teach or the replay cell that these rest on: equal for all that may share it."""
    resolved = resolve(parameters)
    bottom, memory = cast(MemoryPreset, resolved.origin), cast(MemoryPreset, resolved.preset)
    usual, mine = bottom.of_phase(mode), memory.of_phase(mode)
    overrides = [f"{name}={json.dumps(value)}" for name, value in sorted(resolved.suite_overrides.items())]
    overrides += [f"{key}={_word(value)}" for key, value in mine.items() if value != usual[key]]
    return parameters.model_copy(update={"preset": bottom.name, "overrides": overrides, "mode": mode, "regime": REGIMES[mode]})


def taught_store(cells: tuple[Cell, ...]) -> Path | None:
    """The folder of the store that the last of these cells reads, which is that of the cell before it; None for a cell that teaches.

    LabError where that cell has no whole record.
    """
    *_, before, last = cells
    if before.phase != MEMORY:
        return None
    if not is_complete(before.record):
        raise LabError(f"'{last.label}' needs the store of '{before.label}', which has no finished record; run it first: {command(before)}")
    return before.record / STORE


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
