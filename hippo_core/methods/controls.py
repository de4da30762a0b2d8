"""Controls: a method opens other traces than its own, or what it retrieves is hidden. It computes on them as always: its search, its paths,
its planner, and the words and the question that it substitutes.

empty      what it retrieves is run and hidden, and the question is asked unchanged: the answers must be those of the model alone
shuffled   it opens the traces of another world; nothing that it computes may be true of the right one
oracle     it opens the gold traces alone: the ceiling
random     it opens traces that are not gold, as many as it shows (`k`; where it has none, as many as there are gold ones): the floor

What oracle and random choose is all shown where the method adds no words of its own; then, and with empty, the model decides. A control
reads the labels of an item; a method never does.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple

from hippo_core.errors import LabError
from hippo_core.methods.base import Method, Query, Retrieved, in_order
from hippo_core.store.trace import Trace
from hippo_core.suites.types import Item

CHOOSING = ("oracle", "random")  # of these, controls that choose for each question what is opened


class Controlled(NamedTuple):
    """What a method retrieved, and the traces that it had opened for that."""

    retrieved: Retrieved
    opened: Sequence[Trace]


def open_controlled(
    method: Method, own: Sequence[Trace], others: Sequence[Trace], questions: Sequence[str] = ()
) -> Callable[[Item, Query], Controlled]:
    """A function that retrieves for an item under the method's control. `own`: the traces of a world, in order of telling; `others`: those
    of another one, for `shuffled`, LabError where there is none; `questions`: those that will be asked."""
    control = method.settings.control
    if control in CHOOSING:
        return lambda item, query: _of_chosen(method, _gold(item, own) if control == "oracle" else _random(method, item, own), query)
    if control == "shuffled":
        if not others or (own and others[0].world == own[0].world):
            raise LabError("control shuffled needs a second world to take the contents from; give more questions (n)")
        retrieve, there = method.open(others, questions), tuple(dict.fromkeys(trace.source for trace in others))
        return lambda item, query: Controlled(retrieve(_asked_there(query, there)), others)
    retrieve = method.open(own, questions)
    if control == "empty":
        return lambda item, query: Controlled(replace(retrieve(query), confidence=None, rephrased=""), own)
    return lambda item, query: Controlled(retrieve(query), own)


def _asked_there(query: Query, sources: tuple[str, ...]) -> Query:
    """The question in another world: as much is taught for it, and the window is as long."""
    taught = sources[: len(query.taught)]
    return replace(query, taught=taught, window=taught[max(0, len(taught) - len(query.window)) :])


def _of_chosen(method: Method, chosen: Sequence[Trace], query: Query) -> Controlled:
    there = {trace.source for trace in chosen}
    window = tuple(source for source in query.window if source in there)
    asked = replace(query, taught=tuple(dict.fromkeys(trace.source for trace in in_order(chosen))), window=window)
    retrieved = method.open(chosen, [query.text])(asked)
    if not (retrieved.restates or retrieved.rephrased or retrieved.together):
        first: dict[str, Trace] = {}
        for trace in chosen:
            first.setdefault(trace.source, trace)  # of several memories, that of the first
        retrieved = replace(retrieved, shown=in_order(first.values()), confidence=None)
    return Controlled(retrieved, chosen)


def _taught(item: Item, own: Sequence[Trace]) -> list[Trace]:
    """The traces that were taught for the item."""
    return [trace for trace in own if trace.source in item.taught]


def _gold(item: Item, own: Sequence[Trace]) -> list[Trace]:
    """The gold traces of each memory; where a memory has merged one into an earlier repetition, that one."""
    first: dict[tuple[str, str], Trace] = {}
    taught = _taught(item, own)
    for trace in taught:
        if trace.source in item.gold_facts:
            first.setdefault((trace.memory, trace.source), trace)
    for trace in taught:
        if (gold := item.retold.get(trace.source)) in item.gold_facts:
            first.setdefault((trace.memory, gold), trace)
    return [trace for trace in own if any(trace is chosen for chosen in first.values())]


def _random(method: Method, item: Item, own: Sequence[Trace]) -> list[Trace]:
    """Wrong traces, each from all memories that have it."""
    wrong: dict[str, list[Trace]] = {}
    for trace in _taught(item, own):
        if trace.source not in item.gold_facts and trace.source not in item.retold:
            wrong.setdefault(trace.source, []).append(trace)
    count = getattr(method.settings, "k", None) or max(1, len(item.gold_facts))
    drawn = sorted(Random(f"random/{item.world}/{item.id}").sample(sorted(wrong), min(count, len(wrong))))
    return [trace for trace in own if trace.source in drawn and trace in wrong[trace.source]]
