"""Drawing what a cycle rehearses: how many, by which policy, with how much chance.

uniform    any traces, any order
priority   the highest priorities, like traces apart
spaced     the same, among those that are due
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hippo_core.files import LabError
from hippo_core.methods.episodic.replay.queue import TOGETHER, Queue, Queued
from hippo_core.methods.episodic.settings import ReplaySettings
from hippo_core.retrieval.sparse_key import SparseKey, cosines

ALIKE = 0.9  # cosine from which on two keys interfere
DIGITS = 9  # priorities are compared to so many: ties go to the older trace whatever the machine rounds


@dataclass(frozen=True, slots=True)
class Shares:
    """The weights of the three terms."""

    strength: float = 0.5
    recency: float = 0.3
    diversity: float = 0.2


def priorities(items: Sequence[Queued], now: int, shares: Shares = Shares()) -> NDArray[np.float64]:
    """The priority of each; `now` is a step not before any of theirs. Where all S are the same, S' is 0 for all."""
    strength = np.array([item.S for item in items], dtype=np.float64)
    age = now - np.array([item.step for item in items], dtype=np.float64)
    if len(items) and age.min() < 0:
        raise LabError(f"step {now} lies before that of a queued trace ({now - int(age.min())}); give the step of the cycle")
    spread = np.ptp(strength) if len(items) else 0.0
    scaled = (strength - strength.min()) / spread if spread else np.zeros(len(items))
    diversity = np.array([item.diversity for item in items])
    return shares.strength * scaled + shares.recency / (age + 1) + shares.diversity * diversity


def in_order(items: Sequence[Queued], priority: NDArray[np.float64], count: int, alike: float = ALIKE) -> tuple[Queued, ...]:
    """The first `count` by falling priority, ties by id, but that none follows a trace whose key has a cosine of `alike` or more with its
    own while another is left: it is put off, not lost, and comes when a less similar one has been in between."""
    waiting = sorted(range(len(items)), key=lambda index: (-round(float(priority[index]), DIGITS), items[index].trace))
    near = _neighbours([item.key for item in items], alike)
    chosen: list[int] = []
    while waiting and len(chosen) < count:
        shunned = near[chosen[-1]] if chosen else frozenset[int]()
        turn = next((turn for turn, index in enumerate(waiting) if index not in shunned), 0)  # where all are alike, the first
        chosen.append(waiting.pop(turn))
    return tuple(items[index] for index in chosen)


def _neighbours(keys: Sequence[SparseKey], alike: float) -> list[frozenset[int]]:
    neighbours = []
    for start in range(0, len(keys), TOGETHER):
        neighbours += [frozenset(np.flatnonzero(row).tolist()) for row in cosines(keys[start : start + TOGETHER], keys) >= alike]
    return neighbours


FIRST = 1  # cycles until a trace that was not recalled comes again


@dataclass(frozen=True, slots=True)
class Due:
    """In which cycle a trace is due, and the interval that led there."""

    cycle: int
    interval: int


Schedule = Mapping[int, Due]


def due(schedule: Schedule, trace: int, cycle: int) -> bool:
    """Whether a trace is due in this cycle, or has been since an earlier one."""
    return trace not in schedule or schedule[trace].cycle <= cycle


def recalled(schedule: Schedule, cycle: int, hits: Iterable[int], misses: Iterable[int]) -> dict[int, Due]:
    """The schedule after a cycle in which `hits` were recalled and `misses` were not; the others' dues stay."""
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
    """The ids of the traces that cycle `cycle` rehearses, in order, none twice; the same for the same arguments. `now`: the present step,
    for recency; `schedule`: when traces are due, by which the policy `spaced` chooses."""
    count = replay.count(len(queue.items) + queue.dropped)
    generator = np.random.default_rng([seed, cycle])
    if replay.policy == "uniform":
        return tuple(queue.items[index].trace for index in generator.permutation(len(queue.items))[:count])
    noise = replay.noise_level * generator.standard_normal(len(queue.items))
    priority = priorities(queue.items, now, shares) + noise
    candidates = [index for index, item in enumerate(queue.items) if replay.policy == "priority" or due(schedule or {}, item.trace, cycle)]
    chosen = in_order([queue.items[index] for index in candidates], priority[candidates], count)
    return tuple(item.trace for item in chosen)
