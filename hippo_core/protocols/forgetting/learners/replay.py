"""Replay from an episodic store: a share of each task's items is kept when its phase ends, and some of them are in every later batch.

Which ones is what the episodic memory's policies decide (methods/episodic/replay): uniform, priority, spaced, ca2 and its control. What an
item is to them: its salience is its loss when it was stored, its key says which token stands where, and it was recalled if all of its
answer was right when it was rehearsed.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from hippo_core.methods.episodic.replay import Arrival, Due, Queue, draw, queue_of, recalled
from hippo_core.methods.episodic.settings import ReplaySettings
from hippo_core.protocols.forgetting.learner import Learner, Scores
from hippo_core.protocols.forgetting.learners.base import ContinualLearner
from hippo_core.retrieval.sparse_key import SparseKey

CYCLE = 10  # steps for which what was drawn is rehearsed


class Replay(ContinualLearner):
    """Rehearses what it stored of earlier tasks."""

    name = "replay"

    def __init__(self, learner: Learner, settings: Any) -> None:
        super().__init__(learner, settings)
        # of each model the items with their loss and phase, when each is due (item, cycle, interval), and what is rehearsed now
        self.notes = {name: [[] for _ in self.everyone] for name in ("stored", "due", "drawn")}
        self.notes["cycles"] = [0 for _ in self.everyone]
        self.replay = ReplaySettings(policy=settings.policy, max_items=settings.rehearsed)
        self.queues: dict[int, Queue] = {}

    def begin(self, phase: int) -> None:
        super().begin(phase)
        self.queues = {}

    def more(self, phase: int, step: int, models: Sequence[int]) -> torch.Tensor | None:
        if not any(self.notes["stored"]) or not self.settings.rehearsed:
            return None
        if (step - 1) % CYCLE == 0:
            for model in models:
                self.notes["drawn"][model] = self._draw(model, phase)
        return self._rows(models)

    def seen(self, phase: int, step: int, models: Sequence[int], more: Scores) -> None:
        if (step - 1) % CYCLE:
            return
        for model, rights in zip(models, more.right.tolist(), strict=True):
            hits = [item for item, right in zip(self.notes["drawn"][model], rights, strict=False) if right]
            misses = set(self.notes["drawn"][model]).difference(hits)
            after = recalled(self._schedule(model), self.notes["cycles"][model], hits, misses)
            self.notes["due"][model] = [[item, due.cycle, due.interval] for item, due in after.items()]

    def end(self, phase: int) -> None:
        learner, items = self.learner, self.learner.corpus.items(phase, "train")
        count = math.ceil(self.settings.stored * len(items) - 1e-9)
        for model, seed in enumerate(learner.seeds if count else ()):
            chosen = torch.from_numpy(np.random.default_rng([seed, phase]).permutation(items)[:count])
            with torch.no_grad():
                losses = learner.scored(learner.stacked([model]), learner.corpus.batch(chosen)).nats[0]
            self.notes["stored"][model] += [[item, loss, phase] for item, loss in zip(chosen.tolist(), losses.tolist(), strict=True)]

    def _rows(self, models: Sequence[int]) -> torch.Tensor:
        """What was drawn for these models, `(models, rehearsed)`, filled up by -1."""
        rows = [self.notes["drawn"][model] for model in models]
        return torch.tensor([row + [-1] * (self.settings.rehearsed - len(row)) for row in rows])

    def _draw(self, model: int, phase: int) -> list[int]:
        if model not in self.queues:
            arrivals = [Arrival(item, self._key(item), loss, step) for item, loss, step in self.notes["stored"][model]]
            self.queues[model] = queue_of(arrivals, len(arrivals))
        self.notes["cycles"][model] += 1
        cycle, seed = self.notes["cycles"][model], self.learner.seeds[model]
        return list(draw(self.queues[model], self.replay, cycle, now=phase, seed=seed, schedule=self._schedule(model)))

    def _schedule(self, model: int) -> dict[int, Due]:
        return {item: Due(cycle, interval) for item, cycle, interval in self.notes["due"][model]}

    def _key(self, item: int) -> SparseKey:
        """Which token stands where."""
        tokens, size = self.learner.corpus.tokens[item].numpy(), self.learner.shape.vocabulary
        positions = np.arange(len(tokens)) * size + tokens
        return SparseKey(positions.astype(np.int32), np.ones(len(tokens), dtype=np.int8), len(tokens) * size)
