"""Break, repair, read: the rows of the experiment `cache`. Every defence gets the same damaged cache."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch

from hippo_core.cache.corruption import Corruption, Damage, corrupt, flip_probability
from hippo_core.cache.defences import load_defence
from hippo_core.cache.defences.base import Clean, Damaged, Defence, Setting
from hippo_core.experiments.cache.table import COLUMNS
from hippo_core.files import LabError
from hippo_core.models.ask import Ask, ask
from hippo_core.models.kv import KV, encode
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.prompt import stops
from hippo_core.models.score import log_likelihood_behind
from hippo_core.results.scores import em_norm
from hippo_core.suites import get_suite
from hippo_core.training.cache.probes import Probe, probes

CLEAN = 24  # validation contexts that say what clean text is like
BATCH = 32


@dataclass(frozen=True)
class Written:
    """A probe with its cache as it was written: the KV of its prefix, and those of its blocks."""

    probe: Probe
    prefix: KV
    blocks: tuple[KV, ...]

    def address(self, block: int) -> str:
        """The name of a block's cache."""
        return f"{self.probe.id}/{block}"


def rows(cell: Any, say: Callable[[str], None] = print) -> pd.DataFrame:
    """A row for every probe, fault and defence. `cell.settled` says what each task's clean caches are like.

    Raises:
        LabError: a layer, head or window that a cache does not have.
    """
    parameters, lm = cell.parameters, cell.language_model
    found: list[dict[str, Any]] = []
    for task in parameters.tasks:
        written = write(lm, probes(lm, task, parameters.items, parameters.seed, "test"))
        begin = time.perf_counter()
        own = list(of_task(lm, task, written, parameters, cell.checkpoint))
        say(f"{task}: {len(written)} probes, {len(own)} rows in {time.perf_counter() - begin:.0f} s")
        found += own
    return pd.DataFrame(found, columns=list(COLUMNS))


def write(lm: LanguageModel, probed: Sequence[Probe]) -> list[Written]:
    """The clean caches of probes."""
    prefixes = {prefix: encode(lm, [list(prefix)])[0] for prefix in dict.fromkeys(probe.prefix for probe in probed)}
    written = []
    for prefix, before in prefixes.items():
        own = [probe for probe in probed if probe.prefix == prefix]
        blocks = [list(block) for probe in own for block in probe.blocks]
        kvs = iter([kv for at in range(0, len(blocks), BATCH) for kv in encode(lm, blocks[at : at + BATCH], before)])
        written += [Written(probe, before, tuple(next(kvs) for _ in probe.blocks)) for probe in own]
    return written


def of_task(lm: LanguageModel, task: str, written: Sequence[Written], parameters: Any, checkpoint: Any) -> Iterable[dict[str, Any]]:
    """The rows of a task: the clean cache under every defence, then each fault at each severity."""
    known = write(lm, probes(lm, task, CLEAN, parameters.seed, "val"))
    caches = [kv for one in known for kv in one.blocks]
    own = {name: getattr(parameters, name) for name in ("seed", "budget", "precision", "stored")}
    setting = Setting(lm, Clean.of(caches), caches, checkpoint=checkpoint, **own)
    names = list(dict.fromkeys(["none", *parameters.defences]))
    defences = {name: load_defence(name, setting) for name in names}
    kept = {name: sum(_write(defence, written)) / len(written) for name, defence in defences.items()}
    faults = [Corruption("gaussian", 0.0), *(fault(parameters, kind, s) for kind in parameters.kinds for s in parameters.severities)]
    for one in faults:
        damages = [damaged(written, number, one, parameters.seed) for number in range(len(written))]
        for name, defence in defences.items():
            begin = time.perf_counter()
            repaired = [tuple(defence.repair(_seen(at, block, damage, one)) for block, damage in enumerate(of))
                        for at, of in zip(written, damages, strict=True)]  # fmt: skip
            ms = (time.perf_counter() - begin) * 1000 / len(written)
            hit = [sum(float(damage.mask.float().mean()) for damage in of) / len(of) for of in damages]
            told = {"task": task, "kind": one.kind if one.severity else "clean", "severity": one.severity, "defence": name}
            for at, of, share in zip(written, read(lm, written, repaired), hit, strict=True):
                named = {"item_id": at.probe.id, "cluster": at.probe.cluster, "chance": at.probe.chance}
                yield {**named, **told, **of, "damaged": share, "repair_ms": ms, "kept_bytes": kept[name]}


def _write(defence: Defence, written: Sequence[Written]) -> list[int]:
    return [defence.write(kv, at.address(block), at.probe.blocks[block]) for at in written for block, kv in enumerate(at.blocks)]


def _seen(at: Written, block: int, damage: Damage, one: Corruption) -> Damaged:
    flipped = flip_probability(one.severity) if one.kind == "bitflip" else 0.0
    return Damaged(damage.kv, at.address(block), damage.mask, at.prefix, at.probe.blocks[block], flipped)


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


def donor_of(written: Sequence[Written], number: int, tokens: int) -> KV:
    """Another probe's keys and values, of at least so many tokens: from those that follow it; where none is so long, two in a row."""
    others = [kv for step in range(1, len(written)) for kv in written[(number + step) % len(written)].blocks]
    if not others:
        raise LabError("contiguous_overwrite takes what it writes from another probe; use n of at least 2")
    long = next((kv for kv in others if kv.shape[3] >= tokens), None)
    return torch.cat([others[0]] * math.ceil(tokens / others[0].shape[3]), 3) if long is None else long


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
