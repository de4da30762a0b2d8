"""The replay queue: traces in order of arrival, each with its diversity from those before it. The oldest are dropped when it is full."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from hippo_core.errors import LabError
from hippo_core.retrieval.sparse_key import SparseKey, cosines
from hippo_core.store.trace import Trace

CAPACITY = 1024
TOGETHER = 256  # arrivals compared at a time; this bounds the table of cosines


@dataclass(frozen=True, slots=True)
class Arrival:
    """A trace that arrives at the queue.

    Args:
        trace: its id.
        key: its sparse key.
        S: its S or its salience. Only the order and the spacing of the values matter.
        step: when it arrives, in steps.
    """

    trace: int
    key: SparseKey
    S: float
    step: int


@dataclass(frozen=True, slots=True)
class Queued(Arrival):
    """A trace in the queue.

    Args:
        diversity: the mean of 1 - max(0, cosine) to the keys in the queue when it arrived; 1 if the queue was empty.
    """

    diversity: float


@dataclass(frozen=True, slots=True)
class Queue:
    """At most `capacity` items in order of arrival. `dropped` counts the items that were removed to make room."""

    capacity: int = CAPACITY
    items: tuple[Queued, ...] = ()
    dropped: int = 0

    def __post_init__(self) -> None:
        if self.capacity < 1:
            raise LabError(f"a replay queue holds at least 1 trace, got a capacity of {self.capacity}")


def arrivals_of(traces: Sequence[Trace]) -> list[Arrival]:
    """Stored traces as arrivals: one step apart, in order of their ids, with their salience as S."""
    ordered = sorted(traces, key=lambda trace: trace.id)
    return [Arrival(trace.id, SparseKey.union(trace.payload.keys), trace.salience, step) for step, trace in enumerate(ordered)]


def push(queue: Queue, arrivals: Sequence[Arrival]) -> Queue:
    """The queue after these arrivals were added one by one.

    Raises:
        LabError: a trace is already queued, its S is not finite, or its step is before that of the trace in front of it.
    """
    _check_arrivals(queue, arrivals)
    keys = [item.key for item in (*queue.items, *arrivals)]
    items = list(queue.items)
    for start in range(0, len(arrivals), TOGETHER):
        batch = arrivals[start : start + TOGETHER]
        held = len(queue.items) + start
        first = max(0, held - queue.capacity)
        unlike = 1 - np.maximum(cosines(keys[held : held + len(batch)], keys[first : held + len(batch)]), 0)
        for row, arrival in enumerate(batch):
            among = unlike[row, max(0, held + row - queue.capacity) - first : held + row - first]
            items.append(Queued(arrival.trace, arrival.key, arrival.S, arrival.step, float(among.mean()) if len(among) else 1.0))
    over = max(0, len(items) - queue.capacity)
    return replace(queue, items=tuple(items[over:]), dropped=queue.dropped + over)


def _check_arrivals(queue: Queue, arrivals: Sequence[Arrival]) -> None:
    ids = [item.trace for item in (*queue.items, *arrivals)]
    if len(set(ids)) < len(ids):
        raise LabError("a trace came to the replay queue twice; make a new queue of the store when its traces have changed")
    if not np.isfinite([arrival.S for arrival in arrivals]).all():
        raise LabError("S of a trace for the replay queue is not finite; mend what measures it")
    steps = [item.step for item in (*queue.items[-1:], *arrivals)]
    if any(later < earlier for earlier, later in pairwise(steps)):
        raise LabError("a trace came to the replay queue before the one in front of it; push them in the order of their steps")
