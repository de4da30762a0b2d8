"""The table of conversations: a row an answer, of a question under a technique and a budget; and what it comes to."""

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hippo_core.results.frames import Frame
from hippo_core.results.records.table import Table

if TYPE_CHECKING:
    import pandas as pd

SCORES = ("em", "contains", "overlap", "entity_recall", "entity_precision", "stale", "presence", "shown", "hit_1", "recall_5", "recall_10")
COSTS = ("tokens", "ms", "index_ms")
GROUPS = ("position", "salience", "kind", "category", "key")
COLUMNS = ("entry", "dialogue", "question", "technique", "budget", *GROUPS, "turns", "distance", *SCORES, *COSTS, "cut")


def table_of(scored: list[dict[str, Any]]) -> Frame:
    """The rows of the table from the scored rows."""
    import pandas as pd

    rows = pd.DataFrame(scored)
    question = rows["dialogue"] + "/" + rows["question"]
    rows = rows.assign(question=question, entry=question + "/" + rows["technique"] + "/" + rows["budget"])
    rows = rows if "cut" in rows else rows.assign(cut=math.nan)  # scored before cut answers were counted
    numbers = [*SCORES, *COSTS, "distance", "cut"]
    return rows.assign(**rows[numbers].astype(float))[list(COLUMNS)]


def by_technique(rows: Frame) -> list[dict[str, Any]]:
    """Of each technique and budget the mean of each score with its interval by dialogue, what it costs, and how many answers failed or were
    cut by the limit of new tokens."""
    lines = []
    for (technique, budget), own in rows.groupby(["technique", "budget"], sort=False):
        line: dict[str, Any] = {"technique": technique, "budget": budget}
        line |= {name: mean_score(own, name) for name in SCORES if name in own}  # records of before lack some
        line |= {name: _mean(own[name]) for name in COSTS}
        line["failed"] = int(own["em"].isna().sum())  # every other answer has an exact match, 0 or 1
        line["cut"] = int((own["cut"] > 0).sum()) if "cut" in own else 0  # records of before do not say
        lines.append(line)
    return lines


def mean_score(rows: Frame, name: str) -> dict[str, Any]:
    """The mean of a score from 0 to 1 with its 95% interval by dialogue within these bounds; None is what was not measured."""
    from hippo_core.results.statistics.interval import cluster_interval

    interval = cluster_interval(rows[name].to_numpy(dtype=float), rows["dialogue"].to_numpy())
    return {key: None if math.isnan(value) else value for key, value in asdict(interval).items()}


def _mean(values: "pd.Series") -> float | None:
    mean = float(values.mean())
    return None if mean != mean else mean


def metrics(cell: Any, rows: Frame, seconds: float) -> dict[str, Any]:
    """The means of each technique and budget."""
    em = {f"{line['technique']}, {line['budget']}": line["em"] for line in by_technique(rows)}
    return {"metrics": em, "techniques": by_technique(rows), "runtime_s": round(seconds, 3)}


ROWS = Table(
    columns=COLUMNS,
    unit="entry",
    cluster="dialogue",
    measures=("em", "entity_recall", "presence", "tokens"),
    step="answer",
    text=("entry", "dialogue", "question", "technique", "budget", *GROUPS),
    whole=("turns",),
    metrics=metrics,
    scraps=("metrics", "techniques"),
)
