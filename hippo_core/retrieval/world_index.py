"""Values that are computed once for the passages of a world and used for all questions about it."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hippo_core.retrieval.cues import Cues
from hippo_core.store.trace import Trace

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel


@dataclass
class WorldIndex:
    """An index over the passages of one world, owned by the caller and thrown away with it. Parts are built when first asked for.
    `questions`: those that will be asked, so that they can be encoded together."""

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
        """What `encode` makes of a question, which the world's questions are given to together, once a key; its part of the time of that is
        added to `cue_ms`."""
        made, ms = self.once(("cues", key), lambda: Cues(encode, self.questions)).of(question)
        self.cue_ms += ms if question in self.questions else 0.0  # else it is in the time of who asks
        return made
