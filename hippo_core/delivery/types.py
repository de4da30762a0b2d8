"""What every way of giving traces to a model takes and returns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hippo_core.models.generate import Generation


@dataclass(frozen=True)
class Question:
    """A question and the texts of the traces recalled for it, in the order of their telling."""

    text: str
    traces: tuple[str, ...] = ()


@dataclass(frozen=True)
class Injected(Generation):
    """An answer with traces: `trace_tokens` (M) are the traces' tokens that lay before the model, seen or masked; `dropped` counts
    the traces that had no room there.

    `prompt_tokens` are all that the answer could see, M included where the traces are seen; `computed_tokens` what was run for it.
    Traces that had to be run are divided among the questions asked together, and so is their time in `latency_ms`; the beginning
    that all prompts share, which kv and adapter run once in their life, counts in neither.
    """

    trace_tokens: int
    dropped: int = 0


class Injection(Protocol):
    """A way for traces to reach a loaded model."""

    mode: str

    def ask(self, questions: Sequence[Question], max_new_tokens: int, batch_size: int = 32, *, masked: bool = False) -> list[Injected]:
        """The greedy answers, in order. `masked`: all is run as ever, but no token looks at a trace and the question starts right
        after the prompt's beginning: the answers are those without traces, token for token."""
        ...
