"""Conditions: what stands between the notes and the question. Each opens a store of its own for each world, and none sees another's.

no-memory      nothing is retrieved
lexical        BM25 over words
semantic       vectors of sentences
graph          a walk over notes and the names in them
full-memory    the memory under test
full-context   all notes of the world: no memory is needed
random-memory  other notes than the expected ones
oracle-memory  the expected notes and no others: the ceiling of any recall
human-note     what a person wrote down about the world, a line a passage, no longer in all than what a memory retrieves
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import fmean
from typing import Any, Protocol

from hippo_core.errors import LabError, unknown
from hippo_core.protocols.paired.items import Asking, Item
from hippo_core.protocols.paired.suite import PairedSuite, SuiteNote

SCORES = (
    *("recall_at_k", "mrr", "ndcg", "tag_recall", "file_recall", "citation_precision"),
    *("assertion_recall", "forbidden_hits", "topic_recall", "refused"),
)
AGENT_SCORES = ("steps_passed", "score_commands_passed", "assertions_passed", "memory_queries_verified", "memory_queries")
COLUMNS = (
    *("entry", "item", "world", "type", "tags", "condition", "repeat", "place", "success", *SCORES),
    *("tokens_in", "tokens_out", "tokens_cached", "recall_s", "answer_s", "question", "answer", "read", "ranking", "error"),
)
TEXTS = ("entry", "item", "world", "type", "tags", "condition", "question", "answer", "read", "ranking", "error")
RETRIEVAL = {"lexical": "baselines/rag_bm25", "semantic": "baselines/rag_dense", "graph": "baselines/rag_graph"}
MEMORY = "full-memory"
CONTROLS = ("full-context", "random-memory", "oracle-memory", "human-note")
CONDITIONS = ("no-memory", *RETRIEVAL, MEMORY, *CONTROLS)


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
    """What anything under test meets: a memory of one world, which was taught its notes when it was opened."""

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


def ranked(where: str, ids: Sequence[str], notes: Sequence[SuiteNote], k: int, seconds: float) -> RetrievedNotes:
    """A ranking that somebody else's memory returned; an unknown or repeated id is an error of the item."""
    known = {note.id for note in notes}
    if strange := next((note_id for note_id in ids if note_id not in known), None):
        return RetrievedNotes(seconds=seconds, error=f"{where}: recalled {strange!r}, which is no id of a note that it was taught")
    if len(set(ids)) < len(ids):
        return RetrievedNotes(seconds=seconds, error=f"{where}: recalled a note twice: {', '.join(ids[:8])}")
    return replace(best_of(ids, notes, k), seconds=seconds)


@dataclass(frozen=True)
class OpenCondition:
    """A condition in one world; `retrieve` gets an item and the number of the repeat."""

    name: str
    retrieve: Callable[[Asking, int], RetrievedNotes]
    close: Callable[[], None] = lambda: None


def open_condition(
    name: str, suite: PairedSuite, world: str, opened: Callable[[str, Sequence[SuiteNote]], MemoryUnderTest], seed: int
) -> OpenCondition:
    """A condition in a world. `opened(name, notes)` opens what it recalls from: a preset's name, or full-memory. LabError for an unknown
    condition, and for human-note where the world has none."""
    notes = suite.by_world[world]
    if name in RETRIEVAL or name == MEMORY:
        memory = opened(RETRIEVAL.get(name, name), notes)
        return OpenCondition(name, lambda item, repeat: memory.recall(asked(item), item.top_k), memory.close)
    if name not in CONDITIONS:
        raise unknown("condition", name, CONDITIONS)
    human = suite.human_note(world) if name == "human-note" else ""
    if name == "human-note" and not human.strip():
        needed = f"no human_notes/{world}.md, which the condition human-note needs"
        raise LabError(f"{suite.folder}: {needed}; write it, or leave the condition out")

    def retrieve(item: Asking, repeat: int) -> RetrievedNotes:
        if name == "no-memory":
            return RetrievedNotes()
        if name == "full-context":
            return RetrievedNotes(tuple(Passage(note.id, note.text) for note in notes), None)
        if name == "human-note":
            words = round(item.top_k * fmean(len(note.text.split()) for note in notes))
            return RetrievedNotes(shortened(human, max(1, words)), None)
        tags, files = set(getattr(item, "expected_tags", ())), set(getattr(item, "expected_files", ()))
        labelled = {note.id for note in notes if tags & set(note.tags) or files & set(note.files)}
        if name == "oracle-memory":
            right = {*expected(item)} or labelled
            chosen = [note.id for note in notes if note.id in right]
        else:
            others = [note.id for note in notes if note.id not in {*expected(item), *labelled}]
            chosen = Random(f"{seed}/{repeat}/{world}/{item.id}").sample(others, min(item.top_k, len(others)))
        return best_of(chosen, notes, len(chosen))

    return OpenCondition(name, retrieve)


def row_of(item: Item, condition: str, repeat: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """The row of an item that was asked once; what is not among its values is None."""
    about = {"entry": f"{item.id}/{repeat}", "item": item.id, "world": item.world, "type": item.type, "tags": ";".join(item.tags)}
    return dict.fromkeys(COLUMNS) | about | {"condition": condition, "repeat": repeat, **values}


def asked(item: Asking) -> str:
    """The words that an item asks in."""
    return item.prompt if item.type == "resume_quality" else item.question


def expected(item: Asking) -> list[str]:
    """The notes that a right answer rests on; none where no note answers."""
    return item.fresh_notes if item.type == "adversarial_stale" else item.expected_notes


def shortened(text: str, words: int) -> tuple[Passage, ...]:
    """The lines of a text as passages, cut after so many words."""
    passages = []
    for line in text.splitlines():
        if (kept := line.split()[:words]) and words > 0:
            passages.append(Passage("", " ".join(kept)))
        words -= len(kept)
    return tuple(passages)
