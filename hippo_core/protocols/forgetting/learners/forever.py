"""Replay on a forgetting curve in the model's own time (FOREVER, Feng et al. 2026, arXiv 2601.03938): time is how far the weights have
moved, and the store is rehearsed when 1, 2, 4, 7, 15 and 30 days of it have gone by. Only when to rehearse is theirs: what weighs the
replayed loss by the curve is left out, and the length of a day is ours."""

from collections.abc import Sequence
from typing import Any

import torch

from hippo_core.protocols.forgetting.learner import Learner, Scores
from hippo_core.protocols.forgetting.learners.replay import CYCLE, Replay

DAYS = (1, 2, 4, 7, 15, 30)  # Ebbinghaus's, as in the paper; a day is as far as the weights move in the first CYCLE steps of a phase


class Forever(Replay):
    """Rehearses the store for CYCLE steps whenever a day comes."""

    name = "forever"

    def __init__(self, learner: Learner, settings: Any) -> None:
        super().__init__(learner, settings)
        self._morning()

    def begin(self, phase: int) -> None:
        super().begin(phase)
        self._morning()
        self.tensors["before"] = self.learnt()

    def more(self, phase: int, step: int, models: Sequence[int]) -> torch.Tensor | None:
        if not any(self.notes["stored"]) or not self.settings.rehearsed:
            return None
        self._age(step)
        for model in models:
            day = self.notes["day"][model]
            days = sum(self.notes["moved"][model] >= number * day for number in DAYS) if day else 0
            if days > self.notes["days"][model]:
                self.notes["days"][model], self.notes["until"][model] = days, step + CYCLE
                self.notes["drawn"][model] = self._draw(model, phase)
            elif step >= self.notes["until"][model]:
                self.notes["drawn"][model] = []
        return self._rows(models) if any(self.notes["drawn"][model] for model in models) else None

    def seen(self, phase: int, step: int, models: Sequence[int], more: Scores) -> None:
        """Nothing: the days say when, not how an item was answered."""

    def _morning(self) -> None:
        """Of each model: how far it has moved in this phase, what a day is, how many have come, and the step at which rehearsal ends."""
        self.notes |= {"moved": [0.0 for _ in self.everyone], "day": [0.0 for _ in self.everyone], "days": [0 for _ in self.everyone]}
        self.notes |= {"until": [0 for _ in self.everyone], "drawn": [[] for _ in self.everyone]}

    def _age(self, step: int) -> None:
        now = self.learnt()
        for model, moved in enumerate((now - self.tensors["before"]).norm(dim=1).tolist()):
            self.notes["moved"][model] += moved
        self.tensors["before"] = now
        if step == CYCLE + 1:
            self.notes["day"] = list(self.notes["moved"])
