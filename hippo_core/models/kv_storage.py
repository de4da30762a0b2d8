"""How keys and values of passages are kept, and how many bytes they take. Importing this brings no torch."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from hippo_core.errors import LabError, unknown

StoreKV = Literal["none", "memory", "disk"]
Precision = Literal["model", "bfloat16", "int8"]
MB = 2**20


@dataclass(frozen=True)
class KVStorage:
    """How the KV of passages are kept: nowhere, in memory while their world is asked about, or on disk for other processes too. LabError
    for an unknown store or precision, or a limit below 1 MiB."""

    store: StoreKV = "memory"
    precision: Precision = "int8"  # whatever the store, so that answers do not depend on it; int8: see int8_kv.py
    memory_mb: int = 2048  # MiB at most; what was not used for longest goes first
    disk_mb: int = 8192  # the same on disk

    def __post_init__(self) -> None:
        if self.store not in get_args(StoreKV):
            raise unknown("store_kv", self.store, get_args(StoreKV))
        if self.precision not in get_args(Precision):
            raise unknown("kv_precision", self.precision, get_args(Precision))
        for name in ("memory_mb", "disk_mb"):
            if getattr(self, name) < 1:
                raise LabError(f"kv_{name}: expected at least 1 MiB, got {getattr(self, name)}")


@dataclass(frozen=True)
class KVShape:
    """What of a model decides the size of its keys and values. `dtype_bytes`: of a value in the precision "model"."""

    layers: int
    kv_heads: int
    head_width: int
    dtype_bytes: int = 4

    def kv_bytes(self, tokens: int, precision: Precision, layers: int | None = None) -> int:
        """Of the keys and values of `tokens` tokens, of all layers or of so many: 2 L n_kv d_head tokens values. In int8 each channel of
        the keys and each token of the values has scale and centre, of 2 bytes each."""
        heads = (self.layers if layers is None else layers) * self.kv_heads
        values = 2 * heads * self.head_width * tokens
        if precision == "int8":
            return values + 4 * heads * (self.head_width + tokens)
        return values * (2 if precision == "bfloat16" else self.dtype_bytes)


def shape_of(config: Any, dtype_bytes: int = 4) -> KVShape:
    """The shape of a model's text decoder, by its configuration."""
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return KVShape(config.num_hidden_layers, heads, width, dtype_bytes)
