"""Ask one question of one method over the traces of one world. Indexes are kept in memory as long as the traces stay the same."""

import time
from collections.abc import Sequence
from dataclasses import replace

from hippo_core.delivery.types import Delivered, Question
from hippo_core.live.answer import LISTED, Answer, ComposedBy, Read, Recall, number_of, recalled
from hippo_core.methods.base import Method, Query, Retrieve, Retrieved
from hippo_core.methods.controls import controlled
from hippo_core.models.abstention import ALWAYS, NEVER
from hippo_core.retrieval.encoded import private
from hippo_core.store.trace import Trace
from hippo_core.suites.types import Item

ANSWER_TOKENS = 32  # at most; the model stops by itself


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
        masked = self.method.settings.control == "empty"
        [delivered] = self.method.delivery.ask([asked_of(self.method, question, retrieved)], tokens, masked=masked)
        total = (time.perf_counter() - begin) * 1e3
        found = replace(recalled(question, retrieved, len(self.traces)), off=not recall)
        read = read_of(question, retrieved, delivered, masked)
        behind = () if masked else left_of(retrieved, delivered)
        order = {(trace.memory, number_of(trace)): place for place, trace in enumerate(behind)}
        shown = sorted((one for one in found.traces if (one.memory, one.id) in order), key=lambda trace: order[trace.memory, trace.id])
        counts: dict[str, float] = {
            "prompt": delivered.prompt_tokens,
            "traces": delivered.trace_tokens,
            "generated": delivered.generated_tokens,
        }
        counts["computed"] = retrieved.computed_tokens + delivered.computed_tokens + delivered.generated_tokens
        ms = {**found.ms, "answer": delivered.latency_ms, "total": total}
        by = composed_by(read, retrieved, delivered)
        return Answer(
            delivered.text, question, tuple(shown), found, delivered.prompt, counts, ms, read=read, composed_by=by, cut=delivered.cut
        )

    def _retrieved(self, question: str, gold: Sequence[str]) -> Retrieved:
        with private():
            retrieved = self._retrieve(Query(question, self.sources))
        if self.method.settings.control == "none":
            return retrieved
        world = self.traces[0].world if self.traces else ""
        item = Item("asked", world, question, ("",), tuple(gold), "asked", taught=self.sources)
        return controlled(self.method, item, retrieved, self.traces, self.others)


def penalty_of(method: Method, retrieved: Retrieved) -> float | None:
    """How far "unknown" is held back in an answer: as a method says that decides and knows, else as the model's spec says (None). Where
    either decides and a program wrote the answer into what the model reads, the model has nothing to judge by."""
    decides = method.settings.abstention
    if retrieved.confidence is not None and retrieved.confidence < method.settings.unknown_below:
        return ALWAYS
    if decides == "model" or retrieved.confidence is None:
        return None
    copies = decides == "either" and retrieved.restates and not retrieved.reworded
    if retrieved.confidence >= 0.5 or copies:
        return NEVER
    return ALWAYS if decides == "method" else None


def asked_of(method: Method, question: str, retrieved: Retrieved) -> Question:
    """What a delivery is asked: a question with what was retrieved for it."""
    return Question(retrieved.rephrased or question, retrieved.delivered, penalty_of(method, retrieved), retrieved.together)


def left_of(retrieved: Retrieved, delivered: Delivered) -> tuple[Trace, ...]:
    """The traces whose words reached the model, or stood behind the method's own words that did."""
    return retrieved.shown[len(retrieved.shown) if retrieved.restates and delivered.dropped else delivered.dropped :]


def read_of(question: str, retrieved: Retrieved, delivered: Delivered, masked: bool) -> tuple[Read, ...]:
    """What the model read of a question's own, in order, each part with who wrote it. `masked`: the model saw no line."""
    lines = () if masked else retrieved.delivered[delivered.dropped :]
    asked = Read(retrieved.rephrased, "program") if retrieved.rephrased not in ("", question) else Read(question, "asker")
    return (*(Read(trace.text, "program" if retrieved.restates else "teller") for trace in lines), asked)


def composed_by(read: Sequence[Read], retrieved: Retrieved, delivered: Delivered) -> ComposedBy:
    """Who composed an answer: a program alone, a program whose words the model copies, or the model that read facts."""
    if delivered.decided or not delivered.generated_tokens:
        return "program"
    told = any(one.by == "program" for one in read[:-1])
    return "program, model copies" if told and not retrieved.reworded else "model"


def as_part(traces: Sequence[Trace], name: str) -> list[Trace]:
    """Traces with the name of the memory that they were read from."""
    return [replace(trace, memory=name) for trace in traces]
