"""What a model answers with the right trace among others, way by way: as text, as keys and values, through the adapter.

Validation worlds of a seed that no experiment uses; the gold facts are given, so this is reading and not recall.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pandas as pd

from hippo_core.delivery.types import Delivery, Question
from hippo_core.results.scores import score_item
from hippo_core.results.statistics.interval import cluster_interval
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds
from hippo_core.suites.types import Item, World
from recipes.skills import SEED

TRACES = (1, 3, 5)


def compare_deliveries(
    deliveries: Mapping[str, Delivery], n: int = 200, traces: Sequence[int] = TRACES, suite: str = "episodic"
) -> pd.DataFrame:
    """One row a way and number of traces, and one with all masked: items, worlds, EM with its 95 % interval, cost a question."""
    pairs = [(world, item) for world in worlds(suite, "default", n, SEED, "val") for item in world.items]
    rows = [_row(name, delivery, suite, pairs, count, masked=False) for count in traces for name, delivery in deliveries.items()]
    return pd.DataFrame([*rows, *(_row(name, delivery, suite, pairs, traces[-1], masked=True) for name, delivery in deliveries.items())])


def _row(name: str, delivery: Delivery, suite: str, pairs: Sequence[tuple[World, Item]], count: int, *, masked: bool) -> dict[str, Any]:
    budget = get_suite(suite).answer_budget
    answers = delivery.ask([question(world, item, count) for world, item in pairs], budget, masked=masked)
    marks = [score_item(get_suite(suite), *pair, answer.text)["score"] for pair, answer in zip(pairs, answers, strict=True)]
    interval = cluster_interval(marks, [world.id for world, _ in pairs])

    def mean(cost: str) -> float:
        return round(sum(getattr(answer, cost) for answer in answers) / len(answers), 1)

    return {
        "inject": name,
        "traces": count,
        "masked": masked,
        "n": len(pairs),
        "worlds": len({world.id for world, _ in pairs}),
        "em": sum(marks) / len(marks),
        "low": interval.low,
        "high": interval.high,
        "trace_tokens": mean("trace_tokens"),
        "prompt_tokens": mean("prompt_tokens"),
        "computed_tokens": mean("computed_tokens"),
        "ms": mean("latency_ms"),
    }


def question(world: World, item: Item, count: int) -> Question:
    """An item with its gold facts among distractors, `count` in all where there are so many, in order of telling."""
    others = [fact for fact in item.taught if fact not in item.gold_facts]
    extra = min(len(others), max(0, count - len(item.gold_facts)))
    shown = {*item.gold_facts, *Random(f"{item.id}/{count}").sample(others, extra)}
    return Question.of_texts(item.question, tuple(fact.text for fact in world.facts if fact.id in shown))
