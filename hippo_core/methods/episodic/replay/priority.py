"""What is rehearsed first: strong, recent and unusual traces; and like ones not one right after the other.

    priority = .5 S' + .3 recency + .2 diversity

S' is S scaled to 0 ... 1 over the candidates, recency 1 / (now - step + 1), diversity as the queue measured it. All three lie in
0 ... 1 and so does the priority: a weight is what its term can add at most.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hippo_core.files import LabError
from hippo_core.methods.episodic.replay.queue import TOGETHER, Queued
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
    """Of each key, the places of those that interfere with it."""
    neighbours = []
    for start in range(0, len(keys), TOGETHER):
        neighbours += [frozenset(np.flatnonzero(row).tolist()) for row in cosines(keys[start : start + TOGETHER], keys) >= alike]
    return neighbours
