"""The power check of a grid: which claims its worlds are too few for, said and written down before any of their cells runs."""

from collections.abc import Sequence

import pandas as pd

from hippo_core.lab.grid.expand import Grid
from hippo_core.lab.run.cells import Cell
from hippo_core.results.criteria import load_criteria
from hippo_core.results.criteria.power import DECLARED, Claim, planned_claims, read_declared, sentence, underpowered, write_declared
from hippo_core.results.records import run_folder


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
