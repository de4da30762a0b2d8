"""The claims of superiority that a plan can feed, and the least p that each could reach there: known before anything runs.

A test by signs of W worlds gives no p below 2^(1 - W), and Holm's correction, which grows with every p of the family, none below its value
where each claim of the family has its least. So a claim whose least is above alpha cannot be shown by this plan, whatever the data;
nor one of fewer worlds than an interval takes.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from hippo_core.files import read_object, write_json
from hippo_core.results.criteria.criterion import Criteria, Criterion
from hippo_core.results.criteria.evidence import NotJudged, Pool, check_size, common, options_of
from hippo_core.results.formatting import listing
from hippo_core.results.frames import Frame
from hippo_core.results.statistics.interval import LEAST_WORLDS
from hippo_core.results.statistics.paired import EXACT_WORLDS, holm, least_p
from hippo_core.spoken import number_of

DECLARED = "power.json"  # in the folder of a run: the claims that were said before it to rest on too few worlds


@dataclass(frozen=True)
class Claim:
    """A claim of superiority of one model: the worlds that it rests on at most, the claims of its family, its least p after Holm's
    correction over these, and the cells of its conditions."""

    model: str
    id: str
    family: str
    n_worlds: int
    n_claims: int
    least_p: float
    cells: tuple[str, ...]

    def __str__(self) -> str:
        least = f"{self.n_worlds} worlds allow no p below {self.least_p:.2g}"
        return f"{least} after Holm's correction over {number_of(self.n_claims, 'claim')}"


def planned_claims(criteria: Criteria, plan: Frame) -> list[Claim]:
    """The claims that a plan's cells could feed, model by model. `plan` has a row a cell of the test, with the columns that `judge` needs
    and `n_worlds`. Claims about some of the items only are left out: how many there will be is not known."""
    claims = []
    for model in sorted(plan["model"].unique()):
        pool = Pool(plan[plan["model"] == model])
        sizes = [(criterion, *size) for criterion in criteria.single() if (size := _size(criteria, criterion, pool))]
        for family in dict.fromkeys(criterion.family for criterion, *_ in sizes):
            mine = [size for size in sizes if size[0].family == family]
            least = holm([least_p(n_worlds) for _, n_worlds, _ in mine])
            claims += [
                Claim(str(model), criterion.id, family, n_worlds, len(mine), p, cells)
                for (criterion, n_worlds, cells), p in zip(mine, least, strict=True)
            ]
    return claims


def _size(criteria: Criteria, criterion: Criterion, pool: Pool) -> tuple[int, tuple[str, ...]] | None:
    """The worlds that a claim rests on at most, and the cells of all its options; None where it will not be judged."""
    if not criterion.superiority or any(criterion.where.model_dump().values()):
        return None
    try:
        options = [
            [pool.of(criterion, option) for option in options_of(criteria, criterion, condition, pool)]
            for condition in criterion.conditions
        ]
        shared: list[Frame] = [common(tables)[0] for tables in product(*options)]
        n_worlds = max(int(cells["n_worlds"].sum()) for cells in shared)
        check_size(criteria, criterion, max(int(cells["n"].sum()) for cells in shared), n_worlds, least=2)
    except NotJudged:
        return None
    return n_worlds, tuple(sorted({str(cell) for tables in options for table in tables for cell in table["cell"]}))


def underpowered(criteria: Criteria, claims: Sequence[Claim]) -> list[Claim]:
    """Those that cannot be shown: no p is small enough, or there is no interval."""
    return [claim for claim in claims if claim.least_p > criteria.alpha or claim.n_worlds < LEAST_WORLDS]


def sentence(criteria: Criteria, claims: Sequence[Claim]) -> str:
    """Which claims cannot be shown, and the worlds that it would take for the largest of their families; empty where there are none."""
    if not claims:
        return ""
    several = len({claim.model for claim in claims}) > 1
    names = [f"{claim.id} ({claim.model})" if several else claim.id for claim in claims]
    most = max(claim.n_claims for claim in claims)
    enough = next((worlds for worlds in range(LEAST_WORLDS, EXACT_WORLDS + 2) if most * least_p(worlds) <= criteria.alpha), None)
    needed = f"at least {enough} worlds would be needed" if enough else f"no number of worlds is enough for {number_of(most, 'claim')}"
    return f"{number_of(len(names), 'claim')} cannot be shown with so few worlds, whatever the data: {listing(names)}; {needed}"


def write_declared(path: Path, claims: Sequence[Claim]) -> None:
    """Write what cannot be shown, for the report to read."""
    write_json(path, {"schema_version": 1, "cannot_be_shown": [asdict(claim) for claim in claims]})


def read_declared(path: Path) -> list[Claim]:
    """What was declared before a run; empty where nothing was."""
    claims = read_object(path)["cannot_be_shown"] if path.is_file() else []
    return [Claim(**{**claim, "cells": tuple(claim["cells"])}) for claim in claims]
