"""Training a repair by self-distillation: the model that reads a repaired cache is to say what it says behind the clean one.

    loss = KL(clean || repaired) / KL(clean || damaged), means over all positions that read: the damage that is not recovered
         + identity * |repaired - clean|^2 / |clean|^2            where nothing was damaged; the divisor is then LEAST
         + contraction * mean over layers of max(0, rho - alpha)^2, rho = |repaired - clean| / |damaged - clean|

First steps only restore: the loss is the mean of rho^2, and no model is run. The model is frozen; clean keys and values are those of the
undamaged cache at every layer. Text, questions and worlds are of the training split; what is examined is of the validation split.
"""

import math
from collections.abc import Sequence
from random import Random
from statistics import fmean
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor
from torch.nn.functional import kl_div, pad
from transformers import DynamicCache

from hippo_core.models.kv import KV
from hippo_core.models.language_model import LanguageModel
from hippo_core.protocols.cache.corruption import Corruption
from hippo_core.protocols.cache.defences.base import CleanStatistics
from hippo_core.protocols.cache.defences.learned import Repair, RepairSettings
from hippo_core.protocols.cache.names import Format
from hippo_core.protocols.cache.probe import Written, cost_meter, damaged, write
from hippo_core.protocols.cache.probes import probes
from hippo_core.training.train import Diverged, Log, set_rates, share_of_rate

TASKS = ("text", "choice", "needle")
EXAMINED = 6  # probes a task
LEAST = 0.1  # nats by which a distance is divided
HUGE = 1e6  # a number as good as any larger one


class RepairRecipe(BaseModel):
    """Everything that a repair depends on, but for the model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    settings: RepairSettings
    kinds: tuple[str, ...]  # of fault that are trained on
    stored: Format
    seed: int = 1337
    steps: int = 300
    mending: float = 0.6  # share of the steps, the first, that only bring keys and values back to what they were: no model is run
    batch: int = 8
    probes: int = 64  # a task
    rate: float = 2e-2  # AdamW
    warmup: int = 20
    cooldown: float = 0.6
    clean: float = 0.2  # of batches, undamaged
    identity: float = 1.0
    contraction: float = 0.5
    alpha: float = 0.75  # what rho is to stay below
    threads: int = 1


class RepairTrainee:
    """A repair on a loaded model as a trainee."""

    def __init__(self, recipe: RepairRecipe, lm: LanguageModel) -> None:
        self.recipe, self.lm = recipe, lm
        lm.model.requires_grad_(False)
        self.written = [cache for task in TASKS for cache in write(lm, probes(lm, task, recipe.probes, recipe.seed, "train"))]
        self.kept = [cache for task in TASKS for cache in write(lm, probes(lm, task, EXAMINED, recipe.seed, "val"))]
        caches = [kv for cache in self.written for kv in cache.blocks]
        self.repair = Repair(recipe.settings, CleanStatistics.of(caches), recipe.seed)
        self.repair.start_from(caches)
        self.history: list[dict[str, Any]] = []  # a row a step that this process learnt from
        self.optimizers: list[torch.optim.Optimizer] = [torch.optim.AdamW(self.repair.parameters(), lr=recipe.rate, weight_decay=0.0)]

    def weights(self) -> dict[str, Tensor]:
        return dict(self.repair.named_parameters())

    def learn(self, step: int) -> Log:
        recipe, random = self.recipe, Random(f"repair/{self.recipe.seed}/{step}")
        set_rates(self.optimizers, (recipe.rate,), share_of_rate(step, recipe.steps, recipe.warmup, recipe.cooldown))
        task = random.choice(TASKS)
        own = [number for number, cache in enumerate(self.written) if cache.probe.task == task]
        drawn = random.sample(own, min(recipe.batch, len(own)))
        fault = None
        if random.random() >= recipe.clean:
            fault = Corruption(random.choice(recipe.kinds), 1 - random.random(), stored=recipe.stored)
        mends = step < recipe.mending * recipe.steps
        with cost_meter(self.lm.device) as cost:
            loss, numbers = self._learnt(drawn, fault, step, mends)
        tokens = sum(len(self.written[number].probe.reads[self.written[number].probe.gold]) for number in drawn)
        cost["tokens_per_s"] = tokens / cost["seconds"]
        empty = dict.fromkeys(("distance", "identity", "contraction", "rho"), math.nan)
        labels = {"kind": fault.kind if fault else "clean", "severity": fault.severity if fault else 0.0}
        shown = {name: value for name, value in numbers.items() if name != "bare"}
        self.history.append({"number": step + 1, **empty, **labels, **shown, "loss": loss, **cost})
        return numbers

    def _learnt(self, drawn: Sequence[int], fault: Corruption | None, step: int, mends: bool) -> tuple[float, Log]:
        """The loss of a batch, which is learnt from, and numbers for the log."""
        loss, numbers = self._loss(self.written, drawn, fault, self.recipe.seed + step, mends)
        if not torch.isfinite(loss):
            raise Diverged(f"step {step} of a repair: the loss is {float(loss.detach())}; lower the rate")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.repair.parameters(), 1.0)
        self.optimizers[0].step()
        self.repair.zero_grad(set_to_none=True)
        return float(loss.detach()), numbers

    def examine(self) -> Log:
        """What `by_kind` comes to: undamaged, and the means over all kinds of damage, not repaired and repaired."""
        distances, kinds = self.by_kind(), self.recipe.kinds
        damaged, repaired = (fmean(distances[f"{kind}{end}"] for kind in kinds) for end in (" bare", ""))
        return {"clean": distances["clean"], "damaged": damaged, "repaired": repaired}

    @torch.no_grad()
    def by_kind(self) -> Log:
        """On validation probes, of each kind at severity .5 the distance from the clean model's words, repaired and not; and undamaged."""
        numbers = list(range(len(self.kept)))
        distances = {"clean": self._loss(self.kept, numbers, None, 0)[1]["distance"]}
        for kind in self.recipe.kinds:
            measured = self._loss(self.kept, numbers, Corruption(kind, 0.5, stored=self.recipe.stored), 0)[1]
            distances |= {kind: measured["distance"], f"{kind} bare": measured["bare"]}
        return distances

    def _loss(
        self, written: Sequence[Written], drawn: Sequence[int], fault: Corruption | None, seed: int, mends: bool = False
    ) -> tuple[Tensor, Log]:
        """The loss of a batch, and numbers for the log. `mends`: of keys and values alone."""
        rows = [written[number] for number in drawn]
        clean = [cache.blocks[0] for cache in rows]
        broken = [damaged(written, number, fault, seed)[0].kv for number in drawn] if fault else clean
        repaired = [self.repair(kv) for kv in broken]
        away = torch.stack([_norm(cache - kv) for cache, kv in zip(repaired, clean, strict=True)])  # [B, L]
        lengths = torch.stack([_norm(kv) for kv in clean])
        was = torch.stack([_norm(bad.nan_to_num().clamp(-HUGE, HUGE) - kv) for bad, kv in zip(broken, clean, strict=True)])
        identity = (away / lengths).pow(2).mean()
        rho = (away / was.clamp(min=1e-6))[was > 1e-6] if fault else away.flatten()[:0]
        numbers = {"identity": float(identity.detach())} if fault is None else {"rho": float(rho.detach().median())}
        if mends:
            return rho.clamp(max=3).pow(2).mean() if len(rho) else 10 * identity, numbers
        with torch.no_grad():
            wanted = logits(self.lm, rows, clean)
            bare = _distance(wanted, logits(self.lm, rows, broken)) if fault else torch.zeros(())
        distance = _distance(wanted, logits(self.lm, rows, repaired))
        numbers |= {"distance": float(distance.detach()), "bare": float(bare)}
        loss = distance / bare.clamp(min=LEAST)
        if fault is None:
            return loss + self.recipe.identity * identity, numbers
        contraction = (rho - self.recipe.alpha).clamp(min=0, max=10).pow(2).mean() if len(rho) else away.sum() * 0
        return loss + self.recipe.contraction * contraction, numbers | {"contraction": float(contraction.detach())}


def _norm(kv: KV) -> Tensor:
    """The length of each layer's keys and values together: [L]."""
    return kv.float().flatten(1).pow(2).sum(1).clamp(min=1e-12).sqrt()


def _distance(wanted: Sequence[Tensor], got: Sequence[Tensor]) -> Tensor:
    """KL(wanted || got) in nats a position; what is not a number counts as even odds."""
    parts = [kl_div(b.nan_to_num(0.0).log_softmax(-1), a.log_softmax(-1), log_target=True, reduction="none").sum(-1)
             for a, b in zip(wanted, got, strict=True)]  # fmt: skip
    return torch.cat(parts).clamp(max=20).mean()


def logits(lm: LanguageModel, rows: Sequence[Written], caches: Sequence[KV]) -> list[Tensor]:
    """What the model says at each position that is scored, behind each cache: [R, V] each. Gradients flow through the caches."""
    reads = [row.probe.reads[row.probe.gold] for row in rows]
    width, longest = max(map(len, reads)), max(kv.shape[3] for kv in caches)
    begin = rows[0].prefix.shape[3]
    cache = DynamicCache()
    padded = torch.stack([pad(kv, (0, 0, longest - kv.shape[3], 0)) for kv in caches])  # [B, L, 2, H, T, D]
    for layer in range(padded.shape[1]):
        before = rows[0].prefix[layer].expand(len(rows), -1, -1, -1, -1)
        keys, values = torch.cat([before, padded[:, layer]], 3).unbind(1)
        cache.update(keys, values, layer)
    ids = torch.tensor([[*read, *[0] * (width - len(read))] for read in reads], device=lm.device)
    mask = torch.ones(len(rows), begin + longest + width, dtype=torch.long, device=lm.device)
    for number, kv in enumerate(caches):
        mask[number, begin : begin + longest - kv.shape[3]] = 0
    positions = torch.tensor([[row.probe.start + offset for offset in range(width)] for row in rows], device=lm.device)
    out = lm.model(input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True).logits.float()
    skips = [row.probe.skip[row.probe.gold] for row in rows]
    return [out[number, skip - 1 : len(read) - 1] for number, (skip, read) in enumerate(zip(skips, reads, strict=True))]
