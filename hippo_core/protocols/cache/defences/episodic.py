"""Repair from the episodic store: the damaged cache is the cue, what is recalled shows where the damage is, and is put back.

    recall   the stored cache that shares most with the damaged one (spans.py); nothing says which it is
    verify   it must be liker to the damaged one than clean caches of different texts are to each other; else nothing is done
    detect   vectors that are not what was recalled, but for the store's rounding
    repair   of the spans with most of them, `budget` of all spans, these vectors are put back

Nothing reads where the damage is, but `Gold`, a bound. Controls choose as many spans otherwise, as RepairKV's Random-K and Oldest-K do.
"""

from collections.abc import Sequence
from itertools import combinations, islice
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from hippo_core.models.kv import KV
from hippo_core.protocols.cache.corruption import generator_of
from hippo_core.protocols.cache.defences.base import Defence, DefenceContext, DefenceInput
from hippo_core.protocols.cache.spans import SPAN, SpanStore, cosine, differs

PAIRS = 200  # of different clean texts, that say how alike two may be


class Episodic(Defence):
    name = "episodic"

    def __init__(self, setting: DefenceContext) -> None:
        super().__init__(setting)
        self._folder = TemporaryDirectory(prefix="hippo-cache-")
        self.store = SpanStore(setting.lm, setting.clean, Path(self._folder.name), setting.precision)
        self.alike = alike(self.store, setting.known)

    def write(self, kv: KV, address: str, tokens: Sequence[int]) -> int:
        return self.store.write(kv, address, tokens)

    def repair(self, damaged: DefenceInput) -> KV:
        address = self.recalled(damaged)
        kept = self.store.stored(address, damaged.kv.shape[3]) if address else None
        if kept is None or not self.trusts(damaged, kept):
            return damaged.kv
        wrong = differs(damaged.kv, kept, self.setting.precision)
        chosen = self.chosen(damaged, wrong).to(wrong.device)
        return torch.where(wrong & chosen.repeat_interleave(SPAN)[: kept.shape[3]].view(1, 1, 1, -1, 1), kept.to(damaged.kv), damaged.kv)

    def recalled(self, damaged: DefenceInput) -> str:
        """The address of the cache that is put back."""
        return self.store.recall(damaged.kv)

    def trusts(self, damaged: DefenceInput, kept: KV) -> bool:
        """Whether what was recalled is the damaged cache as it was."""
        return self.store.likeness(damaged.kv, kept) > self.alike

    def chosen(self, damaged: DefenceInput, wrong: Tensor) -> Tensor:
        """Which spans are put back, bool [S]: of those with damage the worst."""
        return self.most(by_span(wrong))

    def most(self, damage: Tensor) -> Tensor:
        """The spans with most damage [S], as many as the budget allows, earlier ones first of equals."""
        chosen = torch.zeros(len(damage), dtype=torch.bool)
        chosen[damage.argsort(descending=True, stable=True)[: self.allowed(len(damage))]] = True
        return chosen

    def allowed(self, spans: int) -> int:
        """How many spans may be put back."""
        return ceil(self.setting.budget * spans)


class Random(Episodic):
    """As many spans, drawn."""

    name = "episodic_random"

    def chosen(self, damaged: DefenceInput, wrong: Tensor) -> Tensor:
        count = len(by_span(wrong))
        order = torch.randperm(count, generator=generator_of("spans", self.setting.seed, damaged.address))
        return torch.isin(torch.arange(count), order[: self.allowed(count)])


class Oldest(Episodic):
    """The oldest spans."""

    name = "episodic_oldest"

    def chosen(self, damaged: DefenceInput, wrong: Tensor) -> Tensor:
        return torch.arange(count := len(by_span(wrong))) < self.allowed(count)


class Gold(Episodic):
    """Told which cache it is and where the damage is: the bound of what the store can bring."""

    name = "episodic_gold"
    uses_oracle_mask = True

    def recalled(self, damaged: DefenceInput) -> str:
        return damaged.address

    def trusts(self, damaged: DefenceInput, kept: KV) -> bool:
        return True

    def chosen(self, damaged: DefenceInput, wrong: Tensor) -> Tensor:
        return self.most(by_span(damaged.mask))


def by_span(mask: Tensor) -> Tensor:
    """The damaged vectors of each span of a mask [L, 2, H, T, 1]: [S]."""
    by_token = mask.float().sum((0, 1, 2, 4)).cpu()
    return torch.stack([part.sum() for part in by_token.split(SPAN)])


def alike(store: SpanStore, known: Sequence[KV]) -> float:
    """How alike 99 in 100 pairs of clean caches of different texts are at most."""
    likenesses = []
    for one, two in islice(combinations([store.standardised(kv) for kv in known], 2), PAIRS):
        tokens = min(one.shape[3], two.shape[3])
        likenesses.append(cosine(one[:, :, :, :tokens], two[:, :, :, :tokens]))
    return float(torch.tensor(likenesses or [0.0]).quantile(0.99))
