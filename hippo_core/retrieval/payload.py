"""The payload of a trace that is recalled by a sparse key: the key, and the model's tokens of the trace's text."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hippo_core.files import LabError
from hippo_core.retrieval.sparse_key import SparseKey


@dataclass(frozen=True)
class Payload:
    """The payload of a trace.

    Args:
        token_ids: the model's tokens of the text, as a line before a question.
        key: the sparse key that the trace is recalled by.
    """

    token_ids: tuple[int, ...]
    key: SparseKey


@dataclass(frozen=True)
class PayloadCodec:
    """The codec of payloads of one kind.

    The bytes hold the number of tokens T, the number of winners K, the tokens, the indices and the values, all little-endian. They take
    4, 4, 4 T, 4 K and K bytes.

    Args:
        key: describes how the keys are made.
        dims: how many dimensions a key has.
        winners: the most values of a key that are not 0.
        token_limit: the most tokens of a payload.
    """

    key: str
    dims: int
    winners: int
    token_limit: int = 512

    def __post_init__(self) -> None:
        if not 1 <= self.winners <= self.dims:
            raise LabError(f"a key has from 1 winner to as many as dimensions, got {self.winners} winners of {self.dims} dimensions")
        if self.token_limit < 1:
            raise LabError(f"a store's traces have from 1 token, got a token limit of {self.token_limit}")

    @property
    def settings(self) -> Mapping[str, Any]:
        return asdict(self)

    def check(self, payload: Any) -> None:
        if not isinstance(payload, Payload):
            raise LabError(f"expected the tokens and the key of a text, got {type(payload).__name__}; encode it as the store's others")
        key, length = payload.key, len(payload.token_ids)
        if key.dims != self.dims:
            raise LabError(f"expected a key of {self.dims} dimensions, got {key.dims}; encode it as the store's others")
        if len(key.indices) > self.winners:
            raise LabError(f"expected at most {self.winners} winners, got {len(key.indices)}; encode it as the store's others")
        if not 1 <= length <= self.token_limit:
            raise LabError(f"expected 1 to {self.token_limit} tokens, got {length}; shorten the fact, split it, or take a longer context")
        if not all(0 <= token < 2**31 for token in payload.token_ids):
            raise LabError(f"a token id is not from 0 to {2**31 - 1}; give the ids of the model's tokenizer")

    def encode(self, payload: Payload) -> bytes:
        sizes = np.array([len(payload.token_ids), len(payload.key.indices)], "<i4").tobytes()
        tokens, key = np.asarray(payload.token_ids, "<i4").tobytes(), payload.key
        return sizes + tokens + key.indices.astype("<i4").tobytes() + key.values.tobytes()

    def decode(self, data: bytes) -> Payload:
        tokens, winners = np.frombuffer(data[:8], "<i4").tolist()
        middle, end = 8 + 4 * tokens, 8 + 4 * tokens + 4 * winners
        if min(tokens, winners) < 0 or len(data) != end + winners:
            raise LabError(f"a payload of {tokens} tokens and {winners} winners has {end + winners} bytes, got {len(data)}")
        key = SparseKey(np.frombuffer(data[middle:end], "<i4"), np.frombuffer(data[end:], "i1"), self.dims)
        return Payload(tuple(np.frombuffer(data[8:middle], "<i4").tolist()), key)

    def to_json(self, payload: Payload, dense: bool = False) -> dict[str, Any]:
        """See `Codec`. The key is {dims, indices, values}, or its dense row if `dense`."""
        key = payload.key
        sparse = {"dims": key.dims, "indices": key.indices.tolist(), "values": key.values.tolist()}
        return {"key": key.dense() if dense else sparse, "token_ids": list(payload.token_ids)}

    def from_json(self, values: Mapping[str, Any]) -> Payload:
        key = values["key"]
        sparse = SparseKey.of_dense(key) if isinstance(key, list) else SparseKey(key["indices"], key["values"], key["dims"])
        return Payload(tuple(values["token_ids"]), sparse)
