"""Controls: what stands in the place of what a method retrieved. Each wraps any method, which runs as ever before it.

empty      the same passages, none of them seen by the model: the answers must be those without any
shuffled   what passages of another world say, in the places of those that were retrieved
oracle     the gold passages: the ceiling
random     passages that are not gold, as many as the method shows (`k`; where it has none, as many as there are gold ones): the floor

What a method said of its confidence goes with what it retrieved: empty, oracle and random drop it, and the model decides.

A control reads the labels of an item; a method never does.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from hippo_core.files import LabError
from hippo_core.methods.base import Method, Retrieved, in_order
from hippo_core.store.trace import Trace
from hippo_core.suites.types import Item

CHOOSING = ("oracle", "random")  # of these, controls that choose among all passages, whatever was retrieved


def controlled(method: Method, item: Item, retrieved: Retrieved, own: Sequence[Trace], others: Sequence[Trace]) -> Retrieved:
    """What is shown under the method's control.

    Args:
        own: the passages of the item's world, of which those count that were taught for it.
        others: those of another world, for `shuffled`. LabError where there is none.
    """
    control = method.settings.control
    if control == "empty":
        return replace(retrieved, confidence=None)
    if control == "oracle":
        gold = _gold(item, own)
        return retrieved.with_shown(gold, None)
    if control == "random":
        return retrieved.with_shown(_random(method, item, own), None)
    if control == "shuffled":
        if not others or others[0].world == item.world:
            raise LabError("control shuffled needs a second world to take the contents from; give more questions (n)")
        return retrieved.with_shown(in_order(others[trace.id % len(others)] for trace in retrieved.shown), retrieved.confidence)
    return retrieved


def _taught(item: Item, own: Sequence[Trace]) -> list[Trace]:
    """Those of what was taught for the item; what several memories hold, as the first of them does."""
    taught, first = set(item.taught), dict[str, str]()
    return [trace for trace in own if trace.source in taught and first.setdefault(trace.source, trace.memory) == trace.memory]


def _gold(item: Item, own: Sequence[Trace]) -> tuple[Trace, ...]:
    """The gold passages; of one that a memory has added to another telling of the same, the first that tells it."""
    taught = _taught(item, own)
    first: dict[str, Trace] = {trace.source: trace for trace in taught if trace.source in item.gold_facts}
    for trace in taught:
        if (gold := item.retold.get(trace.source)) in item.gold_facts:
            first.setdefault(gold, trace)
    return in_order(first.values())


def _random(method: Method, item: Item, own: Sequence[Trace]) -> tuple[Trace, ...]:
    wrong = [trace for trace in _taught(item, own) if trace.source not in item.gold_facts and trace.source not in item.retold]
    count = getattr(method.settings, "k", None) or max(1, len(item.gold_facts))
    drawn = Random(f"random/{item.world}/{item.id}").sample(range(len(wrong)), min(count, len(wrong)))
    return in_order(wrong[number] for number in drawn)
