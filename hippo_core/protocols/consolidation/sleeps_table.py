"""The table of sleeps in a row: a row a sleep, a group and a question. Its matrix R[i, j] is the accuracy on group j after sleep i."""

import math
from typing import Any

import numpy as np

from hippo_core.protocols.consolidation.table import OFF, ORACLE, SLEEPS_COLUMNS, change
from hippo_core.results import forgetting
from hippo_core.results.frames import Frame
from hippo_core.results.records.table import Table, mean_by_cluster

DAMAGE = {"in_context": "score", "text": "nats"}


def matrix(rows: Frame, measure: str = "score") -> Frame:
    """R[i, j]: the mean of a measure with the memory off on group j (columns, from 1) after sleep i (index; 0: before the first). NaN is
    what was not asked."""
    return rows[rows["probe"] == OFF].pivot_table(index="sleep", columns="group", values=measure, aggfunc="mean")


def stream(rows: Frame, measure: str = "score") -> dict[str, float | int | None]:
    """What a matrix R of G sleeps comes to; None is what was not measured, such as the end of sleeps that start from the base each.

    before, just_learnt, at_the_end: mean of R[0, j], of the diagonal R[j, j], and of R[G, j]: "average accuracy" (Lopez-Paz & Ranzato
        2017, arXiv 1706.08840, section 2).
    oracle: mean with the facts in the prompt, before the first sleep.
    forgetting_from_max, forgetting_from_initial: means over j < G (results/forgetting.py).
    diagonal_kept: at_the_end as a share of just_learnt.
    first_group_kept: of the questions about group 1 that were right after sleep 1, the share right after sleep G; of a measure between 0
        and 1 the kept share of its sum.
    half_life: sleeps until at most half of what was just learnt is left (`half_life`); None where that is not reached.
    below_before: groups j with R[G, j] < R[0, j].
    """
    table = matrix(rows, measure)
    count = int(table.columns.max())
    values = table.reindex(index=range(count + 1), columns=range(1, count + 1)).to_numpy(dtype=float)
    learnt, last = forgetting.diagonal(values), values[count]
    in_a_row = bool(np.isfinite(last).all())
    oracle = rows[rows["probe"] == ORACLE][measure].mean()
    summary: dict[str, Any] = {"before": values[0].mean(), "just_learnt": learnt.mean(), "oracle": float(oracle)}
    if in_a_row:
        summary |= {
            "at_the_end": last.mean(),
            "forgetting_from_max": forgetting.mean(forgetting.from_max(values)[:-1]),
            "forgetting_from_initial": forgetting.mean(forgetting.from_initial(values)[:-1]),
            "diagonal_kept": last.mean() / learnt.mean() if learnt.mean() else math.nan,
            "first_group_kept": first_group_kept(rows, measure),
            "half_life": half_life(values),
            "below_before": int((last < values[0]).sum()),
        }
    return {name: None if value is None or not math.isfinite(value) else value for name, value in summary.items()}


def first_group_kept(rows: Frame, measure: str) -> float:
    """Of what was right about group 1 after sleep 1 the share that is right at the end; NaN where nothing was."""
    own = rows[(rows["probe"] == OFF) & (rows["group"] == 1)]
    after, end = (own[own["sleep"] == sleep].set_index("question_id")[measure] for sleep in (1, own["sleep"].max()))
    return float(np.minimum(after, end.reindex(after.index)).sum() / after.sum()) if after.sum() else math.nan


def half_life(values: np.ndarray) -> int | None:
    """The first age, in sleeps since a group was learnt, at which all groups that grew so old are answered at most half as well as they
    were just after they were learnt, together; None where none is. values: R [G + 1, G]."""
    count = values.shape[1]
    for age in range(1, count):
        groups = np.arange(count - age)
        learnt, left = values[groups + 1, groups].sum(), values[groups + 1 + age, groups].sum()
        if learnt and left <= learnt / 2:
            return age
    return None


def damage(rows: Frame) -> dict[str, Any]:
    """Of reading other facts, and of plain text, the paired difference between the end and the unchanged model."""
    differences = {}
    for probe, measure in DAMAGE.items():
        asked = rows[rows["probe"] == probe]
        differences[probe] = change(asked[asked["sleep"] > 0], asked[asked["sleep"] == 0], measure)
    return differences


def metrics(cell: Any, rows: Frame, seconds: float) -> dict[str, Any]:
    """The means of each sleep, the matrix and what it comes to, what was lost, and what the sleeps took."""
    off = rows[rows["probe"] == OFF]
    table = matrix(rows)
    values = table.astype(object).where(table.notna(), None)
    return {
        "metrics": {OFF: {str(sleep): mean_by_cluster(asked, "score", "world") for sleep, asked in off.groupby("sleep")}},
        "matrix": {str(sleep): row for sleep, row in zip(table.index, values.to_numpy().tolist(), strict=True)},
        "stream": {"score": stream(rows), "f1": stream(rows, "f1")},
        "damage": damage(rows),
        "sleep": cell.slept,
        "runtime_s": round(seconds, 3),
    }


ROWS = Table(
    columns=SLEEPS_COLUMNS,
    unit="question_id",
    cluster="world",
    measures=("score", "f1", "nats"),
    step="sleeps",
    text=("question_id", "world", "probe", "kind", "rung", "question", "answer", "pred", "read"),
    whole=("sleep", "group"),
    metrics=metrics,
    scraps=("metrics", "matrix", "stream", "damage", "sleep"),
)
