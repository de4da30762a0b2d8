"""Replay: a queue holds the traces that may be rehearsed, a policy draws from it, and a schedule says when each trace is due again.

All of them are plain data. A call takes them and returns new ones, and every draw is seeded.
"""

from hippo_core.methods.episodic.replay.drawing import Due, Schedule, Shares, draw, due, in_order, priorities, recalled
from hippo_core.methods.episodic.replay.queue import Arrival, Queue, Queued, arrivals_of, push
