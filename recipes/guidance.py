"""Guided attention: while a model learns, some of its heads are guided where to attend. Nothing of it remains at inference.

A small model soon learns to copy *some* fitting word out of the context; choosing the one that matches the cue comes late or
never. The generator of the lessons knows where the answer stands, so the training adds a cross-entropy on the attention of a few
heads. Five kinds of target, each (query position -> key positions): `bind` a token to the slots before it in its sentence,
`read` the answer's position to the content words of its question, `hop` and `locate` it to the ends of the facts that it needs, in
order, `fact` to all of the last one, and `copy` each answer token's position to the token to be copied.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from hippo_core.training.packed_examples import Target


@dataclass(frozen=True, slots=True)
class AttentionHead:
    """Which heads of which layer follow a kind of target, how strongly; `spread`: evenly over all its keys, else at any of them."""

    kind: str
    layer: int
    heads: tuple[int, ...]
    weight: float
    spread: bool


@dataclass
class Attention:
    """What the attention function keeps of one forward pass: queries and keys of the layers of `heads`, [B, H, T, D] in fp32."""

    heads: tuple[AttentionHead, ...]
    layers: dict[int, tuple[Tensor, Tensor, float]] = field(default_factory=dict)

    def loss(self, targets: list[Target], mask: Tensor) -> Tensor:
        """Weighted mean cross-entropy over all kinds; `mask` [B, T, T] says who may see whom."""
        total = mask.new_zeros((), dtype=torch.float32)
        for head in self.heads:
            chosen = [target for target in targets if target.kind == head.kind]
            if chosen:
                total = total + head.weight * self._head_loss(head, chosen, mask)
        return total

    def _head_loss(self, head: AttentionHead, targets: list[Target], mask: Tensor) -> Tensor:
        query, key, scale = self.layers[head.layer]
        row, at, wanted = _pack(targets, *mask.shape[:2])
        seen = mask[row[:, None], at]
        losses = []
        for index in head.heads:
            queries = query[row[:, None], index, at]  # [rows, targets a row, D]
            logits = queries @ key[row, index].transpose(1, 2) * scale
            log_mass = logits.masked_fill(~seen, float("-inf")).log_softmax(-1)
            if head.spread:
                loss = -log_mass.masked_fill(wanted == 0, 0.0).sum(-1) / wanted.sum(-1).clamp(min=1)
            else:
                loss = -log_mass.masked_fill(wanted == 0, -1e4).logsumexp(-1)
            losses.append(loss[wanted.any(-1)])
        return torch.cat(losses).mean()


def _pack(targets: list[Target], n_rows: int, length: int) -> tuple[Tensor, Tensor, Tensor]:
    """Targets by sequence, padded: sequences [R], query positions [R, Q], wanted keys [R, Q, T] (all 0 where padded)."""
    by_row: dict[int, list[Target]] = {}
    for target in targets:
        by_row.setdefault(target.row, []).append(target)
    most = max(map(len, by_row.values()))
    at = torch.zeros(len(by_row), most, dtype=torch.long)
    wanted = torch.zeros(len(by_row), most, length)
    for number, chosen in enumerate(by_row.values()):
        at[number, : len(chosen)] = torch.tensor([target.query for target in chosen])
        for column, target in enumerate(chosen):
            wanted[number, column, list(target.keys)] = 1.0
    return torch.tensor(list(by_row)), at, wanted


SHORT = 512  # tokens: up to here plain products are faster on a CPU than the fused attention, most of all backwards


def attend(module, query, key, value, attention_mask, scaling, dropout=0.0, capture: Attention | None = None, **_):
    """Attention in fp32 inside an autocast region (its backward in bf16 is slower on a CPU), keeping what the guidance needs.

    `attention_mask` is boolean, who may see whom; None is causal.
    """
    with torch.autocast("cpu", enabled=False):
        groups, length = query.shape[1] // key.shape[1], query.shape[2]
        query, key, value = query.float(), key.float().repeat_interleave(groups, 1), value.float().repeat_interleave(groups, 1)
        if capture is not None and any(head.layer == module.layer_idx for head in capture.heads):
            capture.layers[module.layer_idx] = (query, key, scaling)
        seen = torch.ones(length, length, dtype=torch.bool).tril() if attention_mask is None else attention_mask
        if length <= SHORT:
            unseen = torch.zeros(seen.shape).masked_fill_(~seen, float("-inf"))
            out = ((query * scaling) @ key.transpose(2, 3)).add_(unseen).softmax(-1) @ value
        else:
            out = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=seen, scale=scaling)
    return out.transpose(1, 2).contiguous(), None


def register() -> str:
    """Make the guided attention known to transformers; returns the name to load a model with."""
    ALL_ATTENTION_FUNCTIONS.register("hippo_guided", attend)
    return "hippo_guided"
