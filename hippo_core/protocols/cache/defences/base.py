"""What every defence takes and returns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hippo_core.models.kv import KV
from hippo_core.models.kv_storage import Precision
from hippo_core.protocols.cache.corruption import rms
from hippo_core.protocols.cache.names import Format

FALSE_ALARMS = 0.01  # the share of clean vectors above the threshold


@dataclass(frozen=True)
class CleanStatistics:
    """What the keys and values of clean text are like.

    Args:
        mean, spread, low, high: of each feature, float32 [L, 2, H, 1, D].
        length, length_spread: of the root mean square of a vector, float32 [L, 2, H, 1, 1].
        threshold: the `anomaly_score` that 99 in 100 clean vectors stay below, float32 [L, 2, H, 1, 1].
    """

    mean: Tensor
    spread: Tensor
    low: Tensor
    high: Tensor
    length: Tensor
    length_spread: Tensor
    threshold: Tensor

    @classmethod
    def of(cls, caches: Sequence[KV]) -> "CleanStatistics":
        """Of these caches [L, 2, H, T, D], all their tokens together."""
        x = torch.cat([kv.float().cpu() for kv in caches], 3)
        lengths = rms(x)
        mean, spread = x.mean(3, keepdim=True), x.std(3, keepdim=True).clamp(min=1e-6)
        threshold = _anomaly_score(x, mean, spread).flatten(3).quantile(1 - FALSE_ALARMS, dim=3)[..., None, None]
        ends = x.amin(3, keepdim=True), x.amax(3, keepdim=True)
        return cls(mean, spread, *ends, lengths.mean(3, keepdim=True), lengths.std(3, keepdim=True).clamp(min=1e-6), threshold)

    def anomaly_score(self, kv: KV) -> Tensor:
        """The mean square of vectors' standardised features, [L, 2, H, T, 1]; infinite where one is not a number."""
        return _anomaly_score(kv.float().cpu(), self.mean, self.spread)


def _anomaly_score(x: Tensor, mean: Tensor, spread: Tensor) -> Tensor:
    return ((x - mean) / spread).pow(2).mean(-1, keepdim=True).nan_to_num(nan=torch.inf)


@dataclass(frozen=True)
class DefenceInput:
    """A damaged cache as a defence gets it.

    Args:
        kv: [L, 2, H, T, D].
        address: which of the caches that were written it is: memory beside a cache is found by it.
        mask: where it is damaged, bool [L, 2, H, T, 1]; for defences that may read it (`uses_oracle_mask`).
        prefix: the KV before it; tokens: its own token ids, for what runs the text again.
        flipped: with which probability a bit of memory beside the cache flipped, too.
    """

    kv: KV
    address: str
    mask: Tensor
    prefix: KV
    tokens: tuple[int, ...]
    flipped: float = 0.0


@dataclass(frozen=True)
class DefenceContext:
    """What defences are made from.

    Args:
        known: the clean caches of validation text that `clean` is of.
        seed: of what a defence draws.
        checkpoint: the folder of a trained repair.
        budget: the share of a cache's spans that may be put back.
        precision: how the store keeps keys and values.
        stored: the format of the cache's numbers.
        priors: what tokens of clean training text are like (wiener.py): one prior of all layers, or, with True, one a layer.
    """

    lm: Any
    clean: CleanStatistics
    known: Sequence[KV] = ()
    seed: int = 0
    checkpoint: Path | None = None
    budget: float = 1.0
    precision: Precision = "bfloat16"
    stored: Format = "bfloat16"
    priors: Callable[[bool], Sequence[Any]] | None = None


class Defence:
    """The base of all defences: it keeps nothing when a cache is written and repairs nothing.

    `uses_oracle_mask`: whether it reads the mask, which says where the damage is. `reads`: whether it reads the damaged cache at all.
    """

    uses_oracle_mask = False
    reads = True

    def __init__(self, setting: DefenceContext) -> None:
        self.setting = setting

    def write(self, kv: KV, address: str, tokens: Sequence[int]) -> int:
        """Called once for each cache when it is written, whole, with its token ids. Returns the bytes that are kept."""
        return 0

    def repair(self, damaged: DefenceInput) -> KV:
        """The cache as it is read: [L, 2, H, T', D], without tokens that are not to be looked at."""
        return damaged.kv

    def suspicion(self, damaged: DefenceInput, repaired: KV) -> Tensor:
        """How likely a vector is damaged, more is likelier, float32 [L, 2, H, T, 1]: here the mean square of what it changed, in
        deviations of clean text."""
        away = (repaired.float().cpu() - damaged.kv.float().cpu()) / self.setting.clean.spread
        return away.pow(2).mean(-1, keepdim=True).nan_to_num(nan=torch.inf)
