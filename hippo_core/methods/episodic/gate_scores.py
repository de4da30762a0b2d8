"""How good a gate was, known afterwards: its decisions against which statements were asked about.

The labels are hidden from the gate itself; only these functions see both.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hippo_core.files import LabError

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True, slots=True)
class GateScores:
    """Over n statements, of which the share `base_rate` was asked about and `write_rate` written.

    `precision`: of those written, the share asked about; `recall`: of those asked about, the share written; `average_precision`: the
    area under the curve of both over all thresholds on S, `base_rate` for a gate that knows nothing. NaN where there is none of what is
    divided by. `mean`, `sd` and `quantiles` (least, 5, 25, 50, 75, 95 %, greatest) are those of S.
    """

    n: int
    base_rate: float
    write_rate: float
    precision: float
    recall: float
    average_precision: float
    mean: float
    sd: float
    quantiles: tuple[float, ...]


def gate_scores(scores: Sequence[float], written: Sequence[bool], asked: Sequence[bool]) -> GateScores:
    """Judge decisions: S, whether it was written (a duplicate counts as written), and the hidden label of each statement."""
    if not len(scores) == len(written) == len(asked):
        raise LabError(f"a gate is judged statement by statement, got {len(scores)} S, {len(written)} decisions, {len(asked)} labels")
    values, is_written, label = np.asarray(scores, dtype=np.float64), np.asarray(written, dtype=bool), np.asarray(asked, dtype=bool)
    if not np.isfinite(values).all():
        raise LabError("S of a statement is not finite; a gate refuses such terms, so these are no gate's scores")
    return GateScores(
        n=len(values),
        base_rate=_share(label),
        write_rate=_share(is_written),
        precision=_share(label[is_written]),
        recall=_share(is_written[label]),
        average_precision=average_precision(values, label),
        mean=float(values.mean()) if len(values) else math.nan,
        sd=float(values.std()) if len(values) else math.nan,
        quantiles=tuple(np.quantile(values, QUANTILES).tolist()) if len(values) else (math.nan,) * len(QUANTILES),
    )


def average_precision(scores: Sequence[float] | np.ndarray, labels: Sequence[bool] | np.ndarray) -> float:
    """Sum over thresholds t of (R(t) - R(t + 1)) * P(t), one threshold for each distinct score: equal scores are taken together.

    R and P are recall and precision of "score >= t", t + 1 the next higher threshold; nothing is interpolated (Davis & Goadrich 2006 on
    why not to). NaN without a positive label.
    """
    values, positive = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if not positive.sum():
        return math.nan
    order = np.argsort(-values, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(values[order])), len(values) - 1)  # the last of each run of equal scores
    hits = np.cumsum(positive[order])[ends]
    return float((np.diff(hits, prepend=0.0) * hits / (ends + 1)).sum() / positive.sum())


def _share(flags: np.ndarray) -> float:
    return float(flags.mean()) if len(flags) else math.nan
