"""Drawing what a cycle rehearses: how many, by which policy, with how much chance.

uniform    any traces, any order
priority   the highest priorities, like traces apart
spaced     the same, among those that are due
"""

import numpy as np

from hippo_core.methods.episodic.replay.priority import Shares, in_order, priorities
from hippo_core.methods.episodic.replay.queue import Queue
from hippo_core.methods.episodic.replay.spacing import Schedule, due
from hippo_core.methods.episodic.settings import Replay

SHARES = Shares()


def draw(
    queue: Queue, replay: Replay, cycle: int, now: int, seed: int, schedule: Schedule | None = None, shares: Shares = SHARES
) -> tuple[int, ...]:
    """The ids of the traces that cycle `cycle` rehearses, in order, none twice; the same for the same arguments.

    `now`: the present step, for recency. `schedule`: when traces are due, by which the policy `spaced` chooses; fewer than the rate
    allows come where fewer are due. An empty queue gives none.
    """
    count = replay.count(len(queue.items) + queue.dropped)
    generator = np.random.default_rng([seed, cycle])
    if replay.policy == "uniform":
        return tuple(queue.items[index].trace for index in generator.permutation(len(queue.items))[:count])
    noise = replay.noise_level * generator.standard_normal(len(queue.items))
    priority = priorities(queue.items, now, shares) + noise
    candidates = [index for index, item in enumerate(queue.items) if replay.policy == "priority" or due(schedule or {}, item.trace, cycle)]
    chosen = in_order([queue.items[index] for index in candidates], priority[candidates], count)
    return tuple(item.trace for item in chosen)
