"""The table of tasks in sequence: a row a phase, a task and an initialisation. R[i, j] is the accuracy on task j after phase i."""

import math
from typing import Any

import numpy as np

from hippo_core.results.forgetting import diagonal, forward, from_initial, from_max, mean
from hippo_core.results.frames import Frame
from hippo_core.results.records.table import Table, mean_by_cluster

LEVELS = (0.5, 0.2, 0.1)  # nats a token of the training items at which cells are compared
COLUMNS = (
    *("entry", "init", "phase", "task", "own", "loss", "accuracy"),
    *("steps_to_99", "seconds_to_99", "taken", "seconds"),
    *(f"{measure}_at_{level:g}" for level in LEVELS for measure in ("loss", "accuracy")),
)
MEASURED = (
    *("average_accuracy", "just_learnt", "kept", "forgetting_from_max", "forgetting_from_initial", "backward_transfer", "forward_transfer"),
)


def matrix(rows: Frame, measure: str = "accuracy") -> Frame:
    """R[i, j]: the mean of a measure on each task (columns, in order of learning) after each phase (index; 0: before the first)."""
    order = rows.sort_values("own")["task"].unique()
    return rows.pivot_table(index="phase", columns="task", values=measure, aggfunc="mean")[list(order)]


def learnt(rows: Frame) -> Frame:
    """Whether each initialisation (index) had learnt each task (columns) in the task's own phase: 99% of the validation answers."""
    own = rows[rows["phase"] == rows["own"]].sort_values("own")
    order = list(dict.fromkeys(own["task"]))
    return own.assign(learnt=own["steps_to_99"].notna()).pivot(index="init", columns="task", values="learnt")[order]


def summaries(rows: Frame) -> Frame:
    """What the matrix of each initialisation (index) comes to (results/forgetting.py). All but the average accuracy and forward transfer
    count the tasks alone that were learnt to 99% in their own phase; `kept`, the sum of R[G, j] as a share of that of R[j, j], and both
    forgettings those of them before the last phase."""
    import pandas as pd

    known = learnt(rows)
    return pd.DataFrame({init: summary(matrix(own).to_numpy(), known.loc[init].to_numpy(bool)) for init, own in rows.groupby("init")}).T


def summary(values: np.ndarray, known: np.ndarray) -> dict[str, float]:
    """`summaries` of one matrix [G + 1, G], and of which of its tasks were learnt."""
    earlier = known & (np.arange(len(known)) < len(known) - 1)
    own, last = diagonal(values), values[-1]
    initial = mean(from_initial(values), earlier)
    return {
        "average_accuracy": mean(last),
        "just_learnt": mean(own, known),
        "kept": float(last[earlier].sum() / own[earlier].sum()) if earlier.any() else math.nan,
        "forgetting_from_max": mean(from_max(values), earlier),
        "forgetting_from_initial": initial,
        "backward_transfer": -initial,
        "forward_transfer": mean(forward(values)),
    }


def matched(rows: Frame) -> Frame:
    """What was answered when a phase's training loss first fell to each level, a row an initialisation, a task and a level: `loss` and
    `accuracy` on the task's validation items, and `earlier`, the mean accuracy on those of the tasks that had been learnt to 99% before.
    NaN where training did not come so far. Without rows where the cells are older than these columns."""
    import pandas as pd

    known, parts = learnt(rows).stack().rename("known").reset_index(), []
    rows = rows.merge(known, on=["init", "task"])
    for level in LEVELS:
        loss, accuracy = f"loss_at_{level:g}", f"accuracy_at_{level:g}"
        if loss not in rows:
            continue
        earlier = rows[(rows["phase"] > rows["own"]) & rows["known"]].groupby(["init", "phase"])[accuracy].mean().rename("earlier")
        own = rows[rows["phase"] == rows["own"]].join(earlier, on=["init", "phase"])
        mine = own[["init", "task", loss, accuracy, "earlier"]].rename(columns={loss: "loss", accuracy: "accuracy"})
        parts.append(mine.assign(level=level))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["init", "task", "loss", "accuracy", "earlier", "level"])


def at_levels(rows: Frame) -> list[dict[str, Any]]:
    """`matched` of each task and level: how many initialisations came so far, and their means."""
    lines = []
    for (level, task), own in matched(rows).groupby(["level", "task"], sort=False):
        means = {name: None if own[name].isna().all() else round(float(own[name].mean()), 6) for name in ("loss", "accuracy", "earlier")}
        lines.append({"training_loss": level, "task": str(task), "reached": int(own["loss"].notna().sum()), "of": len(own), **means})
    return lines


def spent(rows: Frame) -> list[dict[str, Any]]:
    """Of each task in its own phase: how many initialisations learnt it, and the median and range of steps and seconds until then. Seconds
    are of all initialisations together, which learn in step."""
    lines = []
    for task, own in rows[rows["phase"] == rows["own"]].sort_values("own").groupby("task", sort=False):
        line: dict[str, Any] = {"task": str(task), "learnt": int(own["steps_to_99"].notna().sum()), "of": len(own)}
        for name in ("steps_to_99", "seconds_to_99"):
            values = own[name].dropna().tolist()
            line[name] = [float(np.median(values)), min(values), max(values)] if values else None
        lines.append(line)
    return lines


def metrics(cell: Any, rows: Frame, seconds: float) -> dict[str, Any]:
    """The matrix of accuracy and of loss, what it comes to with intervals by initialisation, its cells at equal training loss, and what
    learning took."""
    by_init = summaries(rows).rename_axis("init").reset_index()
    return {
        "metrics": {name: mean_by_cluster(by_init, name, "init") for name in MEASURED},
        "matrix": {name: matrix(rows, name).round(6).to_numpy().tolist() for name in ("accuracy", "loss")},
        "at_equal_training_loss": at_levels(rows),
        "spent": spent(rows),
        "runtime_s": round(seconds, 3),
    }


ROWS = Table(
    columns=COLUMNS,
    unit="entry",
    cluster="init",
    measures=("accuracy", "loss"),
    step="forget",
    text=("entry", "init", "task"),
    whole=("phase", "own", "taken"),
    metrics=metrics,
    scraps=("metrics", "matrix", "at_equal_training_loss", "spent"),
)
