"""The uplift test: did consolidation help, judged so that a command's exit status says it."""

import math
from typing import Literal, NamedTuple

from hippo_core.errors import LabError
from hippo_core.protocols.consolidation.table import ROWS
from hippo_core.results.formatting import span
from hippo_core.results.frames import Frame
from hippo_core.results.records import read_table, records_with, run_folder
from hippo_core.results.statistics.paired import Comparison, compare

Mode = Literal["fixed", "ci"]
NAME_COLUMNS = ("model", "suite", "n", "seed", "way", "steps", "cycles", "policy", "wordings")


class Uplift(NamedTuple):
    """The uplift of a cell, EM with the memory off after its last sleep less before, and whether it passes."""

    cell: str
    change: Comparison
    passed: bool

    def __str__(self) -> str:
        change = self.change
        bounds = "" if math.isnan(change.low) else f" ({span(change.low, change.high)})"
        return f"{'pass' if self.passed else 'FAIL'}  {change.difference:+.3f}{bounds}, {change.n} questions  {self.cell}"


def uplifts(run_id: str, mode: Mode = "ci", min_uplift: float = 0.05, alpha: float = 0.05) -> list[Uplift]:
    """The uplift of every cell of a run that slept.

    Args:
        mode: fixed: the mean is at least `min_uplift`; ci: and the lower end of its interval is above 0.
        alpha: one less the confidence of the interval.

    Raises:
        LabError: the run has no consolidation, or a number is out of range.
    """
    if not 0 < alpha < 1:
        raise LabError(f"alpha lies between 0 and 1, got {alpha}")
    run = run_folder(run_id)
    if not run.is_dir() or not records_with(run, True, "consolidation", ROWS.step):
        raise LabError(f"run {run_id} has no consolidation; run one: make grid GRID=consolidation")
    rows: Frame = read_table(run, "consolidation", ROWS.step, dry_run=True)
    off = rows[(rows["probe"] == "off") & rows["replay"].astype(bool)]
    return [_uplift(cell, mode, min_uplift, alpha) for _, cell in off.groupby("record", sort=True)]


def _uplift(cell: Frame, mode: Mode, min_uplift: float, alpha: float) -> Uplift:
    last = list(dict.fromkeys(cell["stage"]))[-1]
    change = compare(cell[cell["stage"] == last], cell[cell["stage"] == "pre"], key="question_id", confidence=1 - alpha)
    passed = change.difference >= min_uplift and (mode == "fixed" or change.low > 0)
    name = " ".join(f"{column}={cell[column].iloc[0]}" for column in NAME_COLUMNS)
    return Uplift(name, change, bool(passed))
