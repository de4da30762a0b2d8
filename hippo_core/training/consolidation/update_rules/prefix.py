"""A trained prefix of keys and values before everything that the model reads; its weights are left alone.

Cartridges (Eyuboglu et al. 2025, arXiv 2506.06266, section 3) begin from the keys and values of the text's first tokens. Here the prefix is
added inside the attention of every block, at positions before the prompt's first, so that all that the lab does with a model goes on.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from hippo_core.errors import LabError
from hippo_core.models.kv import encode
from hippo_core.models.language_model import LanguageModel
from hippo_core.training.consolidation.update_rules.base import UpdateRule, switched_off

TOKENS = 8  # a unit of rank
NAME = "hippo_prefix"


class _Prefix(nn.Module):
    """Keys and values [blocks, 1, heads, tokens, dim]."""

    def __init__(self, shape: tuple[int, ...], device: torch.device) -> None:
        super().__init__()
        self.keys = nn.Parameter(torch.zeros(shape, device=device))
        self.values = nn.Parameter(torch.zeros(shape, device=device))


@dataclass
class _Acting:
    """The prefix that acts, in all blocks."""

    prefix: _Prefix
    on: bool = True


def attend(module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, scaling: float, **others: Any) -> tuple:
    """Attention over the prefix of the module and the keys [B, H, S, D] that are there; the usual one where no prefix is on."""
    acting: tuple[_Acting, int] | None = getattr(module, NAME, None)
    if not (acting and acting[0].on):
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **others)
    if attention_mask is None and query.shape[2] > 1:
        length, seen = query.shape[2], key.shape[2]
        attention_mask = torch.ones(length, seen, dtype=torch.bool, device=query.device).tril(seen - length)
    prefix, number = acting[0].prefix, acting[1]
    rows = (query.shape[0], -1, -1, -1)
    key = torch.cat([prefix.keys[number].to(key.dtype).expand(rows), key], 2)
    value = torch.cat([prefix.values[number].to(value.dtype).expand(rows), value], 2)
    if attention_mask is not None:
        attention_mask = pad(attention_mask, (prefix.keys.shape[3], 0), value=attention_mask.dtype == torch.bool)
    out = scaled_dot_product_attention(
        query, key, value, attn_mask=attention_mask, scale=scaling, enable_gqa=query.shape[1] != key.shape[1]
    )
    return out.transpose(1, 2).contiguous(), None


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, sdpa_mask)


class KVPrefix(UpdateRule):
    """`rank` times eight tokens."""

    name = "kv_prefix"
    rate = 4e-2
    no_weights = "it is keys and values before the prompt"

    def __init__(self, lm: LanguageModel, rank: int, first_block: int) -> None:
        super().__init__(lm, rank, first_block)
        if TOKENS * rank > lm.spec.context_limit:
            most = lm.spec.context_limit // TOKENS
            raise LabError(f"rank is {most}, as many times {TOKENS} tokens as {lm.spec.name} reads, or less, got {rank}")
        for weight in lm.model.parameters():
            weight.requires_grad_(False)
        self.acting = _Acting(self.empty())
        self.before = lm.model.config._attn_implementation
        lm.model.set_attn_implementation(NAME)
        for number, block in enumerate(self.blocks):
            object.__setattr__(lm.model.model.layers[block].self_attn, NAME, (self.acting, number))

    @property
    def prefix(self) -> _Prefix:
        """The one that acts."""
        return self.acting.prefix

    def empty(self) -> _Prefix:
        """One of zeros."""
        heads, dim = self.lm.config.num_key_value_heads, self.model.model.layers[0].self_attn.head_dim
        return _Prefix((len(self.blocks), 1, heads, TOKENS * self.rank, dim), self.lm.device)

    def weights(self) -> dict[str, Tensor]:
        return dict(self.prefix.named_parameters())

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        with switched_off(self.acting):
            yield

    def detach(self) -> None:
        for block in self.blocks:
            attention = self.lm.model.model.layers[block].self_attn
            if getattr(attention, NAME, (None,))[0] is self.acting:
                object.__delattr__(attention, NAME)
        self.lm.model.set_attn_implementation(self.before)

    def prepare(self, texts: Sequence[str], questions: Sequence[Sequence[str]] = (), known: int = 0) -> None:
        if not known:
            self.begin(texts)

    @torch.no_grad()
    def begin(self, texts: Sequence[str]) -> None:
        """Set the prefix to the keys and values of the texts' first tokens, again and again where they have fewer, as if they stood right
        before the prompt."""
        length = self.prefix.keys.shape[3]
        ids = self.lm.encode_text("\n".join(texts))
        with self.unchanged():
            [kv] = encode(self.lm, [(ids * (1 + length // len(ids)))[:length]], first=-length)
        begun = kv[list(self.blocks)].to(self.prefix.keys.dtype)  # [blocks, 2, H, T, D]
        self.prefix.keys.copy_(begun[:, 0].unsqueeze(1))
        self.prefix.values.copy_(begun[:, 1].unsqueeze(1))
