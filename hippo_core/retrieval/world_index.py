"""Values that are computed once for the passages of a world, and cues of all questions about it that are encoded together."""

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hippo_core.store.trace import Trace

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel


T = TypeVar("T")


class Cues(Generic[T]):
    """What `encode` makes of cues: of `texts` in one batch when the first of them is asked for, of others one by one."""

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


@dataclass
class WorldIndex:
    """An index over the passages of one world, whose parts are built when first asked for. `questions`: those that will be asked."""

    lm: "LanguageModel"
    traces: Sequence[Trace]
    questions: Sequence[str] = ()
    cue_ms: float = 0.0  # that questions took which were encoded together, since it was last set to 0
    _built: dict[Hashable, Any] = field(default_factory=dict)

    @cached_property
    def passages(self) -> dict[str, Trace]:
        """The passages by source."""
        return {trace.source: trace for trace in self.traces}

    def once(self, key: Hashable, build: Callable[[], Any]) -> Any:
        """The result of `build`, which is called only at the first call with this key."""
        if key not in self._built:
            self._built[key] = build()
        return self._built[key]

    def cue(self, key: Hashable, question: str, encode: Callable[[Sequence[str]], Sequence[Any]]) -> Any:
        """What `encode` makes of a question, once a key of all the world's questions together, whose time is added to `cue_ms`."""
        made, ms = self.once(("cues", key), lambda: Cues(encode, self.questions)).of(question)
        self.cue_ms += ms if question in self.questions else 0.0  # else it is in the time of who asks
        return made
