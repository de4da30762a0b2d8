"""Ask one question of one method over the traces of one world. Indexes are kept in memory as long as the traces stay the same."""

import time
from collections.abc import Sequence
from dataclasses import replace

from hippo_core.evaluation.asked import asked_of
from hippo_core.live.answer import LISTED, Answer, RecallResult, number_of, recalled
from hippo_core.methods.base import Method, Query, Retrieved
from hippo_core.methods.controls import open_controlled
from hippo_core.methods.self_ask import composed_by, left_of, read_of
from hippo_core.retrieval.encoded import private
from hippo_core.store.trace import Trace
from hippo_core.suites.types import Item
from hippo_core.text import OWN_ANSWER_TOKENS


class OpenWorld:
    """The traces of a world, opened by a method. `others`: traces of another world, for the control `shuffled`."""

    def __init__(self, method: Method, traces: Sequence[Trace], others: Sequence[Trace] = ()) -> None:
        self.method, self.traces, self.others = method, list(traces), others
        self.sources = tuple(dict.fromkeys(trace.source for trace in sorted(traces, key=lambda trace: (trace.time, trace.id))))
        with private():
            self._retrieve = open_controlled(method, self.traces, others)

    def recall(self, question: str, listed: int = LISTED, gold: Sequence[str] = ()) -> RecallResult:
        """What is recalled for a question. `gold`: sources of the right traces, which the controls oracle and random read."""
        return recalled(question, self._retrieved(question, gold), len(self.traces), listed)

    def ask(self, question: str, tokens: int = OWN_ANSWER_TOKENS, gold: Sequence[str] = (), recall: bool = True) -> Answer:
        """The answer, of at most so many tokens. `recall` False: nothing is recalled."""
        begin = time.perf_counter()
        retrieved = self._retrieved(question, gold, tokens) if recall else Retrieved(())
        masked = self.method.settings.control == "empty"
        [delivered] = self.method.delivery.ask([asked_of(self.method, question, retrieved)], tokens, masked=masked)
        total = (time.perf_counter() - begin) * 1e3
        recalled_traces = replace(recalled(question, retrieved, len(self.traces)), off=not recall)
        read = read_of(question, retrieved, delivered, masked)
        behind = () if masked else left_of(retrieved, delivered)
        order = {(trace.memory, number_of(trace)): rank for rank, trace in enumerate(behind)}
        shown = sorted(
            (trace for trace in recalled_traces.traces if (trace.memory, trace.id) in order),
            key=lambda shown_trace: order[shown_trace.memory, shown_trace.id],
        )
        computed = retrieved.computed_tokens + delivered.computed_tokens + delivered.generated_tokens
        counts = {"prompt": delivered.prompt_tokens, "traces": delivered.trace_tokens, "generated": delivered.generated_tokens}
        counts |= {"computed": computed}
        ms = {**recalled_traces.ms, "answer": delivered.latency_ms, "total": total}
        by = composed_by(read, retrieved, delivered)
        details = {"read": read, "inner_read": retrieved.inner_read, "composed_by": by, "cut": delivered.cut}
        return Answer(delivered.text, question, tuple(shown), recalled_traces, delivered.prompt, counts, ms, **details)

    def _retrieved(self, question: str, gold: Sequence[str], budget: int = OWN_ANSWER_TOKENS) -> Retrieved:
        world = self.traces[0].world if self.traces else ""
        item = Item("asked", world, question, ("",), tuple(gold), "asked", taught=self.sources)
        with private():
            return self._retrieve(item, Query(question, self.sources, room=budget)).retrieved


def as_part(traces: Sequence[Trace], name: str) -> list[Trace]:
    """Traces with the name of the memory that they were read from."""
    return [replace(trace, memory=name) for trace in traces]
