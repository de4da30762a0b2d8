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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean

from hippo_core.errors import LabError, unknown
from hippo_core.protocols.paired.items import Asking
from hippo_core.protocols.paired.retrieval import MemoryUnderTest, Passage, RetrievedNotes, best_of
from hippo_core.protocols.paired.suite import PairedSuite, SuiteNote

SCORES = (
    *("recall_at_k", "mrr", "ndcg", "tag_recall", "file_recall", "citation_precision"),
    *("assertion_recall", "forbidden_hits", "topic_recall", "refused"),
)
COLUMNS = (
    *("entry", "item", "world", "type", "tags", "condition", "repeat", "place", "success", *SCORES),
    *("tokens_in", "tokens_out", "tokens_cached", "recall_s", "answer_s", "question", "answer", "read", "ranking", "error"),
)

RETRIEVAL = {"lexical": "baselines/rag_bm25", "semantic": "baselines/rag_dense", "graph": "baselines/rag_graph"}
MEMORY = "full-memory"
CONTROLS = ("full-context", "random-memory", "oracle-memory", "human-note")
CONDITIONS = ("no-memory", *RETRIEVAL, MEMORY, *CONTROLS)


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
    if name == "no-memory":
        return OpenCondition(name, lambda item, repeat: RetrievedNotes())
    if name == "full-context":
        everything = tuple(Passage(note.id, note.text) for note in notes)
        return OpenCondition(name, lambda item, repeat: RetrievedNotes(everything, None))
    if name == "random-memory":
        return OpenCondition(name, lambda item, repeat: _random(item, notes, Random(f"{seed}/{repeat}/{world}/{item.id}")))
    if name == "oracle-memory":
        return OpenCondition(name, lambda item, repeat: _oracle(item, notes))
    if name == "human-note":
        text = suite.human_note(world)
        if not text.strip():
            raise LabError(
                f"{suite.folder}: no human_notes/{world}.md, which the condition human-note needs; write it, or leave the condition out"
            )
        return OpenCondition(name, lambda item, repeat: RetrievedNotes(shortened(text, budget(notes, item.top_k)), None))
    raise unknown("condition", name, CONDITIONS)


def asked(item: Asking) -> str:
    """The words that an item asks in."""
    return item.prompt if item.type == "resume_quality" else item.question


def expected(item: Asking) -> list[str]:
    """The notes that a right answer rests on; none where no note answers."""
    return item.fresh_notes if item.type == "adversarial_stale" else item.expected_notes


def budget(notes: Sequence[SuiteNote], k: int) -> int:
    """How many words k notes of a world have on average."""
    return max(1, round(k * fmean(len(note.text.split()) for note in notes)))


def shortened(text: str, words: int) -> tuple[Passage, ...]:
    """The lines of a text as passages, cut after so many words."""
    passages = []
    for line in text.splitlines():
        if (kept := line.split()[:words]) and words > 0:
            passages.append(Passage("", " ".join(kept)))
        words -= len(kept)
    return tuple(passages)


def _random(item: Asking, notes: Sequence[SuiteNote], random: Random) -> RetrievedNotes:
    right = {*expected(item), *_by_label(item, notes)}
    others = [note for note in notes if note.id not in right]
    drawn = random.sample(others, min(item.top_k, len(others)))
    return best_of([note.id for note in drawn], notes, len(drawn))


def _oracle(item: Asking, notes: Sequence[SuiteNote]) -> RetrievedNotes:
    right = {*expected(item)} or _by_label(item, notes)
    return best_of([note.id for note in notes if note.id in right], notes, len(notes))


def _by_label(item: Asking, notes: Sequence[SuiteNote]) -> set[str]:
    """Notes with a tag or a file that an item of retrieval expects."""
    tags, files = set(getattr(item, "expected_tags", ())), set(getattr(item, "expected_files", ()))
    return {note.id for note in notes if tags & set(note.tags) or files & set(note.files)}
