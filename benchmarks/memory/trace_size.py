"""What a stored trace takes in each way of giving it to a model: bytes, from the model's configuration alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hippo_core.files import unknown

GB = 10**9
TOKEN_ID = 4  # bytes of a token id


@dataclass(frozen=True)
class Shape:
    """What of a model decides the size of its keys and values."""

    layers: int
    kv_heads: int
    head_width: int

    def kv_bytes(self, tokens: int, bytes_per_value: int = 2, layers: int | None = None) -> int:
        """Of the keys and values of `tokens` tokens, of all layers or of so many: 2 L n_kv d_head bytes tokens."""
        return 2 * (self.layers if layers is None else layers) * self.kv_heads * self.head_width * bytes_per_value * tokens


QWEN = Shape(28, 2, 128)  # Qwen2.5-1.5B, by its published configuration; the lab's own models say theirs when they are loaded


def shape_of(config: Any) -> Shape:
    """The shape of a loaded model's text decoder."""
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return Shape(config.num_hidden_layers, heads, width)


def trace_bytes(
    mode: str, shape: Shape, tokens: int, text: str, stored: bool = True, blocks: Sequence[int] = (), bytes_per_value: int = 2
) -> int:
    """Bytes that one trace takes: its token ids and text (UTF-8), and where its KV is stored, these.

    `stored`: the KV is kept, else run anew; text has none. `blocks`: those that an adapter looks at. LabError for an unknown mode.
    """
    layers = {"kv": shape.layers, "adapter": len(blocks), "text": 0}
    if mode not in layers:
        raise unknown("delivery", mode, layers)
    kv_size = shape.kv_bytes(tokens, bytes_per_value, layers[mode]) if stored else 0
    return TOKEN_ID * tokens + len(text.encode()) + kv_size


def traces_per_gb(bytes_a_trace: int) -> int:
    """How many traces of so many bytes 10^9 bytes hold."""
    return GB // bytes_a_trace
