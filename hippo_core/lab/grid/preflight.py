"""Before a grid runs: each of its memories answers a few validation questions, with its store and with it hidden, and must keep the
contract of a meaningful run (experiments/asking/report/contract.py): the store is not empty, the memory is asked, the model does not refuse
most questions, and what is stored is worth something. A grid of hours that could show nothing is so stopped after minutes.
"""

from collections.abc import Sequence

from hippo_core.experiments import load_experiment
from hippo_core.lab.run.cells import Cell, cells_of

ITEMS = 20  # questions of a memory


def probes(cells: Sequence[Cell], run_id: str) -> tuple[Cell, ...]:
    """The cells of the check: of every memory in every setting of a plan, as its preset is, two tests and what they need."""
    chain: dict[str, Cell] = {}
    for cell in cells:
        told = cell.parameters
        if not told.get("preset", "").startswith("memory/") or told.get("step") != "test" or told["dry_run"]:
            continue
        if any(not one.startswith("encoder=") for one in told["overrides"]):
            continue
        few = {"run_id": run_id, "n": min(ITEMS, told["n"]), "split": "val", "regime": "delayed"}
        for more in ([], ["control=empty"]):
            experiment = load_experiment(cell.experiment)
            values = {name: value for name, value in told.items() if name in experiment.parameters.model_fields}
            plan = experiment.plan(experiment.check(values | few | {"overrides": [*told["overrides"], *more]}, "preflight"))
            chain |= {one.id: one for one in cells_of(plan)}
    return tuple(chain.values())
