"""The payload of a trace: the model's own tokens of its text, and what each of its sentences is recalled by."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hippo_core.errors import LabError
from hippo_core.retrieval.sparse_key import SparseKey


@dataclass(frozen=True, eq=False)
class Payload:
    """What is kept of a text of S sentences."""

    token_ids: tuple[int, ...]  # the model's tokens of the text as a line before a question
    keys: tuple[SparseKey, ...]  # the sparse key of each sentence
    vectors: NDArray[np.int8] | None = None  # an encoder's, int8 [S, D]; D is 0 without one
    pieces: tuple[NDArray[np.int8], ...] = ()  # int8 [T, W] of each sentence; none where they are not compared

    def __post_init__(self) -> None:
        if self.vectors is None:
            object.__setattr__(self, "vectors", np.zeros((len(self.keys), 0), np.int8))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Payload) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[object, ...]:
        pieces = tuple((piece.shape, piece.tobytes()) for piece in self.pieces)
        return self.token_ids, self.keys, self.table.shape, self.table.tobytes(), pieces

    @property
    def table(self) -> NDArray[np.int8]:
        """The vectors, int8 [S, D]."""
        assert self.vectors is not None
        return self.vectors


@dataclass(frozen=True)
class PayloadCodec:
    """The codec of payloads of one kind: keys that `key` describes, of `dims` dimensions and at most `winners` values.

    Bytes, little-endian: the number of tokens and of sentences, and of each sentence's winners, 4 each; tokens of 4; then of each
    sentence the indices, of 4, and the values, of 1; then the vectors.
    """

    key: str
    dims: int
    winners: int
    token_limit: int = 512  # tokens at most
    width: int = 0  # numbers of a vector
    pieces: int = 0  # numbers of a word piece

    def __post_init__(self) -> None:
        if not 1 <= self.winners <= self.dims:
            raise LabError(f"a key has from 1 winner to as many as dimensions, got {self.winners} winners of {self.dims} dimensions")
        if self.token_limit < 1:
            raise LabError(f"a store's traces have from 1 token, got a token limit of {self.token_limit}")
        if min(self.width, self.pieces) < 0:
            raise LabError(f"a vector has 0 numbers or more, got {min(self.width, self.pieces)}")

    @property
    def settings(self) -> Mapping[str, Any]:
        settings = asdict(self)
        return settings if self.pieces else {name: value for name, value in settings.items() if name != "pieces"}  # as older stores say it

    def check(self, payload: Any) -> None:
        if not isinstance(payload, Payload):
            raise LabError(f"expected the tokens and the keys of a text, got {type(payload).__name__}; encode it as the store's others")
        if not payload.keys:
            raise LabError("expected a key a sentence, got none; encode the text as the store's others")
        for key in payload.keys:
            if key.dims != self.dims:
                raise LabError(f"expected a key of {self.dims} dimensions, got {key.dims}; encode it as the store's others")
            if len(key.indices) > self.winners:
                raise LabError(f"expected at most {self.winners} winners, got {len(key.indices)}; encode it as the store's others")
        if payload.table.dtype != np.int8 or payload.table.shape != (len(payload.keys), self.width):
            got = f"{payload.table.dtype} {[*payload.table.shape]}"
            raise LabError(f"expected vectors int8 [{len(payload.keys)}, {self.width}], got {got}; encode it as the store's others")
        due = len(payload.keys) if self.pieces else 0
        if len(payload.pieces) != due or any(
            piece.dtype != np.int8 or piece.shape != (len(piece), self.pieces) for piece in payload.pieces
        ):
            raise LabError(f"expected the pieces of {due} sentences, int8 of {self.pieces}; encode the text as the store's others")
        if not 1 <= (length := len(payload.token_ids)) <= self.token_limit:
            raise LabError(f"expected 1 to {self.token_limit} tokens, got {length}; shorten the fact, split it, or take a longer context")
        if not all(0 <= token < 2**31 for token in payload.token_ids):
            raise LabError(f"a token id is not from 0 to {2**31 - 1}; give the ids of the model's tokenizer")

    def encode(self, payload: Payload) -> bytes:
        sizes = [len(payload.token_ids), len(payload.keys), *(len(key.indices) for key in payload.keys)]
        keys = b"".join(key.indices.astype("<i4").tobytes() + key.values.tobytes() for key in payload.keys)
        pieces = b"".join(np.array([len(piece)], "<i4").tobytes() + piece.tobytes() for piece in payload.pieces)
        return np.array([*sizes, *payload.token_ids], "<i4").tobytes() + keys + payload.table.tobytes() + pieces

    def decode(self, data: bytes) -> Payload:
        tokens, count = np.frombuffer(data[:8], "<i4").tolist()
        if min(tokens, count) < 0 or len(data) < 8 + 4 * (tokens + count):
            raise LabError(f"a payload of {tokens} tokens and {count} sentences has more bytes than {len(data)}")
        winners = np.frombuffer(data[8 : 8 + 4 * count], "<i4").tolist()
        offset = 8 + 4 * (count + tokens)
        due = offset + 5 * sum(winners) + count * self.width
        if min(winners, default=0) < 0 or len(data) < due or (not self.pieces and len(data) > due):
            raise LabError(f"a payload of {tokens} tokens and {winners} winners has {due} bytes, got {len(data)}")
        token_ids, keys = tuple(np.frombuffer(data[8 + 4 * count : offset], "<i4").tolist()), []
        for size in winners:
            middle, end = offset + 4 * size, offset + 5 * size
            keys.append(SparseKey(np.frombuffer(data[offset:middle], "<i4"), np.frombuffer(data[middle:end], "i1"), self.dims))
            offset = end
        vectors = np.frombuffer(data[offset:due], "i1").reshape(count, self.width)
        return Payload(token_ids, tuple(keys), vectors, self._decoded_pieces(data[due:], count) if self.pieces else ())

    def _decoded_pieces(self, data: bytes, count: int) -> tuple[NDArray[np.int8], ...]:
        pieces, offset = [], 0
        for _ in range(count):
            size = int(np.frombuffer(data[offset : offset + 4], "<i4")[0]) if len(data) >= offset + 4 else -1
            end = offset + 4 + size * self.pieces
            if size < 0 or end > len(data):
                raise LabError(f"the pieces of {count} sentences have more bytes than {len(data)}")
            pieces.append(np.frombuffer(data[offset + 4 : end], "i1").reshape(size, self.pieces))
            offset = end
        if offset != len(data):
            raise LabError(f"the pieces of {count} sentences have {offset} bytes, got {len(data)}")
        return tuple(pieces)

    def to_json(self, payload: Payload, dense: bool = False) -> dict[str, Any]:
        """See `Codec`. `key` is {dims, indices, values}, or the dense row; of several sentences their union, beside theirs as `keys`."""

        def plain(key: SparseKey) -> Any:
            return key.dense() if dense else {"dims": key.dims, "indices": key.indices.tolist(), "values": key.values.tolist()}

        several = {"keys": [plain(key) for key in payload.keys]} if len(payload.keys) > 1 else {}
        vectors = {"vectors": payload.table.tolist()} if self.width else {}
        pieces = {"pieces": [piece.tolist() for piece in payload.pieces]} if self.pieces else {}
        return {"key": plain(SparseKey.union(payload.keys)), "token_ids": list(payload.token_ids), **several, **vectors, **pieces}

    def from_json(self, values: Mapping[str, Any]) -> Payload:
        keys = [
            SparseKey.of_dense(key) if isinstance(key, list) else SparseKey(key["indices"], key["values"], key["dims"])
            for key in values.get("keys", [values["key"]])
        ]
        vectors = np.array(values.get("vectors", []), np.int8).reshape(len(keys), self.width)
        pieces = tuple(np.array(piece, np.int8).reshape(-1, self.pieces) for piece in values.get("pieces", []))
        return Payload(tuple(values["token_ids"]), tuple(keys), vectors, pieces)
