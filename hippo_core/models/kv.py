"""Keys and values as tensors of their own: what tokens leave behind when they are run, laid in front of other tokens.

KV is one tensor [L, 2, H, T, D]: of T tokens, for L layers and H key-value heads of one width D, the keys, already rotated, and the values.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from hippo_core.errors import LabError
from hippo_core.models.int8_kv import Int8KV
from hippo_core.models.language_model import LanguageModel, by_length, pad_left

KV = Tensor
StoredKV = KV | Int8KV  # as it is kept


@torch.inference_mode()
def encode(lm: LanguageModel, rows: Sequence[list[int]], before: KV | None = None) -> list[KV]:
    """The KV of each row of token ids, run alone after `before`; an empty row gives KV of 0 tokens."""
    start = 0 if before is None else tokens_of(before)
    width = max(1, *map(len, rows))
    ids = torch.tensor([row + [lm.tokenizer.pad_token_id] * (width - len(row)) for row in rows], device=lm.device)
    mask = torch.ones(len(rows), start + width, dtype=torch.long, device=lm.device)
    positions = torch.arange(start, start + width, device=lm.device).expand(len(rows), -1)
    cache = DynamicCache() if before is None else lay([[before]] * len(rows), width)[0]
    lm.model(input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True, logits_to_keep=1)
    layers: list[Any] = cache.layers
    return [
        torch.stack([torch.stack([part[number, :, start : start + len(row)] for part in (layer.keys, layer.values)]) for layer in layers])
        for number, row in enumerate(rows)
    ]


class Blocks(NamedTuple):
    """The KV of a prefix, and of blocks that were each run alone after it, all from the same position on."""

    prefix: KV
    blocks: tuple[KV, ...]


def encode_blocks(
    lm: LanguageModel, prefix: list[int], blocks: Sequence[list[int]], batch_size: int = 32, before: KV | None = None
) -> Blocks:
    """Run `prefix` once (not where `before` is its KV already) and each of `blocks` after it, rows of token ids as `split` makes them. A
    block sees the prefix and itself and starts at position len(prefix). LabError for a model that keeps more of a text than KV."""
    if not keeps_kv_only(lm):
        raise LabError(f"model {lm.spec.name} does not keep texts as keys and values alone: facts cannot be blocks; give them as text")
    if before is None:
        [before] = encode(lm, [prefix])
    encoded: dict[int, KV] = {}
    for batch in by_length(blocks, batch_size):
        encoded.update(zip(batch, encode(lm, [blocks[block] for block in batch], before), strict=True))
    return Blocks(before, tuple(encoded[block] for block in range(len(blocks))))


def inputs(
    lm: LanguageModel,
    rows: Sequence[list[int]],
    before: Sequence[Sequence[StoredKV]] | None = None,
    starts: Sequence[int] | None = None,
    spare: int = 0,
    hidden: Sequence[range] | None = None,
) -> dict[str, Any]:
    """The arguments of a forward pass over rows of token ids, padded on the left, with a cache that has room for `spare` tokens more.

    Row r sees all of `before[r]` and begins at position `starts[r]` (None: after what it sees). No token looks at the tokens `hidden[r]`,
    counted from the first of `before[r]`.
    """
    ids, mask, _ = pad_left(lm, list(rows))
    width, cache = ids.shape[1], DynamicCache(config=lm.model.config)
    if before is not None:
        cache, seen = lay(before, width + spare)
        mask = torch.cat([seen, mask], dim=1)
    for row, span in enumerate(hidden or ()):
        mask[row, mask[row].nonzero()[span.start : span.stop, 0]] = 0
    first = mask[:, :-width].sum(1) if starts is None else torch.tensor(starts, device=lm.device)
    positions = (mask[:, -width:].cumsum(1) - 1).clamp(min=0) + first[:, None]
    return {"input_ids": ids, "attention_mask": mask, "position_ids": positions, "past_key_values": cache, "use_cache": True}


def lay(rows: Sequence[Sequence[StoredKV]], spare: int) -> tuple[DynamicCache, Tensor]:
    """A cache whose row r holds the KV of `rows[r]` one behind the other, and its mask [rows, T] int64: 0 before the first token. All rows
    end at the same place, before room for `spare` tokens. Not all rows may be empty; the first KV of all is no `Int8KV`."""
    lengths = [sum(map(tokens_of, row)) for row in rows]
    width = max(lengths)
    kind: Any = next(kv for row in rows for kv in row)
    layers, _, heads, _, size = kind.shape
    store = kind.new_empty(layers, 2, len(rows), heads, width + spare, size)
    for number, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        position = width - length
        store[:, :, number, :, :position] = 0
        for kv in row:
            store[:, :, number, :, position : position + tokens_of(kv)] = restored(kv, store.dtype)
            position += tokens_of(kv)
    cache = DynamicCache()
    cache.layers.extend(Roomy(keys, values, width) for keys, values in store)
    mask = torch.tensor([[0] * (width - length) + [1] * length for length in lengths], dtype=torch.long, device=store.device)
    return cache, mask


def keeps_kv_only(lm: LanguageModel) -> bool:
    """Whether keys and values are all that the model keeps of a text: models with recurrent layers keep a state that has no tokens."""
    return all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in DynamicCache(config=lm.model.config).layers)


def tokens_of(kv: StoredKV) -> int:
    """How many tokens a KV is of."""
    return kv.shape[3]


def restored(kv: StoredKV, dtype: torch.dtype) -> KV:
    """A KV as a tensor of this dtype, from however it is kept."""
    return kv.kv(dtype) if isinstance(kv, Int8KV) else kv.to(dtype)


class Roomy(DynamicLayer):
    """A layer of a cache with memory set aside for the tokens to come, so that growing copies only these. `keys` and `values` are [rows, H,
    T, D], of which the first `length` tokens are there already."""

    def __init__(self, keys: Tensor, values: Tensor, length: int) -> None:
        super().__init__()
        self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True
        self._store = keys, values
        self._show(length)

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Put new tokens behind those stored and return all."""
        grown = self._length + key_states.shape[2]
        for part, new in zip(self._store, (key_states, value_states), strict=True):
            part[:, :, self._length : grown] = new
        return self._show(grown)

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep only these rows."""
        keys, values = self._store
        self._store = keys[indices], values[indices]
        self._show(self._length)

    def _show(self, length: int) -> tuple[Tensor, Tensor]:
        self._length = length
        keys, values = (part[:, :, :length] for part in self._store)
        self.keys, self.values = keys, values
        return keys, values
