"""The command that runs a cell alone."""

from hippo_core.experiments.base import load_experiment
from hippo_core.files import COMMAND
from hippo_core.lab.run.cells import Cell

ALONE = "single"  # the run of cells that are run alone, unless one is named


def command(cell: Cell) -> str:
    """The command that runs a cell alone, into the same run; defaults are left out."""
    if not cell.experiment:
        words = [f"{name}={_word(value)}" for name, value in cell.parameters.items()]
        return " ".join([COMMAND, "notebook", cell.phase, *words])
    experiment = load_experiment(cell.experiment)
    usual = experiment.parameters(run_id=ALONE).model_dump()
    said = {name: cell.parameters[name] for name in experiment.always_said if name in cell.parameters}
    changed = said | {name: value for name, value in cell.parameters.items() if value != usual[name]}
    return " ".join([COMMAND, "run", cell.experiment, *(f"{name}={_word(value)}" for name, value in changed.items())])


def _word(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"'[{', '.join(map(str, value))}]'" if isinstance(value, list) else str(value)
