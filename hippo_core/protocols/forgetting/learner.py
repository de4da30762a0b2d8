"""Several models of one shape, an initialisation each, that learn in step: one forward pass runs them all (torch.func.vmap), and each has
its own weights, moments and items. A model that has stopped is left out of the pass, and is not updated."""

import os
from collections.abc import Sequence
from shutil import which
from typing import NamedTuple

import torch
from torch.nn import functional

from hippo_core.errors import LabError
from hippo_core.protocols.forgetting.tasks import Corpus, TaskBatch
from hippo_core.protocols.forgetting.transformer import TransformerShape, initial, logits

BETAS = (0.9, 0.98)
EVALUATION_BATCH = 512  # items evaluated at a time


class Scores(NamedTuple):
    """Of each model and item, `(models, items)`: nats a token of the answer, whether all of it is right, and whether the item counts."""

    nats: torch.Tensor
    right: torch.Tensor
    counts: torch.Tensor

    def mean(self, values: torch.Tensor) -> torch.Tensor:
        """The mean over the items that count, `(models,)`."""
        return (values * self.counts).sum(-1) / self.counts.sum(-1)


class Learner:
    """Models that learn in step, an initialisation a seed, by AdamW, which decays all weights, as the protocol does. `compiled`: passes
    with gradients are translated for this processor (torch.compile); LabError where there is no C++ compiler."""

    def __init__(
        self, shape: TransformerShape, corpus: Corpus, seeds: Sequence[int], rate: float, decay: float, compiled: bool = False
    ) -> None:
        if compiled and not any(map(which, (os.environ.get("CXX", "c++"), "c++", "g++", "clang++"))):
            raise LabError("compiled=true needs a C++ compiler, such as g++, which is not on the PATH; use compiled=false")
        self.shape, self.corpus, self.seeds = shape, corpus, seeds
        self.rate, self.decay = rate, decay
        self.learning = torch.compile(self.passed, fullgraph=True) if compiled else self.passed
        _ = shape.sizes, shape.bands  # worked out now: in a translated pass they could not be
        self.learn([initial(shape, seed) for seed in seeds])

    def learn(self, vectors: Sequence[torch.Tensor], quicker: float = 1.0) -> None:
        """What is learnt from now on, at so many times the rate: a vector a model, with an optimizer that knows nothing yet."""
        self.learnt = [vector.detach().clone().requires_grad_() for vector in vectors]
        self.optimizer = torch.optim.AdamW(self.learnt, lr=quicker * self.rate, betas=BETAS, weight_decay=self.decay, fused=True)

    def stacked(self, models: Sequence[int]) -> torch.Tensor:
        """What these models have learnt, `(models, weights)`."""
        return torch.stack([self.learnt[model] for model in models])

    def scored(self, vectors: torch.Tensor, batch: TaskBatch) -> Scores:
        """How models with these weights, `(models, weights)`, answer a batch that they share, or one a model."""
        outputs = self.logits(vectors, batch)
        answers = batch.answers.expand(outputs.shape[:-1])
        nats = functional.cross_entropy(outputs.flatten(0, -2), answers.flatten(), reduction="none").view(answers.shape)
        weights = batch.weights.expand(answers.shape)
        right = ((outputs.detach().argmax(-1) == answers) | (weights == 0)).all(-1)
        return Scores((nats * weights).sum(-1), right.float(), (weights.sum(-1) > 0).float())

    def logits(self, vectors: torch.Tensor, batch: TaskBatch) -> torch.Tensor:
        """The logits of models with these weights, `(models, items, answers, vocabulary)`."""
        run = self.learning if torch.is_grad_enabled() else self.passed
        return run(vectors, batch.tokens, batch.at)

    def passed(self, vectors: torch.Tensor, tokens: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        """All models in one pass; tokens and positions `(items, ...)` that they share, or `(models, items, ...)`."""
        own = 0 if tokens.dim() == 3 else None
        run = torch.func.vmap(lambda vector, some, there: logits(self.shape, vector, some, there), in_dims=(0, own, own))
        return run(vectors, tokens, at)

    def update(self, loss: torch.Tensor) -> None:
        """A step down the losses of the models that have one, `(models,)`."""
        self.optimizer.zero_grad()
        loss.sum().backward()
        self.optimizer.step()

    def examined(self, vectors: torch.Tensor, task: int, split: str, most: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Of models with these weights the nats a token and the share of right answers on a task's split, or on the first `most` of its
        items, `(models,)` each."""
        items = torch.from_numpy(self.corpus.items(task, split)[:most])
        with torch.no_grad():
            parts = [self.scored(vectors, self.corpus.batch(some)) for some in items.split(EVALUATION_BATCH)]
        scores = Scores(*(torch.cat(own, -1) for own in zip(*parts, strict=True)))
        return scores.mean(scores.nats), scores.mean(scores.right)
