"""Weights are held back where they were when the last phase ended.

L2     all alike
EWC    each by how much the answers depend on it: the diagonal of the Fisher information (Kirkpatrick et al. 2017, arXiv 1612.00796), summed
       over tasks around the last weights alone (online EWC, Schwarz et al. 2018, arXiv 1805.06370)
"""

from collections.abc import Sequence

import torch

from hippo_core.protocols.forgetting.learners.base import ContinualLearner

EXAMINED = 64  # training items by which the information is estimated


class L2(ContinualLearner):
    """Adds strength / 2 times the squared distance to the weights of the last phase."""

    name = "l2"
    strength = 3.0

    def penalty(self, vectors: torch.Tensor, phase: int, items: torch.Tensor, models: Sequence[int]) -> torch.Tensor:
        if not phase:
            return super().penalty(vectors, phase, items, models)
        chosen = list(models)
        away = (vectors - self.tensors["anchor"][chosen]) ** 2
        return self.weight / 2 * (self.tensors["importance"][chosen] * away).sum(-1)

    def end(self, phase: int) -> None:
        self.tensors["anchor"] = self.vectors(phase)
        self.tensors["importance"] = self.importance(phase)

    def importance(self, phase: int) -> torch.Tensor:
        """How much each weight counts, `(models, weights)`."""
        return torch.ones_like(self.tensors["anchor"])


class EWC(L2):
    """Adds strength / 2 times the squared distance, each weight times its information."""

    name = "ewc"
    strength = 1e6

    def importance(self, phase: int) -> torch.Tensor:
        """The information of the tasks so far: the mean, over items, of the squared gradient of their loss (the empirical Fisher)."""
        learner = self.learner
        vectors = self.tensors["anchor"].clone().requires_grad_()
        total = torch.zeros_like(vectors)
        items = torch.from_numpy(learner.corpus.items(phase, "train")[:EXAMINED])
        for item in items.split(1):
            [gradient] = torch.autograd.grad(learner.scored(vectors, learner.corpus.batch(item)).nats.sum(), vectors)
            total += gradient**2
        return total / len(items) + self.tensors.get("importance", 0)
