"""What tokens of clean training text are like, fitted once for all that asks."""

from collections.abc import Sequence

from hippo_core.models.language_model import LanguageModel
from hippo_core.protocols.cache.cached_probe import write
from hippo_core.protocols.cache.key_rotation import KeyRotation
from hippo_core.protocols.cache.probes import TASKS, probes
from hippo_core.protocols.cache.token_prior import TokenPrior

PROBES, RANK = 32, 256  # caches a task, factors


class Priors:
    """The priors of a model: of whole tokens, one, or one a layer. No text of theirs is a probe of validation or test."""

    def __init__(self, lm: LanguageModel, seed: int) -> None:
        self.lm, self.seed = lm, seed
        self._made: dict[bool, Sequence[TokenPrior]] = {}

    def __call__(self, by_layer: bool = False) -> Sequence[TokenPrior]:
        if by_layer not in self._made:
            rotation = KeyRotation(self.lm)
            written = [one for task in TASKS for one in write(self.lm, probes(self.lm, task, PROBES, self.seed, "train"))]
            caches = [(kv, one.prefix.shape[3]) for one in written for kv in one.blocks]
            parts = caches[0][0].shape[0] if by_layer else 1
            self._made[by_layer] = [
                TokenPrior.of(rotation, [(kv.chunk(parts)[number], start) for kv, start in caches], RANK) for number in range(parts)
            ]
        return self._made[by_layer]
