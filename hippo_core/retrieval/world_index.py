"""Values that are computed once for the passages of a world and used for all questions about it."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hippo_core.store.trace import Trace

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel


@dataclass
class WorldIndex:
    """An index over the passages of one world. The caller owns it and drops it with the world. Parts are built when first needed."""

    lm: "LanguageModel"
    traces: Sequence[Trace]
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
