"""Ask one question of one method over the traces of one world. Indexes are kept in memory as long as the traces stay the same."""

import time
from collections.abc import Sequence
from dataclasses import replace

from hippo_core.delivery.types import Question
from hippo_core.live.answer import LISTED, Answer, Recall, recalled
from hippo_core.methods.base import Method, Query, Retrieve, Retrieved
from hippo_core.methods.controls import controlled
from hippo_core.models.abstention import ALWAYS, NEVER
from hippo_core.retrieval.encoded import private
from hippo_core.store.trace import Trace
from hippo_core.suites.types import Item

ANSWER_TOKENS = 16


class OpenWorld:
    """The traces of a world, opened by a method. `others`: traces of another world, for the control `shuffled`."""

    def __init__(self, method: Method, traces: Sequence[Trace], others: Sequence[Trace] = ()) -> None:
        self.method, self.traces, self.others = method, list(traces), others
        self.sources = tuple(dict.fromkeys(trace.source for trace in sorted(traces, key=lambda trace: (trace.time, trace.id))))
        with private():
            self._retrieve: Retrieve = method.open(self.traces)

    def recall(self, question: str, listed: int = LISTED, gold: Sequence[str] = ()) -> Recall:
        """What is recalled for a question. `gold`: sources of the right traces, which the controls oracle and random read."""
        return recalled(question, self._retrieved(question, gold), len(self.traces), listed)

    def ask(self, question: str, tokens: int = ANSWER_TOKENS, gold: Sequence[str] = (), recall: bool = True) -> Answer:
        """The answer, of at most so many tokens. `recall` False: nothing is recalled."""
        begin = time.perf_counter()
        retrieved = self._retrieved(question, gold) if recall else Retrieved(())
        penalty = penalty_of(self.method, retrieved)
        asked = Question(retrieved.rephrased or question, retrieved.delivered, penalty, retrieved.together)
        masked = self.method.settings.control == "empty"
        [delivered] = self.method.delivery.ask([asked], tokens, masked=masked)
        total = (time.perf_counter() - begin) * 1e3
        found = replace(recalled(question, retrieved, len(self.traces)), off=not recall)
        seen = [] if masked else [trace for trace in found.traces if trace.shown]
        shown = sorted(seen, key=lambda trace: trace.id)[delivered.dropped :]
        counts: dict[str, float] = {
            "prompt": delivered.prompt_tokens,
            "traces": delivered.trace_tokens,
            "generated": delivered.generated_tokens,
        }
        counts["computed"] = retrieved.computed_tokens + delivered.computed_tokens + delivered.generated_tokens
        ms = {**found.ms, "answer": delivered.latency_ms, "total": total}
        return Answer(delivered.text, question, tuple(shown), found, delivered.prompt, counts, ms)

    def _retrieved(self, question: str, gold: Sequence[str]) -> Retrieved:
        with private():
            retrieved = self._retrieve(Query(question, self.sources))
        if self.method.settings.control == "none":
            return retrieved
        world = self.traces[0].world if self.traces else ""
        item = Item("asked", world, question, ("",), tuple(gold), "asked", taught=self.sources)
        return controlled(self.method, item, retrieved, self.traces, self.others)


def penalty_of(method: Method, retrieved: Retrieved) -> float | None:
    """How far "unknown" is held back in an answer: as a method says that decides and knows, else as the model's spec says (None)."""
    decides = method.settings.abstention
    if decides == "model" or retrieved.confidence is None:
        return None
    if retrieved.confidence >= 0.5:
        return NEVER
    return ALWAYS if decides == "method" else None


def as_part(traces: Sequence[Trace], name: str) -> list[Trace]:
    """Traces with the name of the memory that they were read from."""
    return [replace(trace, memory=name) for trace in traces]
