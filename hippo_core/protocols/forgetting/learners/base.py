"""The interface of all methods, which by itself is the one that does nothing: a plain model forgets (McCloskey & Cohen 1989). And the
references between which the others lie."""

from collections.abc import Sequence
from typing import Any

import torch

from hippo_core.protocols.forgetting.learner import Learner, Scores
from hippo_core.protocols.forgetting.transformer import initial

NOBODY = torch.zeros(())


class ContinualLearner:
    """Learns the task at hand and nothing besides.

    Phases count from 0, as tasks do. `settings` are the parameters, of which each method reads what concerns it. `tensors` and `notes` are
    all that it remembers; they lie in a checkpoint.
    """

    name = "none"
    strength = 0.0

    def __init__(self, learner: Learner, settings: Any) -> None:
        self.learner, self.settings = learner, settings
        self.everyone = range(len(learner.seeds))
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
        if phase and self.settings.optimizer == "reset":
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

    def full_weights(self, learnt: torch.Tensor, models: Sequence[int]) -> torch.Tensor:
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
        return self.full_weights(self.learner.stacked(self.everyone), self.everyone).detach()

    def learnt(self) -> torch.Tensor:
        """What all models have learnt so far in this phase, `(models, weights)`."""
        return self.learner.stacked(self.everyone).detach()


class Joint(ContinualLearner):
    """Every phase learns all tasks up to its own, in equal parts: what a model could know if nothing were ever over. The upper bound."""

    name = "joint"

    def tasks(self, phase: int) -> list[int]:
        return list(range(phase + 1))


class Scratch(ContinualLearner):
    """Every phase begins with the weights of the very beginning: what it takes to learn a task without a past."""

    name = "scratch"

    def begin(self, phase: int) -> None:
        self.learner.learn([initial(self.learner.shape, seed) for seed in self.learner.seeds])
