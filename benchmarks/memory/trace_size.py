"""What a stored trace takes in each way of giving it to a model: bytes, from the model's configuration alone."""

from collections.abc import Sequence

from hippo_core.errors import unknown
from hippo_core.models.kv_storage import KVShape, Precision

GB = 10**9
TOKEN_ID = 4  # bytes of a token id

QWEN = KVShape(28, 2, 128)  # Qwen2.5-1.5B, by its published configuration; the lab's own models say theirs when they are loaded


def trace_bytes(
    mode: str, shape: KVShape, tokens: int, text: str, stored: bool = True, blocks: Sequence[int] = (), precision: Precision = "int8"
) -> int:
    """Bytes that one trace takes: its token ids and text (UTF-8), and where its KV is stored, these.

    `stored`: the KV is kept, else run anew; text has none. `blocks`: those that an adapter looks at. LabError for an unknown mode.
    """
    layers = {"kv": shape.layers, "adapter": len(blocks), "text": 0}
    if mode not in layers:
        raise unknown("delivery", mode, layers)
    kv_size = shape.kv_bytes(tokens, precision, layers[mode]) if stored else 0
    return TOKEN_ID * tokens + len(text.encode()) + kv_size


def traces_per_gb(bytes_a_trace: int) -> int:
    """How many traces of so many bytes 10^9 bytes hold."""
    return GB // bytes_a_trace
