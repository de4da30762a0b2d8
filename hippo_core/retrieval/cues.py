"""Cues that are encoded together: all questions about a world in one batch, for whoever retrieves with them."""

import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Cues(Generic[T]):
    """What an encoder makes of cues.

    Args:
        encode: makes something of each of several texts.
        texts: the cues that will be asked for; they are encoded in one batch when the first of them is, others one by one.
    """

    def __init__(self, encode: Callable[[Sequence[str]], Sequence[T]], texts: Sequence[str] = ()) -> None:
        self._encode, self._texts = encode, tuple(dict.fromkeys(texts))
        self._made: dict[str, T] = {}
        self.ms = 0.0  # of the batch, a text

    def of(self, text: str) -> tuple[T, float]:
        """What is made of a text, and the milliseconds that it took: its share of the batch, or its own."""
        if text in self._texts:
            self._run()
            return self._made[text], self.ms
        begin = time.perf_counter()
        [made] = self._encode([text])
        return made, (time.perf_counter() - begin) * 1e3

    def _run(self) -> None:
        if not self._made:
            begin = time.perf_counter()
            self._made = dict(zip(self._texts, self._encode(self._texts), strict=True))
            self.ms = (time.perf_counter() - begin) * 1e3 / len(self._texts)
