"""How far words move when a cache moves a little: the sensitivity of logits, and which layer and head amplifies most.

A perturbation of size d has in each layer, for keys and values apart, a direction that is drawn and d times the length of what is there.
Drift is the distance |z - z'| of the logits, a mean over all positions that read: from the clean cache without a defence, and from the
clean cache behind the same defence, so that what a defence does to a clean cache is told apart. Every defence gets the same perturbation.
The map: one head of one layer at a time moves, drift for each unit of length.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from hippo_core.models.kv import KV
from hippo_core.models.language_model import LanguageModel
from hippo_core.protocols.cache.corruption import generator_of
from hippo_core.protocols.cache.defences.base import Defence, DefenceInput
from hippo_core.protocols.cache.probe import Written
from hippo_core.protocols.cache.repair_training import logits

SIZES = (0.0, 0.1, 0.2, 0.5)
CACHES = 8
MAPPED_SIZE = 0.2  # of the perturbation of a map
MAPPED = 192  # heads times caches at most of a map: 8 caches of 24 heads, 2 of 90


@torch.inference_mode()
def stability(lm: LanguageModel, written: Sequence[Written], defences: Mapping[str, Defence], seed: int) -> dict[str, Any]:
    """Drift along SIZES for each defence that does not read the mask, and the map of layers and heads without one and with each."""
    rows = list(written[:CACHES])
    clean = [row.blocks[0] for row in rows]
    clean_logits = logits(lm, rows, clean)
    free = {name: defence for name, defence in defences.items() if not defence.uses_oracle_mask and name != "recompute"}
    own = {name: logits(lm, rows, _repaired(defence, rows, clean)) for name, defence in free.items()}
    lines = []
    for size in SIZES:
        moved = [perturbed(kv, size, seed, row.address(0)) for kv, row in zip(clean, rows, strict=True)]
        for name, defence in free.items():
            now = logits(lm, rows, _repaired(defence, rows, moved))
            lines.append({"delta": size, "defence": name, "drift": drift(clean_logits, now), "drift_from_own_clean": drift(own[name], now)})
    shown = [name for name in ("none", "learned", "wiener", "episodic") if name in free]
    few = max(1, min(len(rows), MAPPED // (clean[0].shape[0] * clean[0].shape[2])))
    maps = {name: amplification(lm, rows[:few], clean[:few], free[name], own[name][:few], seed) for name in shown}
    settings = {"sizes": SIZES, "caches": len(rows), "mapped": few, "seed": seed}
    return {"logit_sensitivity": lines, "amplification_map": maps, "settings": settings}


def perturbed(kv: KV, size: float, seed: int, name: str) -> KV:
    """A cache [L, 2, H, T, D] moved by `size` times its length in each layer, keys and values apart."""
    direction = torch.randn(kv.shape, generator=generator_of("perturbation", seed, name)).to(kv)
    lengths = [x.flatten(2).norm(dim=-1)[:, :, None, None, None] for x in (kv, direction)]
    return kv + size * direction * lengths[0] / lengths[1]


def amplification(
    lm: LanguageModel, rows: Sequence[Written], clean: Sequence[KV], defence: Defence, own: Sequence[Tensor], seed: int
) -> list[list[float | None]]:
    """Drift for each unit of perturbation where only one head moves: [L][H]."""
    layers, _, heads, _, _ = clean[0].shape
    drifts, perturbed_caches = [], [perturbed(kv, MAPPED_SIZE, seed, row.address(0)) for kv, row in zip(clean, rows, strict=True)]
    for layer in range(layers):
        line: list[float | None] = []
        for head in range(heads):
            moved = [kv.clone() for kv in clean]
            units = 0.0
            for shifted, kv, there in zip(moved, clean, perturbed_caches, strict=True):
                shifted[layer, :, head] = there[layer, :, head]
                units += float((shifted - kv).norm()) / len(clean)
            moves = drift(own, logits(lm, rows, _repaired(defence, rows, moved)))
            line.append(None if moves is None else moves / units)
        drifts.append(line)
    return drifts


def drift(before: Sequence[Tensor], after: Sequence[Tensor]) -> float | None:
    """The mean distance of logits [R, V] over all positions; None where one is not a number, as behind what a code "mended" to infinity."""
    distance = float(torch.cat([(b - a).norm(dim=-1) for a, b in zip(before, after, strict=True)]).mean())
    return distance if math.isfinite(distance) else None


def _repaired(defence: Defence, rows: Sequence[Written], caches: Sequence[KV]) -> list[KV]:
    nowhere = torch.zeros(*caches[0].shape[:3], 1, 1, dtype=torch.bool)
    return [
        defence.repair(DefenceInput(kv, row.address(0), nowhere.expand(*kv.shape[:4], 1), row.prefix, row.probe.blocks[0]))
        for kv, row in zip(caches, rows, strict=True)
    ]
