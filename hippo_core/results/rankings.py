"""What a ranking of passages is worth for a question: gold passages among the first, and passages that hold an answer."""

import math
from collections.abc import Sequence

from hippo_core.results.scores import normalise
from hippo_core.store.trace import Trace
from hippo_core.suites.types import Item

RECALL_AT, ANSWER_AT, ALL_AT = (1, 2, 3, 5, 10, 20), (1, 5), 5
RANKING_COLUMNS = (*(f"recall_{k}" for k in RECALL_AT), f"all_gold_{ALL_AT}", *(f"answer_recall_{k}" for k in ANSWER_AT))


def score_ranking(ranking: Sequence[Trace] | None, item: Item) -> dict[str, float]:
    """`recall_k`: the share of the gold facts among the k best; `all_gold_k`: whether all of them are; `answer_recall_k`: whether an
    accepted answer stands in one of the k best, word for word once both are normalised. NaN without a ranking, or without gold facts. A
    fact that tells a gold one again is as good as that."""
    if ranking is None or not item.gold_facts:
        return dict.fromkeys(RANKING_COLUMNS, math.nan)
    gold, sources = set(item.gold_facts), [item.retold.get(trace.source, trace.source) for trace in ranking[: max(RECALL_AT)]]
    recall = {f"recall_{k}": len(gold & set(sources[:k])) / len(gold) for k in RECALL_AT}
    all_gold = {f"all_gold_{ALL_AT}": float(gold <= set(sources[:ALL_AT]))}
    return recall | all_gold | {f"answer_recall_{k}": answer_recall(ranking, item.answers, k) for k in ANSWER_AT}


def answer_recall(ranking: Sequence[Trace], answers: Sequence[str], k: int) -> float:
    """1 where one of the k best holds an accepted answer, else 0."""
    wanted = [f" {normalise(answer)} " for answer in answers if normalise(answer)]
    return float(any(answer in f" {normalise(trace.text)} " for trace in ranking[:k] for answer in wanted))
