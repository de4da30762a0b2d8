"""Does a second reader expect what the items of a suite expect?

second_reading.jsonl, beside the manifest, is what somebody wrote down from the notes and the questions with the labels hidden: a line an
item, {"id": "s1", "notes": ["n2"], "stale_notes": ["n1"], "answer": "04:30"}; "unknown" and no note where none answers, no answer where
notes alone are asked for. No run rests on it.
"""

from dataclasses import dataclass

from pydantic import Field

from hippo_core.errors import unknown
from hippo_core.models.spec import validated
from hippo_core.protocols.paired.answering import ItemAnswer
from hippo_core.protocols.paired.conditions import expected
from hippo_core.protocols.paired.items import Id, StrictModel, Text
from hippo_core.protocols.paired.retrieval import RetrievedNotes
from hippo_core.protocols.paired.scoring import score
from hippo_core.protocols.paired.suite import PairedSuite, numbered_lines, within
from hippo_core.results.statistics.interval import Interval
from hippo_core.results.statistics.kappa import kappa_interval

FILE = "second_reading.jsonl"


class SecondReading(StrictModel):
    """What a reader thinks right."""

    id: Id
    notes: list[Text] = Field(default_factory=list)
    stale_notes: list[Text] = Field(default_factory=list)
    answer: str = ""


@dataclass(frozen=True)
class LabelAgreement:
    """How far two readers agree.

    Args:
        items: how many were read twice.
        notes: Cohen's kappa of "an answer rests on this note", over each item and each note of its world; its interval goes by world.
        other_notes: items of which the readers name other notes, or other ones that were replaced.
        other_answers: items at which the second reader's notes and answer would count as wrong.
    """

    items: int
    notes: Interval
    other_notes: tuple[str, ...]
    other_answers: tuple[str, ...]


def agreement(suite: PairedSuite) -> LabelAgreement | None:
    """The agreement of a suite's labels with its second reading; None where it has none. LabError, with its line, for a reading of what is
    not there."""
    if not (path := within(suite.folder, FILE)).is_file():
        return None
    items = {item.id: item for item in suite.asking}
    pairs: list[tuple[bool, bool, str]] = []  # theirs, ours, world
    read, other_notes, other_answers = [], [], []
    for where, values in numbered_lines(path):
        reading = validated(SecondReading, values, where)
        if reading.id not in items:
            raise unknown(f"item in {where}", reading.id, items)
        item, notes = items[reading.id], suite.by_world[items[reading.id].world]
        texts = {note.id: note.text for note in notes}
        for note_id in (*reading.notes, *reading.stale_notes):
            if note_id not in texts:
                raise unknown(f"note in {where}", note_id, texts)
        pairs += [(note_id in reading.notes, note_id in expected(item), item.world) for note_id in texts]
        read.append(item.id)
        if set(reading.notes) != set(expected(item)) or set(reading.stale_notes) != set(getattr(item, "stale_notes", ())):
            other_notes.append(item.id)
        if not score(item, RetrievedNotes(ranking=tuple(reading.notes)), ItemAnswer(reading.answer), notes).success:
            other_answers.append(item.id)
    by_reading, by_suite, worlds = zip(*pairs, strict=True)
    return LabelAgreement(len(read), kappa_interval(by_reading, by_suite, worlds), tuple(other_notes), tuple(other_answers))
