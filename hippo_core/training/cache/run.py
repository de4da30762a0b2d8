"""Break, repair, read: the rows of the experiment `cache`. Every defence gets the same damaged cache."""

import hashlib
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from hippo_core.cache.corruption import KINDS, Corruption, Damage, corrupt, flip_probability
from hippo_core.cache.defences import load_defence
from hippo_core.cache.defences.base import Clean, Damaged, Defence, Setting
from hippo_core.cache.repair import RepairSettings, save_repair
from hippo_core.experiments.cache.table import COLUMNS, TRAIN, kept, task_metrics
from hippo_core.files import home, write_bytes, write_json
from hippo_core.models import checksums
from hippo_core.models.ask import Ask, ask
from hippo_core.models.kv import KV
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.prompt import stops
from hippo_core.models.score import log_likelihood_behind
from hippo_core.results.figures import cache, drawing
from hippo_core.results.scores import em_norm
from hippo_core.suites import get_suite
from hippo_core.training.cache.priors import Priors
from hippo_core.training.cache.probes import probes
from hippo_core.training.cache.repair_training import RepairRecipe, RepairTrainee
from hippo_core.training.cache.stability import stability
from hippo_core.training.cache.written import BATCH, Written, donor_of, write
from hippo_core.training.train import train

WORKSHOP = "data/training/cache"
DRY_STEPS = 4
CLEAN = 24  # validation contexts that say what clean text is like


def rows(cell: Any, say: Callable[[str], None] = print) -> pd.DataFrame:
    """The rows of a cell's step: what its training met, or what was measured."""
    return train_repair(cell, say) if cell.parameters.step == "train" else measure(cell, say)


def train_repair(cell: Any, say: Callable[[str], None] = print) -> pd.DataFrame:
    """A row a step of the training of a repair, which lies in the record when it is done; one that was killed goes on from its checkpoint.

    `cell.examined` and `cell.numbers` say what the last look at validation probes found, and how many numbers were trained.
    """
    parameters, lm = cell.parameters, cell.language_model
    layers = None if parameters.repaired is None else tuple(parameters.repaired)
    settings = RepairSettings(family=parameters.family, rank=parameters.rank, parts=parameters.repaired_parts, layers=layers)
    own = {name: getattr(parameters, name) for name in ("model", "stored", "seed", "contraction", "identity", "threads")}
    steps = min(parameters.steps, DRY_STEPS) if parameters.dry_run else parameters.steps
    kinds = tuple(kind for kind in KINDS if kind != parameters.holdout)
    recipe = RepairRecipe(settings=settings, kinds=kinds, steps=steps, **own)
    workshop = (
        home() / WORKSHOP / checksums.digest([recipe.model_dump(mode="json"), checksums.weights(parameters.model), str(cell.record)])[:24]
    )
    trainee = RepairTrainee(recipe, lm)
    train(trainee, workshop, say, every=max(1, steps // 2))
    cell.examined, cell.numbers = trainee.examine(), trainee.repair.number
    save_repair(trainee.repair, cell.record, {"recipe": recipe.model_dump(mode="json"), "model": parameters.model})
    shutil.rmtree(workshop, ignore_errors=True)
    return pd.DataFrame(trainee.met, columns=list(TRAIN.columns))


def measure(cell: Any, say: Callable[[str], None] = print) -> pd.DataFrame:
    """A row for every probe, fault and defence; what they come to lies beside them as `task_metrics.json` and figures.

    Raises:
        LabError: a layer, head or window that a cache does not have.
    """
    parameters, lm = cell.parameters, cell.language_model
    found: list[dict[str, Any]] = []
    priors = Priors(lm, parameters.seed)
    for number, task in enumerate(parameters.tasks):
        written = write(lm, probes(lm, task, parameters.items, parameters.seed, "test"))
        begin = time.perf_counter()
        defences, kept_bytes = guarded(lm, task, written, parameters, cell.checkpoint, priors)
        own = list(of_task(lm, task, written, parameters, defences, kept_bytes))
        if not number:
            write_json(cell.record / "stability_metrics.json", measured := stability(lm, written, defences, parameters.seed))
            write_bytes(cell.record / "figures" / "figC_logit_sensitivity.png", drawing.png(cache.sensitivity(measured)))
            write_bytes(cell.record / "figures" / "figD_amplification_map.png", drawing.png(cache.amplification(measured)))
        say(f"{task}: {len(written)} probes, {len(own)} rows in {time.perf_counter() - begin:.0f} s")
        found += own
    table = pd.DataFrame(found, columns=list(COLUMNS))
    keep_seed_files(cell.record, table)
    return table


def keep_seed_files(record: Path, table: pd.DataFrame) -> None:
    """Write the metrics and the figures that the cache protocol names, under its names."""
    write_json(record / "task_metrics.json", task_metrics(table))
    write_bytes(record / "figures" / "figA_score_vs_eps.png", drawing.png(cache.robustness(kept(table))))
    write_bytes(record / "figures" / "figB_clean_vs_overhead_pareto.png", drawing.png(cache.cost(table)))


def guarded(
    lm: LanguageModel, task: str, written: Sequence[Written], parameters: Any, checkpoint: Path | None, priors: Priors
) -> tuple[dict[str, Defence], dict[str, float]]:
    """The defences of a task, each of which has seen the caches when they were written, and the bytes a cache that each keeps."""
    known = write(lm, probes(lm, task, CLEAN, parameters.seed, "val"))
    caches = [kv for one in known for kv in one.blocks]
    own = {name: getattr(parameters, name) for name in ("seed", "budget", "precision", "stored")}
    setting = Setting(lm, Clean.of(caches), caches, checkpoint=checkpoint, priors=priors, **own)
    defences = {name: load_defence(name, setting) for name in dict.fromkeys(["none", *parameters.defences])}
    kept_bytes = {name: sum(_write(defence, written)) / len(written) for name, defence in defences.items()}
    return defences, kept_bytes


def of_task(
    lm: LanguageModel,
    task: str,
    written: Sequence[Written],
    parameters: Any,
    defences: Mapping[str, Defence],
    kept_bytes: Mapping[str, float],
) -> Iterator[dict[str, Any]]:
    """The rows of a task: the clean cache under every defence, then each fault at each severity.

    The same caches are read once, whoever brought them; a defence that reads no damage is run once.
    """
    said: dict[bytes, list[dict[str, float]]] = {}
    alike: dict[str, tuple[list[tuple[KV, ...]], float]] = {}
    faults = [Corruption("gaussian", 0.0), *(fault(parameters, kind, s) for kind in parameters.kinds for s in parameters.severities)]
    for one in faults:
        damages = [damaged(written, number, one, parameters.seed) for number in range(len(written))]
        hit = [sum(float(damage.mask.float().mean()) for damage in of) / len(of) for of in damages]
        for name, defence in defences.items():
            repaired, ms = alike.get(name) or _repaired(defence, written, damages, one)
            if not defence.reads:
                alike[name] = repaired, ms
            caches = contents(repaired)
            if caches not in said:
                said[caches] = read(lm, written, repaired)
            noticed = [detection(of, now) for of, now in zip(damages, repaired, strict=True)]
            told = {"task": task, "kind": one.kind if one.severity else "clean", "severity": one.severity, "defence": name}
            for at, of, share, seen in zip(written, said[caches], hit, noticed, strict=True):
                named = {"probe": at.probe.id, "cluster": at.probe.cluster, "chance": at.probe.chance}
                yield {**named, **told, **of, **seen, "damaged": share, "repair_ms": ms, "kept_bytes": kept_bytes[name]}


def _repaired(
    defence: Defence, written: Sequence[Written], damages: Sequence[Sequence[Damage]], one: Corruption
) -> tuple[list[tuple[KV, ...]], float]:
    """The caches as a defence leaves them, and how many milliseconds a probe that takes."""
    begin = time.perf_counter()
    repaired = [tuple(defence.repair(_seen(at, block, damage, one)) for block, damage in enumerate(of))
                for at, of in zip(written, damages, strict=True)]  # fmt: skip
    return repaired, (time.perf_counter() - begin) * 1000 / len(written)


def contents(caches: Sequence[Sequence[KV]]) -> bytes:
    """A checksum of caches: the same for the same numbers in the same shapes."""
    found = hashlib.sha256()
    for kv in (kv for of in caches for kv in of):
        found.update(repr(tuple(kv.shape)).encode())
        found.update(kv.cpu().contiguous().view(torch.uint8).numpy().data)
    return found.digest()


def _write(defence: Defence, written: Sequence[Written]) -> list[int]:
    return [defence.write(kv, at.address(block), at.probe.blocks[block]) for at in written for block, kv in enumerate(at.blocks)]


def _seen(at: Written, block: int, damage: Damage, one: Corruption) -> Damaged:
    flipped = flip_probability(one.severity) if one.kind == "bitflip" else 0.0
    return Damaged(damage.kv, at.address(block), damage.mask, at.prefix, at.probe.blocks[block], flipped)


def detection(damages: Sequence[Damage], repaired: Sequence[KV]) -> dict[str, float]:
    """`detected`, the share of damaged vectors that a defence changed, and `false_alarms`, that of whole ones; NaN where there are none,
    and where tokens left the cache."""
    if any(now.shape != damage.kv.shape for damage, now in zip(damages, repaired, strict=True)):
        return {"detected": math.nan, "false_alarms": math.nan}
    mask = torch.cat([damage.mask.flatten() for damage in damages])
    pairs = zip(damages, repaired, strict=True)
    touched = torch.cat([((now != one.kv) & ~(now.isnan() & one.kv.isnan())).any(-1).flatten() for one, now in pairs])
    return {"detected": float(touched[mask].float().mean()), "false_alarms": float(touched[~mask].float().mean())}


def fault(parameters: Any, kind: str, severity: float) -> Corruption:
    """The fault that the parameters of a cell ask for."""
    axes = {name: None if (value := getattr(parameters, name)) is None else tuple(value) for name in ("layers", "heads", "window")}
    own = {name: getattr(parameters, name) for name in ("times", "recent", "parts", "stored", "bits")}
    return Corruption(kind, severity, **axes, **own)


def damaged(written: Sequence[Written], number: int, one: Corruption, seed: int) -> list[Damage]:
    """The damage of each block of a probe; the donor is the longest of the other probes' next blocks that has as many tokens."""
    at = written[number]
    found = []
    for block, kv in enumerate(at.blocks):
        donor = donor_of(written, number, kv.shape[3]) if one.kind == "contiguous_overwrite" else None
        found.append(corrupt(kv, one, seed, at.address(block), donor))
    return found


def read(lm: LanguageModel, written: Sequence[Written], repaired: Sequence[Sequence[KV]]) -> list[dict[str, float]]:
    """What each probe reads: `loss`, nats a token of what is right, and `score`.

    The score of text is the share of tokens that are the likeliest by e^-loss, the geometric mean of their probabilities; of a choice
    whether the right answer is the likeliest, of a question in words whether the answer is right. A likelihood that is not a number, or
    less than a guess among all tokens, counts as that guess.
    """
    pairs = [(number, row) for number, at in enumerate(written) for row in range(len(at.probe.reads))]
    before = [(written[number].prefix, *repaired[number]) for number, _ in pairs]
    starts = [written[number].probe.start for number, _ in pairs]
    rows = [list(written[number].probe.reads[row]) for number, row in pairs]
    worst = math.log(lm.config.vocab_size)
    means: dict[tuple[int, int], float] = {}
    for (number, row), nats in zip(pairs, log_likelihood_behind(lm, before, starts, rows, BATCH), strict=True):
        own = [worst if math.isnan(one) or math.isinf(one) else -one for one in nats[written[number].probe.skip[row] - 1 :]]
        means[number, row] = math.fsum(own) / len(own)
    answers = in_words(lm, written, repaired)
    found = []
    for number, at in enumerate(written):
        probe = at.probe
        losses = [means[number, row] for row in range(len(probe.reads))]
        right = losses[probe.gold]
        if probe.item:
            score = float(em_norm(answers[number], probe.item.answers))
        elif len(losses) > 1:
            score = float(all(right < loss for row, loss in enumerate(losses) if row != probe.gold))
        else:
            score = math.exp(-right)
        found.append({"loss": right, "score": score})
    return found


def in_words(lm: LanguageModel, written: Sequence[Written], repaired: Sequence[Sequence[KV]]) -> dict[int, str]:
    """The greedy answers to the probes that are questions, by number."""
    asked = {number: at for number, at in enumerate(written) if at.probe.item}
    asks = [Ask(list(at.probe.reads[0][: at.probe.skip[0]]), (at.prefix, *repaired[n]), at.probe.start) for n, at in asked.items()]
    answers = ask(lm, asks, get_suite("episodic").answer_budget, stops(lm, "short"), BATCH)
    return {number: answer.text for number, answer in zip(asked, answers, strict=True)}
