"""Break, repair, read: the rows of the experiment `cache`. Every defence gets the same damaged cache."""

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from hippo_core.files import home, remove_made, write_bytes, write_json
from hippo_core.models import checksums
from hippo_core.models.kv import KV
from hippo_core.models.language_model import LanguageModel
from hippo_core.protocols.cache.corruption import KINDS, Corruption, Damage, faults, flip_probability
from hippo_core.protocols.cache.defences import load_defence
from hippo_core.protocols.cache.defences.base import CleanStatistics, Defence, DefenceContext, DefenceInput
from hippo_core.protocols.cache.defences.learned import RepairSettings, save_repair
from hippo_core.protocols.cache.defences.wiener import Priors
from hippo_core.protocols.cache.names import UNSEEN
from hippo_core.protocols.cache.probe import Written, cost_meter, damaged, read, write
from hippo_core.protocols.cache.probes import asked_probes, probes
from hippo_core.protocols.cache.removal import remove
from hippo_core.protocols.cache.repair_training import RepairRecipe, RepairTrainee
from hippo_core.protocols.cache.stability import stability
from hippo_core.protocols.cache.table import COLUMNS, STABILITY, TRAIN, TRAIN_LOG, task_metrics
from hippo_core.training.train import train

CHECKPOINTS = "data/training/cache"
DRY_STEPS = 4
CLEAN = 24  # validation contexts that say what clean text is like
PART = 64  # probes whose caches are held at a time: a donor and the store are of the same part
RATES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5)  # of false alarms


def rows(cell: Any, say: Callable[[str], None] = print) -> pd.DataFrame:
    """The rows of a cell's step: its training steps, what was measured, or what the loss of bits costs."""
    return {"train": train_repair, "measure": measure, "remove": remove}[cell.parameters.step](cell, say)


def train_repair(cell: Any, say: Callable[[str], None] = print) -> pd.DataFrame:
    """A row a step of the training of a repair, which lies in the record when it is done; one that was killed goes on from its checkpoint.
    `cell.examined` and `cell.numbers`: the last evaluation on validation probes, and how many numbers were trained."""
    parameters, lm = cell.parameters, cell.language_model
    layers = None if parameters.repaired is None else tuple(parameters.repaired)
    settings = RepairSettings(rank=parameters.rank, parts=parameters.repaired_parts, layers=layers)
    names = ("model", "stored", "seed", "contraction", "alpha", "identity", "threads", "rate", "batch", "mending", "warmup", "cooldown")
    own = {name: getattr(parameters, name) for name in names} | {"probes": parameters.trained_on, "clean": parameters.clean_share}
    steps = min(parameters.steps, DRY_STEPS) if parameters.dry_run else parameters.steps
    kinds = tuple(kind for kind in KINDS if kind not in (parameters.holdout, *UNSEEN))
    recipe = RepairRecipe(settings=settings, kinds=kinds, steps=steps, **own)
    settings_used = recipe.model_dump(mode="json")
    folder = home() / CHECKPOINTS / checksums.digest([settings_used, checksums.weights(parameters.model), str(cell.record)])[:24]
    trainee = RepairTrainee(recipe, lm)
    train(trainee, folder, say, every=max(1, steps // 2))
    cell.examined, cell.numbers = trainee.by_kind(), trainee.repair.number
    save_repair(trainee.repair, cell.record, {"recipe": settings_used, "model": parameters.model})
    remove_made(folder)
    return pd.DataFrame(trainee.history, columns=list(TRAIN.columns))


def measure(cell: Any, say: Callable[[str], None] = print) -> pd.DataFrame:
    """A row for every probe, fault and defence; what they come to lies beside them as `task_metrics.json`. LabError for a layer, head or
    window that a cache does not have."""
    parameters, lm = cell.parameters, cell.language_model
    measured: list[dict[str, Any]] = []
    priors, watch = Priors(lm, parameters.seed), Detections()
    for task, drawn in asked_probes(cell, say).items():
        begin, known = time.perf_counter(), write(lm, probes(lm, task, CLEAN, parameters.seed, "val"))
        size = math.ceil(len(drawn) / math.ceil(len(drawn) / PART))  # no part of one probe: it would have no donor
        for at in range(0, len(drawn), size):
            written = write(lm, drawn[at : at + size])
            defences, kept_bytes = build_defences(lm, known, written, parameters, cell.checkpoint, priors)
            first = not measured
            measured += of_task(lm, task, written, parameters, defences, kept_bytes, None if at else watch)
            if first:
                write_json(cell.record / STABILITY, stability(lm, written, defences, parameters.seed))
        say(f"{task}: {len(drawn)} probes in {time.perf_counter() - begin:.0f} s; {len(measured)} rows so far")
    table = pd.DataFrame(measured, columns=list(COLUMNS))
    write_json(cell.record / "detection_metrics.json", watch.plain())
    write_json(cell.record / "task_metrics.json", task_metrics(table))
    if cell.checkpoint:
        write_bytes(cell.record / TRAIN_LOG, (cell.checkpoint / TRAIN_LOG).read_bytes())
    return table


def build_defences(
    lm: LanguageModel, known: Sequence[Written], written: Sequence[Written], parameters: Any, checkpoint: Path | None, priors: Priors
) -> tuple[dict[str, Defence], dict[str, float]]:
    """The defences of a task, each of which has seen the caches when they were written, and the bytes a cache that each keeps. `known`: the
    clean caches of its validation texts."""
    caches = [kv for cache in known for kv in cache.blocks]
    own = {name: getattr(parameters, name) for name in ("seed", "budget", "precision", "stored")}
    setting = DefenceContext(lm, CleanStatistics.of(caches), caches, checkpoint=checkpoint, priors=priors, **own)
    defences = {name: load_defence(name, setting) for name in dict.fromkeys(["none", *parameters.defences])}
    blocks = [(kv, at.address(block), at.probe.blocks[block]) for at in written for block, kv in enumerate(at.blocks)]
    kept_bytes = {name: sum(defence.write(*block) for block in blocks) / len(written) for name, defence in defences.items()}
    return defences, kept_bytes


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


def of_task(
    lm: LanguageModel,
    task: str,
    written: Sequence[Written],
    parameters: Any,
    defences: Mapping[str, Defence],
    kept_bytes: Mapping[str, float],
    watch: Detections | None = None,
) -> Iterator[dict[str, Any]]:
    """The rows of a task: the clean cache under every defence, then each fault at each severity. The same caches are read once, whichever
    defence made them; a defence that reads no damage is run once."""
    scores: dict[bytes, tuple[list[dict[str, float]], dict[str, float]]] = {}
    repaired_once: dict[str, tuple[list[tuple[KV, ...]], dict[str, float]]] = {}
    tokens = sum(len(row) for at in written for row in at.probe.reads)
    for kind, fault in [("clean", Corruption("gaussian", 0.0)), *faults(parameters)]:
        damages = [damaged(written, number, fault, parameters.seed) for number in range(len(written))]
        hit = [sum(float(damage.mask.float().mean()) for damage in of) / len(of) for of in damages]
        given = [[_given(at, block, damage, fault) for block, damage in enumerate(of)] for at, of in zip(written, damages, strict=True)]
        for name, defence in defences.items():
            repaired, repairing = repaired_once.get(name, ([], {}))
            if not repaired:
                with cost_meter(lm.device) as repairing:
                    repaired = [tuple(map(defence.repair, of)) for of in given]
            if not defence.reads:
                repaired_once[name] = repaired, repairing
            caches = contents(repaired)
            if caches not in scores:
                with cost_meter(lm.device) as reading:
                    scores[caches] = read(lm, written, repaired), reading
            read_scores, reading = scores[caches]
            costs = {"repair_ms": repairing["seconds"] * 1000 / len(given), "kept_bytes": kept_bytes[name]}
            costs["tokens_per_s"] = tokens / (repairing["seconds"] + reading["seconds"])
            costs |= {peak: float(np.fmax(repairing[peak], reading[peak])) for peak in ("peak_mb", "gpu_peak_mb")}
            detections = [detection(of, now) for of, now in zip(damages, repaired, strict=True)]
            labels = {"task": task, "kind": kind if fault.severity else "clean", "severity": fault.severity, "defence": name}
            if watch and defence.reads and not defence.uses_oracle_mask and name != "none":
                pairs = zip(chain(*given), chain(*repaired), strict=True)
                watch.see(labels, list(chain(*damages)), [defence.suspicion(own, kv) for own, kv in pairs])
            for at, of, share, seen in zip(written, read_scores, hit, detections, strict=True):
                named = {"probe": at.probe.id, "cluster": at.probe.cluster, "chance": at.probe.chance}
                yield {**named, **labels, **of, **seen, "damaged": share, **costs}


def contents(caches: Sequence[Sequence[KV]]) -> bytes:
    """A checksum of caches: the same for the same numbers in the same shapes."""
    checksum = hashlib.sha256()
    for kv in chain(*caches):
        checksum.update(repr(tuple(kv.shape)).encode())
        checksum.update(kv.cpu().contiguous().view(torch.uint8).numpy().data)
    return checksum.digest()


def _given(at: Written, block: int, damage: Damage, fault: Corruption) -> DefenceInput:
    flipped = flip_probability(fault.severity) if fault.kind == "bitflip" else 0.0
    return DefenceInput(damage.kv, at.address(block), damage.mask, at.prefix, at.probe.blocks[block], flipped)
