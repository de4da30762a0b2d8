"""Replay: a queue holds the traces that may be rehearsed, a policy draws from it, and a schedule says when each trace is due again.

uniform        random traces in random order
priority       the traces of highest priority, with similar traces kept apart
spaced         as priority, but only among the traces that are due
ca2            in order of arrival, chunk by chunk: a cycle takes up where the one before it ended
ca2_shuffled   its control: the same, in one random order that is kept over all cycles

Sleep replays sequences in the order in which they were lived (Skaggs & McNaughton 1996, Science 271), and region CA2 triggers the ripples
that do so (Oliva et al. 2016, Neuron 91). A call takes plain data and returns new ones, and every draw is seeded.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hippo_core.errors import LabError
from hippo_core.methods.episodic.settings import ReplaySettings
from hippo_core.retrieval.sparse_key import SparseKey, cosines
from hippo_core.store.trace import Trace

CAPACITY = 1024
BATCH = 256  # arrivals compared at a time; this bounds the table of cosines
STRENGTH, RECENCY, DIVERSITY = 0.5, 0.3, 0.2  # the shares of a priority
SIMILAR = 0.9  # keys with this cosine or more interfere
DIGITS = 9  # priorities are rounded to this many digits, so that ties go to the older trace on every machine
FIRST = 1  # cycles until a trace that was not recalled is due again


@dataclass(frozen=True, slots=True)
class Arrival:
    """A trace, by its id, that arrives at the queue at a step. `S`: its S or its salience; only order and spacing of these matter."""

    trace: int
    key: SparseKey
    S: float
    step: int


@dataclass(frozen=True, slots=True)
class Queued(Arrival):
    """A trace in the queue. `diversity`: the mean of 1 - max(0, cosine) to the keys that were there when it arrived; 1 if none was."""

    diversity: float


@dataclass(frozen=True, slots=True)
class Queue:
    """Items in order of arrival. `dropped` counts the items that were removed to make room."""

    items: tuple[Queued, ...]
    dropped: int


def arrivals_of(traces: Sequence[Trace]) -> list[Arrival]:
    """Stored traces as arrivals: one step apart, in order of their ids, with their salience as S."""
    ordered = sorted(traces, key=lambda trace: trace.id)
    return [Arrival(trace.id, SparseKey.union(trace.payload.keys), trace.salience, step) for step, trace in enumerate(ordered)]


def queue_of(arrivals: Sequence[Arrival], capacity: int = CAPACITY) -> Queue:
    """The queue of at most `capacity` items after these arrivals came one by one.

    Raises:
        LabError: there is no room, a trace comes twice, its S is not finite, or its step is before that of the trace in front of it.
    """
    if capacity < 1:
        raise LabError(f"a replay queue holds at least 1 trace, got a capacity of {capacity}")
    if len({arrival.trace for arrival in arrivals}) < len(arrivals):
        raise LabError("a trace came to the replay queue twice; make a new queue of the store when its traces have changed")
    if not np.isfinite([arrival.S for arrival in arrivals]).all():
        raise LabError("S of a trace for the replay queue is not finite; mend what measures it")
    if any(later.step < earlier.step for earlier, later in pairwise(arrivals)):
        raise LabError("a trace came to the replay queue before the one in front of it; push them in the order of their steps")
    keys, items = [arrival.key for arrival in arrivals], list[Queued]()
    for start in range(0, len(arrivals), BATCH):
        batch, first = arrivals[start : start + BATCH], max(0, start - capacity)
        unlike = 1 - np.maximum(cosines(keys[start : start + len(batch)], keys[first : start + len(batch)]), 0)
        for row, arrival in enumerate(batch):
            among = unlike[row, max(0, start + row - capacity) - first : start + row - first]
            items.append(Queued(arrival.trace, arrival.key, arrival.S, arrival.step, float(among.mean()) if len(among) else 1.0))
    over = max(0, len(items) - capacity)
    return Queue(tuple(items[over:]), over)


def priorities(items: Sequence[Queued], now: int) -> NDArray[np.float64]:
    """The priority of each queued trace [items]: the weighted sum of S scaled to 0 ... 1 (0 for all if all S are the same), recency and
    diversity. LabError where the present step `now` is before that of an item."""
    strength = np.array([item.S for item in items], dtype=np.float64)
    age = now - np.array([item.step for item in items], dtype=np.float64)
    if len(items) and age.min() < 0:
        raise LabError(f"step {now} lies before that of a queued trace ({now - int(age.min())}); give the step of the cycle")
    spread = np.ptp(strength) if len(items) else 0.0
    scaled = (strength - strength.min()) / spread if spread else np.zeros(len(items))
    diversity = np.array([item.diversity for item in items])
    return STRENGTH * scaled + RECENCY / (age + 1) + DIVERSITY * diversity


def in_order(items: Sequence[Queued], priority: NDArray[np.float64], count: int, similar: float = SIMILAR) -> tuple[Queued, ...]:
    """The first `count` items by falling priority; ties go to the lower id.

    A trace does not directly follow one whose key has a cosine of `similar` or more with its own while a less similar trace is left: it is
    postponed until one has been in between.
    """
    waiting = sorted(range(len(items)), key=lambda index: (-round(float(priority[index]), DIGITS), items[index].trace))
    near = _neighbours([item.key for item in items], similar)
    chosen: list[int] = []
    while waiting and len(chosen) < count:
        shunned = near[chosen[-1]] if chosen else frozenset[int]()
        turn = next((turn for turn, index in enumerate(waiting) if index not in shunned), 0)  # the first, if all are similar
        chosen.append(waiting.pop(turn))
    return tuple(items[index] for index in chosen)


def _neighbours(keys: Sequence[SparseKey], similar: float) -> list[frozenset[int]]:
    neighbours = []
    for start in range(0, len(keys), BATCH):
        neighbours += [frozenset(np.flatnonzero(row).tolist()) for row in cosines(keys[start : start + BATCH], keys) >= similar]
    return neighbours


@dataclass(frozen=True, slots=True)
class Due:
    """The cycle in which a trace is due, and the interval that led to it."""

    cycle: int
    interval: int


Schedule = Mapping[int, Due]


def due(schedule: Schedule, trace: int, cycle: int) -> bool:
    """Whether a trace is due in this cycle or was already due in an earlier one."""
    return trace not in schedule or schedule[trace].cycle <= cycle


def recalled(schedule: Schedule, cycle: int, hits: Iterable[int], misses: Iterable[int]) -> dict[int, Due]:
    """The schedule after a cycle in which `hits` were recalled and `misses` were not. All other traces stay due when they were."""
    after = dict(schedule)
    for trace in hits:
        interval = 2 * schedule[trace].interval if trace in schedule else 2 * FIRST
        after[trace] = Due(cycle + interval, interval)
    for trace in misses:
        after[trace] = Due(cycle + FIRST, FIRST)
    return after


def draw(queue: Queue, replay: ReplaySettings, cycle: int, now: int, seed: int, schedule: Schedule | None = None) -> tuple[int, ...]:
    """The ids of the traces that a cycle rehearses, in that order. The same arguments give the same draw.

    Args:
        now: the present step, for recency.
        schedule: when traces are due, for the policy `spaced`.
    """
    count = replay.count(len(queue.items) + queue.dropped)
    generator = np.random.default_rng([seed, cycle])
    if replay.policy == "uniform":
        return tuple(queue.items[index].trace for index in generator.permutation(len(queue.items))[:count])
    if replay.policy in ("ca2", "ca2_shuffled"):
        size = len(queue.items)
        order = np.arange(size) if replay.policy == "ca2" else np.random.default_rng(seed).permutation(size)
        return tuple(queue.items[index].trace for index in np.roll(order, -count * (cycle - 1))[:count])
    noise = replay.noise_level * generator.standard_normal(len(queue.items))
    priority = priorities(queue.items, now) + noise
    candidates = [index for index, item in enumerate(queue.items) if replay.policy == "priority" or due(schedule or {}, item.trace, cycle)]
    chosen = in_order([queue.items[index] for index in candidates], priority[candidates], count)
    return tuple(item.trace for item in chosen)
