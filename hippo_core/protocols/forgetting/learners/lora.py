"""A low-rank update a task (Hu et al. 2021, arXiv 2106.09685): the first phase learns the model, each later one an update of its own, by
which its task alone is answered. Nothing is overwritten, and nothing is shared; the cue must say which update is meant."""

import math
from collections.abc import Sequence

import torch

from hippo_core.protocols.forgetting.learners.base import ContinualLearner

MATRICES = ("qkv", "out", "up", "down")
QUICKER = 3.0  # times the rate of the model, as updates begin at 0


class PerTaskLoRA(ContinualLearner):
    """Learns W + B A with A `(rank, columns)` and B `(rows, rank)` of every matrix in a block; B begins at 0."""

    name = "lora"

    def learnt_weights(self, phase: int) -> int:
        return sum(self.settings.rank * sum(shape) for shape in self._matrices().values()) if phase else super().learnt_weights(phase)

    def begin(self, phase: int) -> None:
        if phase == 0:
            return
        if phase == 1:
            self.tensors["base"] = self.learnt()
        self.learner.learn([self._first(seed, phase) for seed in self.learner.seeds], self.quicker(phase))

    def quicker(self, phase: int) -> float:
        return QUICKER if phase else 1.0

    def full_weights(self, learnt: torch.Tensor, models: Sequence[int]) -> torch.Tensor:
        if "base" not in self.tensors:
            return learnt
        return self._updated(self.tensors["base"][list(models)], learnt)

    def end(self, phase: int) -> None:
        if phase:
            self.tensors[f"update.{phase}"] = self.learnt()

    def vectors(self, task: int) -> torch.Tensor:
        if "base" not in self.tensors:
            return super().vectors(task)
        base, update = self.tensors["base"], self.tensors.get(f"update.{task}")
        return base if update is None else self._updated(base, update)

    def _matrices(self) -> dict[str, tuple[int, ...]]:
        return {name: shape for name, shape in self.learner.shape.shapes.items() if name.rpartition(".")[2] in MATRICES}

    def _first(self, seed: int, phase: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(1_000 * seed + phase)
        parts = []
        for rows, columns in self._matrices().values():
            parts += [torch.zeros(rows * self.settings.rank), torch.randn(self.settings.rank * columns, generator=generator)]
            parts[-1] /= math.sqrt(columns)
        return torch.cat(parts)

    def _updated(self, base: torch.Tensor, update: torch.Tensor) -> torch.Tensor:
        """Weights `(models, weights)` with these updates."""
        rank, parts, start = self.settings.rank, [], 0
        for (name, shape), weights in zip(self.learner.shape.shapes.items(), base.split(self.learner.shape.sizes, 1), strict=True):
            if name in self._matrices():
                rows, columns = shape
                factors = update[:, start : start + rank * (rows + columns)].split([rank * rows, rank * columns], 1)
                start += rank * (rows + columns)
                weights = weights + (factors[0].view(-1, rows, rank) @ factors[1].view(-1, rank, columns)).flatten(1)
            parts.append(weights)
        return torch.cat(parts, 1)
