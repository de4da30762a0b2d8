"""What a condition brings for a question, and the contract that anything under test meets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hippo_core.protocols.paired.suite import SuiteNote


@dataclass(frozen=True)
class Passage:
    """A text that an answerer may read; `note`: the id of the note that it is, empty where it is none."""

    note: str
    text: str


@dataclass(frozen=True)
class RetrievedNotes:
    """What was retrieved for one question.

    Args:
        shown: passages that the answerer reads, in the order of the notes.
        ranking: ids of notes, best first; empty where nothing matched; None where a condition ranks nothing, so that recall has no value.
        best: the passage that was ranked first; None where nothing is ranked.
        confidence: how confident a memory is that it holds the answer, 0 to 1; None where it does not say.
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

    def recall(self, question: str, k: int) -> RetrievedNotes:
        """The k best notes for a question."""
        ...

    def close(self) -> None:
        """Free what it holds."""
        ...


def best_of(ids: Sequence[str], notes: Sequence[SuiteNote], k: int) -> RetrievedNotes:
    """A ranking of a world's notes, of which the k best are shown, in the order of the notes."""
    texts = {note.id: note.text for note in notes}
    shown = tuple(Passage(note_id, text) for note_id, text in texts.items() if note_id in ids[:k])
    return RetrievedNotes(shown, tuple(ids), Passage(ids[0], texts[ids[0]]) if ids[:k] else None)
