"""A cache that is bounded in bytes: the value that was not used for longest goes first."""

from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    """Anything that says how many bytes it takes."""

    @property
    def nbytes(self) -> int: ...


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value", bound=Sized)


class LRUCache(Generic[Key, Value]):
    """Values by key that together take at most `limit` bytes; `nbytes` is what they take now."""

    def __init__(self, limit: int) -> None:
        self.limit, self.nbytes = limit, 0
        self._values: dict[Key, Value] = {}  # in order of use

    def get(self, key: Key) -> Value | None:
        """The value of a key, which is thereby used; None where it is not held."""
        if (value := self._values.pop(key, None)) is not None:
            self._values[key] = value
        return value

    def put(self, key: Key, value: Value) -> None:
        """Hold a value; others go until all fit."""
        if (old := self._values.pop(key, None)) is not None:
            self.nbytes -= old.nbytes
        self._values[key] = value
        self.nbytes += value.nbytes
        while self.nbytes > self.limit:
            self.nbytes -= self._values.pop(next(iter(self._values))).nbytes

    def clear(self) -> None:
        """Let go of all."""
        self._values.clear()
        self.nbytes = 0
