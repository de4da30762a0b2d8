"""A method's own part of a trace: a payload, which its codec turns into bytes and back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from hippo_core.errors import LabError


class Codec(Protocol):
    """Payloads of one kind. Nothing is pickled: `decode` builds a payload from plain numbers and texts, and checks them."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """What a store says of its payloads, as plain values; it opens for equal ones alone."""
        ...

    def check(self, payload: Any) -> None:
        """LabError where a payload is not of this kind."""
        ...

    def encode(self, payload: Any) -> bytes:
        """A payload as bytes."""
        ...

    def decode(self, data: bytes) -> Any:
        """The payload of these bytes; LabError or ValueError where `encode` has not written them."""
        ...

    def to_json(self, payload: Any, dense: bool = False) -> dict[str, Any]:
        """A payload for reading elsewhere; `dense`: with rows of all dimensions in the place of sparse ones."""
        ...

    def from_json(self, values: Mapping[str, Any]) -> Any:
        """Back from `to_json`, of either form."""
        ...


@dataclass(frozen=True)
class NoPayload:
    """The codec of a method that needs the text alone."""

    settings: Mapping[str, Any] = field(default_factory=dict)

    def check(self, payload: Any) -> None:
        if payload is not None:
            raise LabError(f"expected no payload, got {type(payload).__name__}; give the method a codec of its own")

    def encode(self, payload: Any) -> bytes:
        return b""

    def decode(self, data: bytes) -> Any:
        if data:
            raise LabError(f"expected no payload, got {len(data)} bytes")

    def to_json(self, payload: Any, dense: bool = False) -> dict[str, Any]:
        return {}

    def from_json(self, values: Mapping[str, Any]) -> Any:
        """See `Codec`."""


@dataclass(frozen=True)
class Undecoded:
    """The payloads of a store that is opened without saying by what method: bytes, as they are."""

    settings: Mapping[str, Any]

    def check(self, payload: Any) -> None:
        if not isinstance(payload, bytes):
            raise LabError("a store that is opened without a method takes payloads as bytes; open it with the identity of its method")

    def encode(self, payload: Any) -> bytes:
        return payload

    def decode(self, data: bytes) -> Any:
        return data

    def to_json(self, payload: Any, dense: bool = False) -> dict[str, Any]:
        return {"hex": payload.hex()}

    def from_json(self, values: Mapping[str, Any]) -> Any:
        return bytes.fromhex(values["hex"])
