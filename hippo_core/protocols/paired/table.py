"""The table of a paired run: a row an item, a condition and a repeat; and what it comes to."""

from typing import Any

from hippo_core.protocols.paired.conditions import COLUMNS, SCORES
from hippo_core.results.frames import Frame
from hippo_core.results.records.table import Table, mean_by_cluster


def metrics(cell: Any, rows: Frame, seconds: float) -> dict[str, Any]:
    """Each condition's success and scores with intervals by world, repeats averaged, and the memory against each other condition."""
    from hippo_core.protocols.paired.comparison import by_item, pairs_of

    by_condition = {str(name): by_item(own) for name, own in rows.groupby("condition", sort=False)}
    return {
        "metrics": {name: mean_by_cluster(own, "success", "world") for name, own in by_condition.items()},
        "scores": {name: {score: mean_by_cluster(own, score, "world") for score in SCORES} for name, own in by_condition.items()},
        "pairs": pairs_of(rows),
        "runtime_s": round(seconds, 3),
    }


ROWS = Table(
    columns=COLUMNS,
    unit="entry",
    cluster="world",
    measures=("success", "recall_at_k", "mrr", "ndcg", "assertion_recall"),
    step="test",
    text=("entry", "item", "world", "type", "tags", "condition", "question", "answer", "read", "ranking", "error"),
    whole=("repeat", "place", "tokens_in", "tokens_out", "tokens_cached"),
    metrics=metrics,
    scraps=("metrics", "pairs"),
)
