"""The command that runs a cell alone."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from hippo_core.errors import LabError
from hippo_core.files import COMMAND
from hippo_core.lab.run.cells import Cell
from hippo_core.protocols.base.experiment import load_experiment
from hippo_core.protocols.base.parameters import assignments

ALONE = "single"  # the run of cells that are run alone, unless one is named


def command(cell: Cell) -> str:
    """The command that runs a cell alone, into the same run; defaults are left out. Each word is quoted for a shell."""
    if not cell.experiment:
        return " ".join([COMMAND, "notebook", shlex.quote(cell.phase), *_words(cell.parameters)])
    experiment = load_experiment(cell.experiment)
    usual = experiment.parameters(run_id=ALONE).model_dump()
    said = {name: cell.parameters[name] for name in experiment.label_fields if name in cell.parameters}
    changed = said | {name: value for name, value in cell.parameters.items() if value != usual[name]}
    return " ".join([COMMAND, "run", shlex.quote(cell.experiment), *_words(changed)])


def _words(values: Mapping[str, Any]) -> list[str]:
    return [f"{shlex.quote(name)}={shlex.quote(_yaml(value))}" for name, value in values.items()]


def _yaml(value: object) -> str:
    """A value as the command line reads it back, which is YAML; plain where that says the same."""
    if isinstance(value, list):
        plain = f"[{', '.join(map(_yaml, value))}]"
        return plain if _read(plain) == value else json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        return value if _read(value) == value else json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)


def _read(text: str) -> object:
    try:
        return assignments([f"value={text}"])["value"]
    except LabError:
        return None
