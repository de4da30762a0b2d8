"""What a run comes to: each condition's success, with intervals by world, and its scores."""

import math
from typing import Any

import pandas as pd

from hippo_core.protocols.paired.comparison import items_by_condition, tokens_per_success
from hippo_core.protocols.paired.conditions import AGENT_SCORES
from hippo_core.results.formatting import NONE, share, span
from hippo_core.results.frames import Frame
from hippo_core.results.records.table import mean_by_cluster

SHOWN = ("recall_at_k", "mrr", "ndcg", "assertion_recall", "topic_recall", "forbidden_hits", "citation_precision")


def by_condition(rows: Frame) -> pd.DataFrame:
    """A line a condition, in the order of conditions.py: success with its 95% interval by world, by type of item, and what it cost; repeats
    are averaged first."""
    lines = []
    for name, own in items_by_condition(rows).items():
        success = mean_by_cluster(own, "success", "world")
        line: dict[str, Any] = {"condition": name, "success": share(success["mean"], success["low"], success["high"])}
        line |= {"95% interval": span(success["low"], success["high"]), "items": str(success["n"])}
        line |= {kind: share(part["success"].mean()) for kind, part in own.groupby("type", sort=True)}
        tokens = tokens_per_success(rows[rows["condition"] == name])
        line["tokens a success"] = f"{tokens:,.0f}" if 0 < tokens < math.inf else NONE
        lines.append(line)
    return pd.DataFrame(lines)


def scores_by_condition(rows: Frame) -> pd.DataFrame:
    """A line a condition, in the same order: each score that any of them has, a mean over the items that have it."""
    scores = [score for score in (*SHOWN, *AGENT_SCORES) if score in rows and rows[score].notna().any()]
    lines = [{"condition": name, **{score: share(own[score].mean()) for score in scores}} for name, own in items_by_condition(rows).items()]
    return pd.DataFrame(lines)
