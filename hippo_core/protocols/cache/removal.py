"""Faults, quantisation and eviction on one axis: what is left of the score behind a cache that lost this share of its bits.

What is gone is a share of 16 bits a number. A fault is a channel from what was stored to what is read; what is gone is the entropy of the
stored numbers less what is read says of them (Cover & Thomas 2006, chapters 7 and 9), with every stored bit taken as a fair coin:

    dropout_zero, contiguous_overwrite, presses   an erasure: the share of numbers, or tokens
    quant_noise          16 bits less those of its grid, log2(2 levels + 1)
    bitflip              a binary symmetric channel: H(p) of each bit
    bitflipish_sparse    the entropy of what it chose: H(q) + 1.5 q for q of the numbers
    gaussian             16 bits less the capacity 1/2 log2(1 + 1 / noise^2)

A rotation, of a basis that is known, takes nothing: it has no place here. Presses drop tokens so that a cache takes less room. The package
kvpress has both of these under the same names; benchmarks/cache.py measures it beside them.

    streaming_llm   the first four tokens and the latest stay (Xiao et al. 2024, "Efficient streaming language models with attention sinks")
    knorm           of each head the tokens stay whose keys are shortest (Devoto et al. 2024, "A simple and effective L2 norm-based strategy
                    for KV cache compression")
"""

from collections.abc import Callable
from math import log2
from typing import Any

import pandas as pd
import torch

from hippo_core.models.kv import KV
from hippo_core.protocols.cache.corruption import Corruption, flip_probability, quant_levels
from hippo_core.protocols.cache.probe import damaged, read, write
from hippo_core.protocols.cache.probes import asked_probes
from hippo_core.protocols.cache.table import REMOVE

WIDTH = 16  # bits of a stored number
SINKS = 4
PRESSES = ("streaming_llm", "knorm")
REMOVALS = ("dropout_zero", "contiguous_overwrite", *PRESSES, "quant_noise", "bitflip", "bitflipish_sparse", "gaussian")


def remove(cell: Any, say: Callable[[str], None] = print) -> pd.DataFrame:
    """A row a probe, a way of removal and a severity; `removed` is the share of the cache's information that is gone."""
    parameters, lm, rows = cell.parameters, cell.language_model, []
    drawn = asked_probes(cell, say)
    for task in parameters.tasks:
        written = write(lm, drawn[task])
        for removal in REMOVALS:
            for severity in (0.0, *parameters.severities):
                if removal in PRESSES:
                    caches = [tuple(press(removal, kv, severity) for kv in cache.blocks) for cache in written]
                else:
                    fault = Corruption(removal, severity)
                    caches = [tuple(damage.kv for damage in damaged(written, at, fault, parameters.seed)) for at in range(len(written))]
                for at, scores in zip(written, read(lm, written, caches), strict=True):
                    named = {"probe": at.probe.id, "cluster": at.probe.cluster, "chance": at.probe.chance, "task": task}
                    rows.append({**named, "way": removal, "severity": severity, "removed": removed(removal, severity), **scores})
        say(f"{task}: {len(written)} probes by {len(REMOVALS)} ways")
    return pd.DataFrame(rows, columns=list(REMOVE.columns))


def press(name: str, kv: KV, share: float) -> KV:
    """The cache [L, 2, H, T, D] without this share of its tokens, at least one stays: [L, 2, H, T', D], in their order."""
    layers, _, heads, tokens, width = kv.shape
    left = max(1, tokens - round(share * tokens))
    if name == "knorm":
        chosen = kv[:, 0].float().norm(dim=-1).topk(left, largest=False).indices.sort(-1).values  # [L, H, T']
    else:
        sinks = min(SINKS, left)
        chosen = torch.cat([torch.arange(sinks), torch.arange(tokens - left + sinks, tokens)]).to(kv.device).expand(layers, heads, -1)
    return kv.gather(3, chosen[:, None, :, :, None].expand(-1, 2, -1, -1, width))


def removed(removal: str, severity: float) -> float:
    """The share of the information that a fault or a press of this severity takes, from 0 to 1."""
    if not severity:
        return 0.0
    match removal:
        case "quant_noise":
            return 1 - log2(2 * quant_levels(severity) + 1) / WIDTH
        case "bitflip":
            return entropy(flip_probability(severity))
        case "bitflipish_sparse":
            return (entropy(0.1 * severity) + 0.15 * severity) / WIDTH
        case "gaussian":
            return 1 - min(WIDTH, 0.5 * log2(1 + (2.0 * severity) ** -2)) / WIDTH
    return severity


def entropy(p: float) -> float:
    """Of a coin that falls so with probability p, in bits."""
    return 0.0 if p <= 0 or p >= 1 else -p * log2(p) - (1 - p) * log2(1 - p)
