"""Methods that search nothing: what stands before the question anyway, and everything."""

from collections.abc import Sequence

from hippo_core.methods.base import Count, Method, MethodSettings, Query, Retrieve, Retrieved
from hippo_core.store.trace import Trace


class Window(Method):
    """The facts that stand before the question in the same session; nothing in another one."""

    ignores_window = False

    def open(self, traces: Sequence[Trace], questions: Sequence[str] = ()) -> Retrieve:
        return lambda query: Retrieved(tuple(trace for trace in traces if trace.source in query.window))


class LongContextSettings(MethodSettings):
    """`k`: so many of the last facts; None: all."""

    k: Count | None = None


class LongContext(Method):
    """All taught facts; where they exceed the model's context, its end."""

    Settings = LongContextSettings

    def open(self, traces: Sequence[Trace], questions: Sequence[str] = ()) -> Retrieve:
        def retrieve(query: Query) -> Retrieved:
            taught = set(query.taught)
            return Retrieved(tuple(trace for trace in traces if trace.source in taught)[-(self.settings.k or 0) :])

        return retrieve
