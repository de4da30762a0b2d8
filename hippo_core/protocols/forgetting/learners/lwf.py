"""Learning without forgetting (Li & Hoiem 2016, arXiv 1606.09282): the new task's own items, asked as earlier tasks, are to be answered as
they were before the phase. Their old heads are here the earlier tasks' cues; nothing of earlier tasks is stored but these and the model."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from hippo_core.protocols.forgetting.learners.base import ContinualLearner

TEMPERATURE = 2.0  # of both answers, as in the paper


class LwF(ContinualLearner):
    """Adds strength times the divergence from what the model said before the phase, of each item under the cue of one earlier task."""

    name = "lwf"
    strength = 1.0

    def penalty(self, vectors: torch.Tensor, phase: int, items: torch.Tensor, models: Sequence[int]) -> torch.Tensor:
        if not phase:
            return super().penalty(vectors, phase, items, models)
        corpus = self.learner.corpus
        batch = corpus.batch(items)
        tokens = batch.tokens.clone()
        earlier = torch.tensor([corpus.tasks[index % phase].cue for index in range(items.shape[1])])
        tokens[..., corpus.tasks[phase].cue_at] = earlier
        asked = replace(batch, tokens=tokens)
        with torch.no_grad():
            before = self.learner.logits(self.tensors["before"][list(models)], asked) / TEMPERATURE
        now = self.learner.logits(vectors, asked) / TEMPERATURE
        apart = (before.softmax(-1) * (before.log_softmax(-1) - now.log_softmax(-1))).sum(-1)
        return self.weight * TEMPERATURE**2 * (apart * batch.weights).sum(-1).mean(-1)

    def end(self, phase: int) -> None:
        self.tensors["before"] = self.vectors(phase)
