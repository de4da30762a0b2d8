"""Who notices damage: what a defence changed, and how well its suspicion tells damaged vectors from those of clean caches (ROC)."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hippo_core.models.kv import KV
from hippo_core.protocols.cache.corruption import Damage

RATES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5)  # of false alarms


def detection(damages: Sequence[Damage], repaired: Sequence[KV]) -> dict[str, float]:
    """`detected`, the share of damaged vectors that a defence changed, and `false_alarms`, that of whole ones; NaN where there are none,
    and where tokens left the cache."""
    if any(now.shape != damage.kv.shape for damage, now in zip(damages, repaired, strict=True)):
        return {"detected": math.nan, "false_alarms": math.nan}
    mask = torch.cat([damage.mask.flatten() for damage in damages])
    pairs = zip(damages, repaired, strict=True)
    touched = torch.cat([((now != damage.kv) & ~(now.isnan() & damage.kv.isnan())).any(-1).flatten() for damage, now in pairs])
    return {"detected": float(touched[mask].float().mean()), "false_alarms": float(touched[~mask].float().mean())}


def roc(damaged: Tensor, clean: Tensor) -> dict[str, Any]:
    """How suspicion tells damaged vectors [N] from clean ones [M]: the area `auc`, and the recall at each of RATES of false alarms. Equal
    scores never count as found: a threshold is crossed by what lies above it."""
    ranked = clean.sort().values
    low, high = (torch.searchsorted(ranked, damaged, right=right) for right in (False, True))
    auc = float((low + high).float().mean() / 2 / len(ranked))
    thresholds = [ranked[max(0, math.ceil((1 - rate) * len(ranked)) - 1)] for rate in RATES]
    recall = [float((damaged > threshold).float().mean()) for threshold in thresholds]
    at_1_percent = recall[RATES.index(0.01)]
    return {"auc": auc, "recall": recall, "recall_at_1_percent": at_1_percent, "damaged": len(damaged), "clean": len(clean)}


class Detections:
    """The curves of a measurement: of each task, fault and defence without the mask. A task's clean caches come before its faults."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self._clean: dict[tuple[str, str], Tensor] = {}

    def see(self, labels: dict[str, Any], damages: Sequence[Damage], suspicions: Sequence[Tensor]) -> None:
        """Suspicions [L, 2, H, T, 1] of caches under one fault; `labels`: task, kind, severity and defence."""
        key = labels["task"], labels["defence"]
        scores = torch.cat([suspicion.flatten() for suspicion in suspicions])
        if labels["severity"] == 0:
            self._clean[key] = scores
            return
        hit = scores[torch.cat([damage.mask.flatten() for damage in damages])]
        if len(hit):
            self.lines.append({**labels, **roc(hit, self._clean[key])})

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"false_alarms": list(RATES), "lines": self.lines}
