"""The traces of a batch side by side, as a trace adapter looks at them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hippo_core.models.kv import KV, tokens_of


@dataclass
class Traces:
    """What the rows of a batch look at: for each of the adapter's blocks keys and values [B, G, S, d]; which of the S tokens a row
    sees [B, S] bool; how far its question stands behind its place without traces, for the rotation [B] int64."""

    layers: list[tuple[Tensor, Tensor]]
    mask: Tensor
    offset: Tensor

    def keep(self, index: Tensor) -> None:
        """Drop all rows but these."""
        self.layers = [(keys[index], values[index]) for keys, values in self.layers]
        self.mask, self.offset = self.mask[index], self.offset[index]


def lay_traces(rows: Sequence[Sequence[KV]], like: KV, masked: bool = False) -> Traces:
    """The traces of each row side by side; KV hold the adapter's blocks only. `like`: any such KV, for shape and type where a row, or
    all, have none. `masked`: the traces lie there and no row sees one."""
    lengths = [sum(map(tokens_of, row)) for row in rows]
    layers, _, heads, _, size = like.shape
    store = like.new_zeros(layers, 2, len(rows), heads, max(1, *lengths), size)
    for number, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        if row:
            store[:, :, number, :, :length] = torch.cat(list(row), dim=3)
    longest = [max(map(tokens_of, row), default=0) for row in rows]
    seen = torch.tensor([0 if masked else length for length in lengths], device=like.device)
    mask = torch.arange(store.shape[4], device=like.device) < seen[:, None]
    offset = torch.tensor([0 if masked else tokens for tokens in longest], device=like.device)
    return Traces([(keys, values) for keys, values in store], mask, offset)
