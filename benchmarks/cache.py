"""Tokens a second while a cache is guarded: each key and value is repaired once, when it has been written. No defence, the learned repair
at its default rank (untrained: training changes no arithmetic), the same with its matrices computed at each call, or of the prompt's cache
alone; clipping; and what a press costs, in turn: once after the prompt, in a forward hook of each layer, and as kvpress does it where
that package is found.

python benchmarks/cache.py [MODEL] [ROUNDS]

A prompt of 128 tokens of Python's manual is read, 32 tokens are written greedily. Guarding: the prompt's cache is repaired, and then each
new token's keys and values. Presses drop half of the prompt's tokens once. Times are seconds of CPU on one thread, so that other jobs do
not count; a line has the median, and the loss against no defence measured in the same rounds. smollm2-135m: some two minutes of a core.

kvpress 0.5.5 asks for transformers below 5.3, so that no extra of the lab can name it. It runs with the lab's all the same:

pip install --no-deps --target OTHER kvpress==0.5.5 fire==0.6.0 termcolor "cachetools<6" datasets pyarrow "dill<0.5" multiprocess xxhash
PYTHONPATH=OTHER python benchmarks/cache.py
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from hippo_core.models.kv import KV, encode
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.protocols.cache.defences.base import CleanStatistics
from hippo_core.protocols.cache.defences.filters import Clipping
from hippo_core.protocols.cache.defences.learned import Repair, RepairSettings
from hippo_core.protocols.cache.parameters import CacheParameters
from hippo_core.protocols.cache.probes import windows
from hippo_core.protocols.cache.removal import press

PROMPT, WRITTEN, KNOWN = 128, 32, 4
Guard = Callable[[KV], KV]
Around = Callable[[Any], AbstractContextManager[Any]]


@torch.inference_mode()
def seconds(lm: LanguageModel, prompt: list[int], guard: Guard | None, once: Guard | None, around: Around = nullcontext) -> float:
    """CPU seconds to read the prompt and write WRITTEN tokens behind it. `guard` repairs whatever is written, `once` the prompt's cache;
    the prompt is read inside `around` the model."""
    begin = time.process_time()
    cache, position = DynamicCache(), len(prompt)
    with around(lm.model):
        out = read(lm, prompt, cache)
    if once:
        cache = laid(once(kept(cache, 0)))
    if guard:
        fill_cache(cache, guard(kept(cache, 0)), 0)
    for step in range(WRITTEN - 1):
        token, at = out.logits[:, -1:].argmax(-1), torch.tensor([[position + step]])
        before = cache.get_seq_length()
        out = lm.model(input_ids=token, position_ids=at, past_key_values=cache, use_cache=True)
        if guard:
            fill_cache(cache, guard(kept(cache, before)), before)
    return time.process_time() - begin


def read(lm: LanguageModel, prompt: list[int], cache: DynamicCache) -> Any:
    """The prompt is read into the cache. Layers are told the tokens' places, which transformers tells them no more and kvpress asks for."""
    positions = torch.arange(len(prompt))
    return lm.model(input_ids=torch.tensor([prompt]), past_key_values=cache, use_cache=True, logits_to_keep=1, cache_position=positions)


@contextmanager
def hooked(model: Any, once: Guard) -> Iterator[None]:
    """Each layer's keys and values are replaced as soon as it has attended to them, in a forward hook, as presses of kvpress do."""

    def after(module: Any, args: Any, keywords: dict[str, Any], out: Any) -> None:
        layer = keywords["past_key_values"].layers[module.layer_idx]
        keys, values = once(torch.stack([layer.keys[0], layer.values[0]])[None])[0]
        layer.keys, layer.values = keys[None], values[None]

    handles = [layer.self_attn.register_forward_hook(after, with_kwargs=True) for layer in model.model.layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def theirs() -> dict[str, Around]:
    """The presses of kvpress, if it is here."""
    if not find_spec("kvpress"):
        return {}
    kvpress: Any = import_module("kvpress")
    return {"streaming_llm": kvpress.StreamingLLMPress(0.5), "knorm": kvpress.KnormPress(0.5)}


@torch.inference_mode()
def same_cache(lm: LanguageModel, prompt: list[int], name: str, around: Around) -> bool:
    """Whether a press of kvpress leaves the very keys and values, in whatever order, that the lab's of this name leaves."""
    first, second = DynamicCache(), DynamicCache()
    read(lm, prompt, first)
    with around(lm.model):
        read(lm, prompt, second)
    return torch.equal(press(name, kept(first, 0), 0.5).sort(3).values, kept(second, 0).sort(3).values)


def kept(cache: DynamicCache, first: int) -> KV:
    """The keys and values of the tokens from `first` on, [L, 2, H, T, D]."""
    layers: list[Any] = cache.layers
    parts: list[Tensor] = [part[0, :, first:] for layer in layers for part in (layer.keys, layer.values)]
    return torch.stack(parts).unflatten(0, (len(layers), 2))


def fill_cache(cache: DynamicCache, kv: KV, first: int) -> None:
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
        clean = CleanStatistics.of(encode(lm, rows[1:]))
    usual = CacheParameters()
    repair = Repair(RepairSettings(rank=usual.rank), clean).requires_grad_(False)
    fixed = Repair(repair.settings, clean).fixed()
    clipping = Clipping(SimpleNamespace(clean=clean))  # type: ignore[arg-type]
    presses = theirs()
    methods: dict[str, tuple[Any, ...]] = {
        "none": (None, None),
        f"learned, rank {usual.rank}": (fixed, None),
        "... its matrices at each call": (repair, None),
        "... of the prompt alone": (None, fixed),
        "clipping": (lambda kv: clipping.repair(SimpleNamespace(kv=kv)), None),  # type: ignore[arg-type]
        "streaming_llm, half": (None, lambda kv: press("streaming_llm", kv, 0.5)),
        "knorm, half": (None, lambda kv: press("knorm", kv, 0.5)),
        "knorm, half, in hooks": (None, None, lambda model: hooked(model, lambda kv: press("knorm", kv, 0.5))),
        **{f"{name}, half, by kvpress": (None, None, around) for name, around in presses.items()},
    }
    times: dict[str, list[float]] = {name: [] for name in methods}
    for number in range(int(rounds) + 1):
        print(f"round {number} of {rounds}", file=sys.stderr, flush=True)
        for name, method in methods.items():
            took = seconds(lm, rows[0], *method)
            if number:  # the first round is slow
                times[name].append(took)
    print(f"{model}: {PROMPT} tokens read, {WRITTEN} written, medians of {rounds} rounds")
    for name, took in times.items():
        ratio = median(took_ms / bare for took_ms, bare in zip(took, times["none"], strict=True))
        print(f"{name:32} {(PROMPT + WRITTEN) / median(took):8.1f} tokens/s  {1 - 1 / ratio:+.1%} less than none")
    for name, around in presses.items():
        print(f"kvpress and the lab leave the same after {name}: {'yes' if same_cache(lm, rows[0], name, around) else 'no'}")
    if not presses:
        print("kvpress is not here: see the head of this file")


if __name__ == "__main__":
    main(*sys.argv[1:])
