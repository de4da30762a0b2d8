"""What every delivery takes and returns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

from hippo_core.models.generate import Generation
from hippo_core.store.trace import Trace
from hippo_core.text import on_one_line


@dataclass(frozen=True)
class Question:
    """A question and the traces for it, in order of telling: with their texts, and with the method's payloads."""

    text: str
    traces: tuple[Trace, ...] = ()
    penalty: float | None = None  # how far "unknown" is held back (`first_tokens` in models/abstention.py); None: as the model's spec says
    together: bool = False  # the traces are one text, which is run as one

    @classmethod
    def of_texts(cls, text: str, passages: Iterable[str] = (), penalty: float | None = None) -> Self:
        """A question with traces that are nothing but these texts."""
        return cls(text, tuple(Trace("", "", passage) for passage in passages), penalty)

    @property
    def passages(self) -> tuple[str, ...]:
        """The texts of its traces, each on one line: a fact cannot end its line and bring a question of its own."""
        return tuple(on_one_line(trace.text) for trace in self.traces)

    @property
    def blocks(self) -> tuple[str, ...]:
        """The texts that are run apart from each other: those of its traces, or all as one."""
        return ("\n".join(self.passages),) if self.together and self.traces else self.passages


@dataclass(frozen=True)
class Delivered(Generation):
    """An answer with passages. `prompt_tokens` are all that the answer could see, `computed_tokens` what was run for it.

    Passages that had to be run are divided among the questions asked together, as is their time in `latency_ms`; the beginning that all
    prompts share counts in neither.
    """

    prompt: str  # the text that was run as the item's own
    trace_tokens: int  # of the passages before the model, seen or masked
    dropped: int = 0  # the first passages, which had no room


class Once(NamedTuple):
    """The cost of passages that are run once: milliseconds and tokens."""

    ms: float = 0.0
    tokens: float = 0.0


class Delivery(Protocol):
    """How passages reach a loaded model."""

    def ask(self, questions: Sequence[Question], max_new_tokens: int, batch_size: int = 32, *, masked: bool = False) -> list[Delivered]:
        """The greedy answers, in order. `masked`: all is run as ever, but no token looks at a passage: the answers are those without
        passages, token for token."""
        ...

    def make_ready(self, questions: Sequence[Question]) -> "Once":
        """Run and keep passages that were not run before. Returns the cost."""
        ...

    def forget(self) -> None:
        """Drop what is kept in memory."""
        ...
