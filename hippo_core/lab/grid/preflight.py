"""Before a grid runs: whether it could show anything.

Each of its memories answers a few validation questions, with its store and with it hidden, and must keep the contract of a meaningful run
(protocols/questions/report/contract.py): the store is not empty, the memory is asked, the model does not refuse most questions, and what is
stored is worth something. A grid of hours that could show nothing is so stopped after minutes. And the claims that its worlds are too few
for are said and written down.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from hippo_core.errors import LabError
from hippo_core.lab.grid.expand import Grid
from hippo_core.lab.run.cells import Cell, cells_of
from hippo_core.protocols.base.experiment import load_experiment
from hippo_core.results.criteria import load_criteria
from hippo_core.results.criteria.power import DECLARED, Claim, planned_claims, read_declared, sentence, underpowered, write_declared
from hippo_core.results.records import run_folder
from hippo_core.suites import get_suite
from hippo_core.suites.types import ALL_TEST

ITEMS = 20  # questions of a memory
MIN_RATIO = 10  # how many times the questions of its check a grid has that is checked without being told to


@dataclass(frozen=True)
class Check:
    """The run and the cells of a check, with what they need; how many settings of memories it asks, and which it cannot, and why."""

    run_id: str
    cells: tuple[Cell, ...]
    asked: int
    unasked: tuple[str, ...]

    def is_small_beside(self, cells: Sequence[Cell]) -> bool:
        """Whether it asks at most a tenth of what the memories of a grid are asked."""
        return 0 < MIN_RATIO * _questions(self.cells) <= _questions(cells)


def check_of(cells: Sequence[Cell], run_id: str) -> Check:
    """The check of a plan: every memory in each of its settings, as its preset is, at one size and one seed."""
    chain: dict[str, Cell] = {}
    unasked: dict[str, None] = {}
    seen, asked = set[str](), 0
    for cell in cells:
        parameters = cell.parameters
        if not parameters.get("preset", "").startswith("memory/") or parameters.get("step") != "test" or parameters["dry_run"]:
            continue
        if any(not override.startswith("encoder=") for override in parameters["overrides"]):
            continue
        few = {"run_id": run_id, "n": min(ITEMS, parameters["n"]), "split": "val", "regime": "delayed"}
        same = repr(parameters | few | {"seed": None, "n": None})
        if same in seen:
            continue
        seen.add(same)
        experiment = load_experiment(cell.experiment)
        values = {name: value for name, value in parameters.items() if name in experiment.parameters.model_fields}
        try:
            if (suite := get_suite(parameters["suite"])).split_rule == ALL_TEST:
                raise LabError(f"suite {suite.name} has no val split: {ALL_TEST}")
            for more in ([], ["control=empty"]):
                plan = experiment.plan(experiment.check(values | few | {"overrides": [*parameters["overrides"], *more]}, "preflight"))
                chain |= {planned.id: planned for planned in cells_of(plan)}
            asked += 1
        except LabError as error:  # such as a suite without validation worlds
            unasked[f"not checked: {parameters['preset']} on {parameters['suite']}: {error}"] = None
    return Check(run_id, tuple(chain.values()), asked, tuple(unasked))


def _questions(cells: Sequence[Cell]) -> int:
    """The questions that memories are asked in these cells."""
    return sum(cell.parameters["n"] for cell in cells if cell.parameters.get("step") == "test")


def power(cells: Sequence[Cell]) -> str:
    """Which claims these cells cannot show, in a sentence; empty where they could show all."""
    criteria = load_criteria()
    return sentence(criteria, underpowered(criteria, _claims(cells)))


def declare(grid: Grid) -> str:
    """The same of a grid, and its run's folder says so from now on. A claim is declared only while none of its cells has a record; what was
    declared of the others, or of claims that are not of this plan, stays as it was."""
    criteria, claims, path = load_criteria(), _claims(grid.cells), run_folder(grid.run_id) / DECLARED
    begun = {cell.id for cell in grid.cells if cell.record.exists()}
    not_begun = [claim for claim in claims if begun.isdisjoint(claim.cells)]
    mine, before = {(claim.model, claim.id) for claim in not_begun}, read_declared(path)
    declared = [claim for claim in before if (claim.model, claim.id) not in mine] + underpowered(criteria, not_begun)
    if declared != before or not path.is_file():
        write_declared(path, declared)
    return sentence(criteria, underpowered(criteria, claims))


def _claims(cells: Sequence[Cell]) -> list[Claim]:
    plan = [{**cell.plan.expected, "cell": cell.id} for cell in cells if cell.plan and cell.plan.expected]
    return planned_claims(load_criteria(), pd.DataFrame(plan)) if plan else []
