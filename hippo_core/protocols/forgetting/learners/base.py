"""The interface of all methods, which by itself is the one that does nothing: a plain model forgets (McCloskey & Cohen 1989)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hippo_core.methods.episodic.settings import Policy
from hippo_core.protocols.forgetting.learner import Learner, Scores

NOBODY = torch.zeros(())


@dataclass(frozen=True)
class LearnerSettings:
    """What methods can be told; each reads what concerns it.

    Args:
        stored: the share of a task's training items that replay keeps in its store.
        rehearsed: items that replay adds to a batch.
        policy: which of them.
        strength: how much what was learnt weighs; None: the method's own.
        rank: of an update.
        reset: whether the optimizer begins anew with each phase.
    """

    stored: float = 0.05
    rehearsed: int = 8
    policy: Policy = "uniform"
    strength: float | None = None
    rank: int = 16
    reset: bool = True


class ContinualLearner:
    """Learns the task at hand and nothing besides.

    Phases count from 0, as tasks do. `tensors` and `notes` are all that it remembers; they lie in a checkpoint.
    """

    name = "none"
    strength = 0.0

    def __init__(self, learner: Learner, settings: LearnerSettings) -> None:
        self.learner, self.settings = learner, settings
        self.tensors: dict[str, torch.Tensor] = {}
        self.notes: dict[str, Any] = {}

    @property
    def weight(self) -> float:
        """How much what was learnt weighs."""
        return self.strength if self.settings.strength is None else self.settings.strength

    def tasks(self, phase: int) -> list[int]:
        """The tasks that a phase learns, in equal parts."""
        return [phase]

    def begin(self, phase: int) -> None:
        """What happens before a phase."""
        if phase and self.settings.reset:
            self.learner.learn(self.learner.learnt)

    def learnt_weights(self, phase: int) -> int:
        """How many weights of a model a phase learns."""
        return self.learner.shape.weights

    def quicker(self, phase: int) -> float:
        """How many times the rate a phase learns at."""
        return 1.0

    def more(self, phase: int, step: int, models: Sequence[int]) -> torch.Tensor | None:
        """Numbers of items that these models learn besides, `(models, items)`, -1 for none; None where there are none."""
        return None

    def whole(self, learnt: torch.Tensor, models: Sequence[int]) -> torch.Tensor:
        """The weights of these models, `(models, weights)`, of what they are learning."""
        return learnt

    def penalty(self, vectors: torch.Tensor, phase: int, items: torch.Tensor, models: Sequence[int]) -> torch.Tensor:
        """What is added to the loss of models with these weights that learn these items, `(models, items)`; `(models,)` or 0."""
        return NOBODY

    def seen(self, phase: int, step: int, models: Sequence[int], more: Scores) -> None:
        """How the items that were learnt besides were answered, before the update."""

    def end(self, phase: int) -> None:
        """What happens after a phase."""

    def vectors(self, task: int) -> torch.Tensor:
        """The weights by which a task is answered, `(models, weights)`."""
        everyone = range(len(self.learner.seeds))
        return self.whole(self.learner.stacked(everyone), everyone).detach()
