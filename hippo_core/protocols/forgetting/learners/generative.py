"""Generative replay (Shin et al. 2017, arXiv 1705.08690; for language models LAMOL, Sun et al. 2020, arXiv 1909.03329): the model learns
the prompts, too, and before each later phase it writes items of the earlier tasks, prompt and answer. They are rehearsed; nothing is stored
but the tasks' cues. What it writes is taken as it is, right or wrong."""

from collections.abc import Sequence

import numpy as np
import torch

from hippo_core.protocols.forgetting.learners.base import ContinualLearner
from hippo_core.protocols.forgetting.tasks import EOS, TaskBatch

WRITTEN = 64  # items of each earlier task
NUCLEUS = 0.9  # prompts are drawn from the likeliest tokens that have this much together (Holtzman et al. 2020, arXiv 1904.09751)


class Generative(ContinualLearner):
    """Adds strength times the loss of prompts, and the loss of items that the model wrote of earlier tasks."""

    name = "generative"
    strength = 1.0

    def begin(self, phase: int) -> None:
        super().begin(phase)
        self.notes["step"] = 0

    def penalty(self, vectors: torch.Tensor, phase: int, items: torch.Tensor, models: Sequence[int]) -> torch.Tensor:
        self.notes["step"] += 1
        loss = self.weight * self._prompts(vectors, phase, items)
        if not phase or not self.settings.rehearsed:
            return loss
        scores = self.learner.scored(vectors, self._drawn(phase, models))
        return loss + self.settings.rehearsed / items.shape[1] * scores.mean(scores.nats)  # an item weighs as much as one of the batch

    def end(self, phase: int) -> None:
        for task in range(phase + 1):
            self.tensors[f"written.{task}"] = self.written(task, phase)

    @torch.no_grad()
    def written(self, task: int, phase: int) -> torch.Tensor:
        """Items of a task as each model writes them, `(models, WRITTEN, length)`: prompts are drawn, answers are the likeliest tokens."""
        known, learner = self.learner.corpus.tasks[task], self.learner
        vectors = self.vectors(task)
        generators = [torch.Generator().manual_seed(1_000_000 + 10_000 * seed + 100 * phase + task) for seed in learner.seeds]
        tokens = torch.full((len(vectors), WRITTEN, learner.corpus.tokens.shape[1]), EOS)
        tokens[..., 0] = int(known.tokens[0, 0])
        for position in range(1, known.tokens.shape[1]):
            so_far = tokens[..., :position]
            logits = learner.logits(vectors, _asked(so_far, torch.tensor([position - 1]), so_far[..., :1]))[..., 0, :]
            drawn = [
                torch.multinomial(_nucleus(own), 1, generator=generator)[:, 0] for own, generator in zip(logits, generators, strict=True)
            ]
            tokens[..., position] = torch.stack(drawn) if position <= known.first else logits.argmax(-1)
            if position == known.cue_at:
                tokens[..., position] = known.cue
        return tokens

    def _prompts(self, vectors: torch.Tensor, phase: int, items: torch.Tensor) -> torch.Tensor:
        """Nats a token of the prompts of these items, `(models,)`."""
        tokens = self.learner.corpus.tokens[items]
        positions = torch.arange(self.learner.corpus.tasks[phase].first)
        batch = _asked(tokens[..., : len(positions)], positions, tokens[..., 1 : len(positions) + 1])
        return self.learner.scored(vectors, batch).nats.mean(-1)

    def _drawn(self, phase: int, models: Sequence[int]) -> TaskBatch:
        """What each model rehearses in this step."""
        corpus, rows = self.learner.corpus, []
        for model in models:
            chosen = np.random.default_rng([self.learner.seeds[model], phase, self.notes["step"]])
            rows.append(chosen.choice(phase * WRITTEN, self.settings.rehearsed))
        number = torch.from_numpy(np.stack(rows))
        task, index = number // WRITTEN, number % WRITTEN
        written = torch.stack([self.tensors[f"written.{earlier}"] for earlier in range(phase)])
        tokens = written[task, torch.tensor(list(models)).unsqueeze(1), index]
        like = torch.from_numpy(corpus.starts[:-1])[task]  # where an item of the task is answered
        at = corpus.at[like]
        return TaskBatch(tokens[..., : int(at.max()) + 1], at, tokens.gather(-1, at + 1), corpus.weights[like])


def _nucleus(logits: torch.Tensor) -> torch.Tensor:
    """The probabilities of logits `(items, vocabulary)`; those beyond the nucleus are 0."""
    chances, order = logits.softmax(-1).sort(-1, descending=True)
    kept = chances.masked_fill(chances.cumsum(-1) - chances >= NUCLEUS, 0.0)
    return torch.zeros_like(kept).scatter(-1, order, kept)


def _asked(tokens: torch.Tensor, positions: torch.Tensor, answers: torch.Tensor) -> TaskBatch:
    """A batch `(models, items, length)` that is asked at the same positions in all items."""
    at = positions.expand(*tokens.shape[:-1], -1)
    return TaskBatch(tokens, at, answers, torch.full(at.shape, 1 / len(positions)))
