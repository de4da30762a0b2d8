"""The memory protocol: teach a store, replay it, ask with it. Each is a process of its own; all that passes between them is the store."""

from hippo_core.experiments.memory.replaying import replay
from hippo_core.experiments.memory.teaching import teach
from hippo_core.experiments.memory.testing import test

__all__ = ["replay", "teach", "test"]
