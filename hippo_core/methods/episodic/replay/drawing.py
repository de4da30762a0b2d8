"""Draw the traces that a cycle rehearses: how many, by which policy and with how much noise.

uniform        random traces in random order
priority       the traces of highest priority, with similar traces kept apart
spaced         as priority, but only among the traces that are due
ca2            in order of arrival, chunk by chunk: a cycle takes up where the one before it ended
ca2_shuffled   its control: the same, in one random order that is kept over all cycles

Sleep replays sequences in the order in which they were lived (Skaggs & McNaughton 1996, Science 271), and region CA2 triggers the ripples
that do so (Oliva et al. 2016, Neuron 91).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hippo_core.errors import LabError
from hippo_core.methods.episodic.replay.queue import TOGETHER, Queue, Queued
from hippo_core.methods.episodic.settings import ReplaySettings
from hippo_core.retrieval.sparse_key import SparseKey, cosines

ALIKE = 0.9  # keys with this cosine or more interfere
DIGITS = 9  # priorities are rounded to this many digits, so that ties go to the older trace on every machine


@dataclass(frozen=True, slots=True)
class Shares:
    """The weights of the three terms of a priority."""

    strength: float = 0.5
    recency: float = 0.3
    diversity: float = 0.2


def priorities(items: Sequence[Queued], now: int, shares: Shares = Shares()) -> NDArray[np.float64]:
    """The priority of each queued trace: the weighted sum of scaled strength S', recency and diversity.

    S' is S scaled to 0 ... 1. It is 0 for all traces if all S are the same.

    Args:
        now: the present step. It must not be before the step of any item.

    Returns:
        One priority per item, `(items,)`, float64.

    Raises:
        LabError: `now` is before the step of an item.
    """
    strength = np.array([item.S for item in items], dtype=np.float64)
    age = now - np.array([item.step for item in items], dtype=np.float64)
    if len(items) and age.min() < 0:
        raise LabError(f"step {now} lies before that of a queued trace ({now - int(age.min())}); give the step of the cycle")
    spread = np.ptp(strength) if len(items) else 0.0
    scaled = (strength - strength.min()) / spread if spread else np.zeros(len(items))
    diversity = np.array([item.diversity for item in items])
    return shares.strength * scaled + shares.recency / (age + 1) + shares.diversity * diversity


def in_order(items: Sequence[Queued], priority: NDArray[np.float64], count: int, alike: float = ALIKE) -> tuple[Queued, ...]:
    """The first `count` items by falling priority, with similar traces kept apart. Ties go to the lower id.

    A trace does not directly follow one whose key has a cosine of `alike` or more with its own while a less similar trace is left. It is
    postponed until a less similar one has been in between, and is not lost.
    """
    waiting = sorted(range(len(items)), key=lambda index: (-round(float(priority[index]), DIGITS), items[index].trace))
    near = _neighbours([item.key for item in items], alike)
    chosen: list[int] = []
    while waiting and len(chosen) < count:
        shunned = near[chosen[-1]] if chosen else frozenset[int]()
        turn = next((turn for turn, index in enumerate(waiting) if index not in shunned), 0)  # the first, if all are similar
        chosen.append(waiting.pop(turn))
    return tuple(items[index] for index in chosen)


def _neighbours(keys: Sequence[SparseKey], alike: float) -> list[frozenset[int]]:
    neighbours = []
    for start in range(0, len(keys), TOGETHER):
        neighbours += [frozenset(np.flatnonzero(row).tolist()) for row in cosines(keys[start : start + TOGETHER], keys) >= alike]
    return neighbours


FIRST = 1  # cycles until a trace that was not recalled is due again


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


SHARES = Shares()


def draw(
    queue: Queue, replay: ReplaySettings, cycle: int, now: int, seed: int, schedule: Schedule | None = None, shares: Shares = SHARES
) -> tuple[int, ...]:
    """Draw the traces that a cycle rehearses. The same arguments give the same draw.

    Args:
        now: the present step, for recency.
        schedule: when traces are due, for the policy `spaced`.

    Returns:
        The ids of the traces in the order of rehearsal, without repeats.
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
    priority = priorities(queue.items, now, shares) + noise
    candidates = [index for index, item in enumerate(queue.items) if replay.policy == "priority" or due(schedule or {}, item.trace, cycle)]
    chosen = in_order([queue.items[index] for index in candidates], priority[candidates], count)
    return tuple(item.trace for item in chosen)
