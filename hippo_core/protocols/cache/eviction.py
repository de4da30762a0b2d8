"""Presses: tokens of a cache are dropped so that it takes less room. Two published rules that need the cache alone, written here.

streaming_llm   the first four tokens and the latest stay (Xiao et al. 2024, "Efficient streaming language models with attention sinks")
knorm           of each head the tokens stay whose keys are shortest (Devoto et al. 2024, "A simple and effective L2 norm-based strategy
                for KV cache compression")

The package kvpress has both under these names; it is no part of the lab, and benchmarks/cache.py measures it beside them.
"""

from collections.abc import Callable
from typing import get_args

import torch
from torch import Tensor

from hippo_core.errors import LabError, unknown
from hippo_core.models.kv import KV
from hippo_core.protocols.cache.names import Press

SINKS = 4


def press(name: str, kv: KV, share: float) -> KV:
    """The cache [L, 2, H, T, D] without this share of its tokens, at least one stays: [L, 2, H, T', D], in their order.

    Raises:
        LabError: unknown name, or a share that is not from 0 to 1.
    """
    if name not in PRESSES:
        raise unknown("press", name, get_args(Press))
    if not 0 <= share <= 1:
        raise LabError(f"a press drops a share of the tokens from 0 to 1, got {share}")
    tokens = kv.shape[3]
    left = max(1, tokens - round(share * tokens))
    chosen = PRESSES[name](kv, left).sort(-1).values  # [L, H, T']
    return kv.gather(3, chosen[:, None, :, :, None].expand(-1, 2, -1, -1, kv.shape[4]))


def _streaming(kv: KV, left: int) -> Tensor:
    sinks = min(SINKS, left)
    kept = torch.cat([torch.arange(sinks), torch.arange(kv.shape[3] - left + sinks, kv.shape[3])]).to(kv.device)
    return kept.expand(kv.shape[0], kv.shape[2], -1)


def _knorm(kv: KV, left: int) -> Tensor:
    return kv[:, 0].float().norm(dim=-1).topk(left, largest=False).indices


PRESSES: dict[str, Callable[[KV, int], Tensor]] = {"streaming_llm": _streaming, "knorm": _knorm}
