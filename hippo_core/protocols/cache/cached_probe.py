"""Probes with their caches as these were written."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from hippo_core.errors import LabError
from hippo_core.models.kv import KV, encode
from hippo_core.models.language_model import LanguageModel
from hippo_core.protocols.cache.probe import Probe

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


def donor_of(written: Sequence[Written], number: int, tokens: int) -> KV:
    """Another probe's keys and values, of at least so many tokens: from those that follow it; where none is so long, two in a row."""
    others = [kv for step in range(1, len(written)) for kv in written[(number + step) % len(written)].blocks]
    if not others:
        raise LabError("contiguous_overwrite takes what it writes from another probe; use n of at least 2")
    long = next((kv for kv in others if kv.shape[3] >= tokens), None)
    return torch.cat([others[0]] * math.ceil(tokens / others[0].shape[3]), 3) if long is None else long
