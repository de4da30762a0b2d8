"""Baselines that search nothing: the window, and the long context of all facts."""

from collections.abc import Sequence

from hippo_core.methods.base import Count, Method, MethodSettings, Query, Retrieve, Retrieved
from hippo_core.store.trace import Trace


class Window(Method):
    """The facts of the window in the immediate regime; nothing in the delayed one."""

    ignores_window = False

    def open(self, traces: Sequence[Trace], questions: Sequence[str] = ()) -> Retrieve:
        return lambda query: Retrieved(tuple(trace for trace in traces if trace.source in query.window))


class LongContextSettings(MethodSettings):
    """`k`: how many of the last facts are shown; None: all."""

    k: Count | None = None


class LongContext(Method):
    """All taught facts, or the last of them that the model's context holds."""

    Settings = LongContextSettings

    def open(self, traces: Sequence[Trace], questions: Sequence[str] = ()) -> Retrieve:
        def retrieve(query: Query) -> Retrieved:
            taught = set(query.taught)
            return Retrieved(tuple(trace for trace in traces if trace.source in taught)[-(self.settings.k or 0) :])

        return retrieve
