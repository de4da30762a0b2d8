"""Tokens a second while a cache is guarded: each key and value is repaired once, when it has been written. No defence, the learned repair
at its default rank (untrained: training changes no arithmetic), the same with its matrices computed at each call, or of the prompt's cache
alone; clipping; and what a press costs, in turn.

python benchmarks/cache.py [MODEL] [ROUNDS]

A prompt of 128 tokens of Python's manual is read, 32 tokens are written greedily. Guarding: the prompt's cache is repaired, and then each
new token's keys and values. Presses drop half of the prompt's tokens once. Times are seconds of CPU on one thread, so that other jobs do
not count; a line has the median, and the loss against no defence measured in the same rounds. smollm2-135m: some two minutes of a core.
"""

import sys
import time
from collections.abc import Callable
from statistics import median
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from hippo_core.cache.defences.base import Clean
from hippo_core.cache.defences.clipping import Clipping
from hippo_core.cache.presses import press
from hippo_core.cache.repair import Repair, RepairSettings
from hippo_core.experiments.cache.experiment import CacheParameters
from hippo_core.models.kv import KV, encode
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.training.cache.probes import windows

PROMPT, WRITTEN, KNOWN = 128, 32, 4
Guard = Callable[[KV], KV]


@torch.inference_mode()
def seconds(lm: LanguageModel, prompt: list[int], guard: Guard | None, once: Guard | None) -> float:
    """CPU seconds to read the prompt and write WRITTEN tokens behind it. `guard` repairs whatever is written, `once` the prompt's cache."""
    begin = time.process_time()
    cache, ids, position = DynamicCache(), torch.tensor([prompt]), len(prompt)
    out = lm.model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
    if once:
        cache = laid(once(kept(cache, 0)))
    if guard:
        put(cache, guard(kept(cache, 0)), 0)
    for step in range(WRITTEN - 1):
        token, place = out.logits[:, -1:].argmax(-1), torch.tensor([[position + step]])
        before = cache.get_seq_length()
        out = lm.model(input_ids=token, position_ids=place, past_key_values=cache, use_cache=True)
        if guard:
            put(cache, guard(kept(cache, before)), before)
    return time.process_time() - begin


def kept(cache: DynamicCache, first: int) -> KV:
    """The keys and values of the tokens from `first` on, [L, 2, H, T, D]."""
    layers: list[Any] = cache.layers
    parts: list[Tensor] = [part[0, :, first:] for layer in layers for part in (layer.keys, layer.values)]
    return torch.stack(parts).unflatten(0, (len(layers), 2))


def put(cache: DynamicCache, kv: KV, first: int) -> None:
    """Write them back."""
    layers: list[Any] = cache.layers
    for layer, (keys, values) in zip(layers, kv, strict=True):
        layer.keys[0, :, first:], layer.values[0, :, first:] = keys, values


def laid(kv: KV) -> DynamicCache:
    """A cache of these keys and values."""
    cache = DynamicCache()
    for layer, (keys, values) in enumerate(kv):
        cache.update(keys[None], values[None], layer)
    return cache


def main(model: str = "smollm2-135m", rounds: str = "5") -> None:
    lm = load(load_spec(model), threads=1)
    rows = [row for _, row in windows(lm, "val", PROMPT)][: KNOWN + 1]
    with torch.inference_mode():
        clean = Clean.of(encode(lm, rows[1:]))
    usual = CacheParameters()
    repair = Repair(RepairSettings(family=usual.family, rank=usual.rank), clean).requires_grad_(False)
    fixed = Repair(repair.settings, clean).fixed()
    clipping = Clipping(SimpleNamespace(clean=clean))  # type: ignore[arg-type]
    ways: dict[str, tuple[Guard | None, Guard | None]] = {
        "none": (None, None),
        f"learned, family {usual.family}, rank {usual.rank}": (fixed, None),
        "... its matrices at each call": (repair, None),
        "... of the prompt alone": (None, fixed),
        "clipping": (lambda kv: clipping.repair(SimpleNamespace(kv=kv)), None),  # type: ignore[arg-type]
        "streaming_llm, half": (None, lambda kv: press("streaming_llm", kv, 0.5)),
        "knorm, half": (None, lambda kv: press("knorm", kv, 0.5)),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(int(rounds) + 1):
        print(f"round {number} of {rounds}", file=sys.stderr, flush=True)
        for name, (guard, once) in ways.items():
            took = seconds(lm, rows[0], guard, once)
            if number:  # the first round is slow
                times[name].append(took)
    print(f"{model}: {PROMPT} tokens read, {WRITTEN} written, medians of {rounds} rounds")
    for name, took in times.items():
        ratio = median(one / bare for one, bare in zip(took, times["none"], strict=True))
        print(f"{name:32} {(PROMPT + WRITTEN) / median(took):8.1f} tokens/s  {1 - 1 / ratio:+.1%} less than none")


if __name__ == "__main__":
    main(*sys.argv[1:])
