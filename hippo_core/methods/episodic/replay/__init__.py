"""Replay: which traces are rehearsed in a cycle, and in which order.

A queue holds what may be rehearsed, a policy draws from it, and a schedule says when each trace is due again. All are plain data: a call
takes them and returns new ones, and every draw has its seed.
"""

from hippo_core.methods.episodic.replay.drawing import draw
from hippo_core.methods.episodic.replay.priority import Shares, in_order, priorities
from hippo_core.methods.episodic.replay.queue import Arrival, Queue, Queued, arrivals_of, push
from hippo_core.methods.episodic.replay.spacing import Due, Schedule, due, recalled

__all__ = [
    "Arrival",
    "Due",
    "Queue",
    "Queued",
    "Schedule",
    "Shares",
    "arrivals_of",
    "draw",
    "due",
    "in_order",
    "priorities",
    "push",
    "recalled",
]
