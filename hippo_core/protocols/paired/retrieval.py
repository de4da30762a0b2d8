"""What a condition brings for a question, and the contract that anything under test meets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Passage:
    """A text that an answerer may read; `note`: the id of the note that it is, empty where it is none."""

    note: str
    text: str


@dataclass(frozen=True)
class Brought:
    """What was brought for one question.

    Args:
        shown: passages that the answerer reads, in order of telling.
        ranking: ids of notes, best first; empty where nothing was found; None where a condition ranks nothing, so that recall has no value.
        best: the passage that was ranked first; None where nothing is ranked.
        confidence: how sure a memory is that it holds the answer, 0 to 1; None where it does not say.
        answer: of a memory that answers itself; None elsewhere.
        seconds: of recall.
        tokens_in, tokens_out, tokens_cached: what recall and answer of the memory itself cost; cached ones are part of `tokens_in`.
        error: what went wrong; the item then fails.
    """

    shown: tuple[Passage, ...] = ()
    ranking: tuple[str, ...] | None = ()
    best: Passage | None = None
    confidence: float | None = None
    answer: str | None = None
    seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    error: str = ""


class MemoryUnderTest(Protocol):
    """A memory of one world, which was taught its notes when it was opened."""

    def recall(self, question: str, k: int) -> Brought:
        """The k best notes for a question."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


def by_rank(ids: Sequence[str], texts: dict[str, str], order: dict[str, int], k: int) -> tuple[tuple[Passage, ...], Passage | None]:
    """The k best of a ranking as passages in order of telling, and the first of the ranking."""
    best = [Passage(one, texts[one]) for one in ids[:k]]
    return tuple(sorted(best, key=lambda passage: order[passage.note])), best[0] if best else None
