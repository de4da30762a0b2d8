"""Drawing what a cycle rehearses: how many, by which policy, with how much chance.

uniform    any traces, any order
priority   the highest priorities, like traces apart
spaced     the same, among those that are due
"""

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from hippo_core.files import LabError, unknown
from hippo_core.methods.episodic.replay.priority import Shares, in_order, priorities
from hippo_core.methods.episodic.replay.queue import Queue
from hippo_core.methods.episodic.replay.spacing import Schedule, due

Policy = Literal["uniform", "priority", "spaced"]
POLICIES: tuple[Policy, ...] = get_args(Policy)


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a cycle draws. `rate`: the share of all traces that came to the queue, rounded up; `max_items`: no more than so many.

    `noise_level`: the standard deviation of Gaussian noise on the priorities, which lie in 0 ... 1, so that cycles differ and no trace is
    always passed over; whoever makes the cues of a cycle corrupts them by the same level. Uniform draws have no priorities to disturb.
    """

    policy: Policy = "priority"
    rate: float = 1.0
    noise_level: float = 0.1
    max_items: int | None = None
    shares: Shares = field(default_factory=Shares)

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise unknown("replay policy", self.policy, POLICIES)
        if not 0 <= self.rate <= 1:
            raise LabError(f"replay rate is the share of the store in a cycle, from 0 to 1, got {self.rate}")
        if not (math.isfinite(self.noise_level) and self.noise_level >= 0):
            raise LabError(f"replay noise_level is 0 or more, got {self.noise_level}")
        if self.max_items is not None and self.max_items < 0:
            raise LabError(f"replay max_items is 0 or more, or none, got {self.max_items}")

    def count(self, size: int) -> int:
        """How many of so many traces a cycle rehearses, at most."""
        share = math.ceil(self.rate * size - 1e-9)
        return share if self.max_items is None else min(share, self.max_items)


def draw(queue: Queue, drawing: Drawing, cycle: int, now: int, seed: int, schedule: Schedule | None = None) -> tuple[int, ...]:
    """The ids of the traces that cycle `cycle` rehearses, in order, none twice; the same for the same arguments.

    `now`: the present step, for recency. `schedule`: when traces are due, by which the policy `spaced` chooses; fewer than the rate
    allows come where fewer are due. An empty queue gives none.
    """
    count = drawing.count(len(queue.items) + queue.dropped)
    generator = np.random.default_rng([seed, cycle])
    if drawing.policy == "uniform":
        return tuple(queue.items[place].trace for place in generator.permutation(len(queue.items))[:count])
    noise = drawing.noise_level * generator.standard_normal(len(queue.items))
    priority = priorities(queue.items, now, drawing.shares) + noise
    candidates = [place for place, item in enumerate(queue.items) if drawing.policy == "priority" or due(schedule or {}, item.trace, cycle)]
    chosen = in_order([queue.items[place] for place in candidates], priority[candidates], count)
    return tuple(item.trace for item in chosen)
