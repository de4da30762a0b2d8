"""Probes, their caches as these were written and as a fault leaves them, and what is read from them."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from hippo_core.errors import LabError
from hippo_core.models.ask import Ask, ask
from hippo_core.models.kv import KV, encode
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.prompt import stops
from hippo_core.models.score import log_likelihood_behind
from hippo_core.protocols.cache.corruption import Corruption, Damage, corrupt
from hippo_core.results.scores import em_norm
from hippo_core.suites import get_suite
from hippo_core.suites.types import Item, World

BATCH = 32


@dataclass(frozen=True)
class Probe:
    """One thing that is read from a cache.

    Args:
        id, cluster: its name, and that of the topic or world that its interval goes by.
        prefix: token ids before the context, whose keys and values nobody touches.
        blocks: token ids of the context, each block run by itself behind the prefix; most probes have one.
        reads: rows of token ids that follow the context; of the first `skip` of each none is scored.
        gold: the right row of `reads`.
        item, world: the question that is answered in words; None where likelihoods are compared. A question of no world is right where
            the answer begins with what is right.
        chance: the score of a guess.
    """

    id: str
    cluster: str
    task: str
    prefix: tuple[int, ...]
    blocks: tuple[tuple[int, ...], ...]
    reads: tuple[tuple[int, ...], ...]
    skip: tuple[int, ...]
    gold: int = 0
    item: Item | None = None
    world: World | None = None
    chance: float = 0.0

    @property
    def start(self) -> int:
        """The position of the first token that reads."""
        return len(self.prefix) + max(map(len, self.blocks))


@dataclass(frozen=True)
class Written:
    """A probe with its cache as it was written: the KV of its prefix, and those of its blocks."""

    probe: Probe
    prefix: KV
    blocks: tuple[KV, ...]

    def address(self, block: int) -> str:
        """The name of a block's cache."""
        return f"{self.probe.id}/{block}"


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


def damaged(written: Sequence[Written], number: int, fault: Corruption, seed: int) -> list[Damage]:
    """The damage of each block of a probe. LabError where a window ends behind a cache, or another text is needed and there is none."""
    at, damages = written[number], []
    for block, kv in enumerate(at.blocks):
        donor = donor_of(written, number, kv.shape[3]) if fault.kind == "contiguous_overwrite" else None
        damages.append(corrupt(kv, fault, seed, at.address(block), donor))
    return damages


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
        own = [worst if math.isnan(value) or math.isinf(value) else -value for value in nats[written[number].probe.skip[row] - 1 :]]
        means[number, row] = math.fsum(own) / len(own)
    answers = in_words(lm, written, repaired)
    results = []
    for number, at in enumerate(written):
        probe = at.probe
        losses = [means[number, row] for row in range(len(probe.reads))]
        right = losses[probe.gold]
        if probe.item:
            score = float(em_norm(begun(answers[number], probe), probe.item.answers))
        elif len(losses) > 1:
            score = float(all(right < loss for row, loss in enumerate(losses) if row != probe.gold))
        else:
            score = math.exp(-right)
        scored = len(probe.reads[probe.gold]) - probe.skip[probe.gold]
        results.append({"loss": right, "score": score, "scored_tokens": scored})
    return results


def in_words(lm: LanguageModel, written: Sequence[Written], repaired: Sequence[Sequence[KV]]) -> dict[int, str]:
    """The greedy answers to the probes that are questions, by number."""
    asked = {number: at for number, at in enumerate(written) if at.probe.item}
    asks = [Ask(list(at.probe.reads[0][: at.probe.skip[0]]), (at.prefix, *repaired[n]), at.probe.start) for n, at in asked.items()]
    needles = [at.probe for at in asked.values() if at.probe.item and not at.probe.world]  # which may begin with what is asked
    values = [len(own.reads[0]) - own.skip[0] + len(lm.encode(f"{own.item.question} =")) + 1 for own in needles if own.item]
    answers = ask(lm, asks, max([get_suite("episodic").answer_budget, *values]), stops(lm, "short"), BATCH)
    return {number: answer.text for number, answer in zip(asked, answers, strict=True)}


def begun(answer: str, probe: Probe) -> str:
    """An answer; of a needle without a world its first words, as many as the value has, behind "the_key =" where it begins with that."""
    if probe.world or not probe.item:
        return answer
    text, token = answer.strip(), probe.item.question
    if text.lower().startswith(token.lower()):
        text = text[len(token) :].lstrip(" =:").removeprefix("is ")
    return " ".join(text.split()[: len(probe.item.answers[0].split())])


@contextmanager
def cost_meter(device: torch.device) -> Iterator[dict[str, float]]:
    """What runs inside takes so many `seconds`, and the process at its most `peak_mb` megabytes of memory and `gpu_peak_mb` of the GPU: NaN
    where the system does not say (only Linux resets its peak), and without a GPU."""
    cost: dict[str, float] = dict.fromkeys(("seconds", "peak_mb", "gpu_peak_mb"), math.nan)
    known = False
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # VmHWM starts anew: proc(5)
        known = True
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    begin = time.perf_counter()
    yield cost
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        cost["gpu_peak_mb"] = torch.cuda.max_memory_allocated(device) / 1e6
    cost["seconds"] = time.perf_counter() - begin
    if known:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        cost["peak_mb"] = int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
