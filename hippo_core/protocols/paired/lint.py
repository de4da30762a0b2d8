"""What is wrong with a suite, or thin, before anything is run; and whether a second reader expects what its items expect.

second_reading.jsonl, beside the manifest, is what somebody wrote down from the notes and the questions with the labels hidden: a line an
item, {"id": "s1", "notes": ["n2"], "stale_notes": ["n1"], "answer": "04:30"}; "unknown" and no note where none answers, no answer where
notes alone are asked for. No run rests on it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from hippo_core.errors import unknown
from hippo_core.models.spec import validated
from hippo_core.protocols.paired import assertions
from hippo_core.protocols.paired.answering import ItemAnswer
from hippo_core.protocols.paired.conditions import RetrievedNotes, expected
from hippo_core.protocols.paired.items import AdversarialStale, Asking, GroundedAnswer, Id, Retrieval, StrictModel, Text
from hippo_core.protocols.paired.scoring import score
from hippo_core.protocols.paired.suite import PairedSuite, numbered_lines, within
from hippo_core.results.formatting import listing, share, span
from hippo_core.results.statistics.interval import LEAST_WORLDS, Interval
from hippo_core.results.statistics.kappa import kappa_interval

FILE = "second_reading.jsonl"


@dataclass(frozen=True)
class LintFinding:
    """`fail`: an item that cannot be right, or never wrong; `warn`: a claim would be thin."""

    level: Literal["fail", "warn"]
    what: str

    def __str__(self) -> str:
        return f"{self.level}  {self.what}"


def examined(suite: PairedSuite) -> list[LintFinding]:
    """All findings, failures first."""
    failures = []
    for item in suite.asking:
        texts = {note.id: note.text for note in suite.by_world.get(item.world, ())}
        notes_text = "\n".join(texts[note_id] for note_id in expected(item))
        failures += [LintFinding("fail", f"item {item.id}: {what}") for what in _of_item(item, notes_text)]
    return sorted([*_of_suite(suite), *failures], key=lambda finding: finding.level)


def _of_suite(suite: PairedSuite) -> Iterator[LintFinding]:
    manifest, worlds = suite.manifest, {item.world for item in suite.items}
    if len(suite.items) < manifest.min_items:
        yield LintFinding("fail", f"{len(suite.items)} items, the manifest asks for {manifest.min_items} at least")
    if manifest.label_status != "reviewed":
        yield LintFinding("warn", "labels are a draft: nobody has read the items a second time")
    if read := agreement(suite):
        if read.items < len(suite.asking):
            yield LintFinding("warn", f"{len(suite.asking) - read.items} items have no second reading")
        about = f"second reading of {read.items} items, kappa of notes {share(read.notes.mean)} ({span(read.notes.low, read.notes.high)})"
        for what, others in (("rest on other notes", read.other_notes), ("have an answer that counts as wrong", read.other_answers)):
            if others:
                yield LintFinding("warn", f"{about}: {len(others)} {what}: {listing(others)}")
    if len(worlds) < LEAST_WORLDS:
        yield LintFinding("warn", f"{len(worlds)} worlds: below {LEAST_WORLDS} no difference has an interval")
    if without := sorted(world for world in worlds if not suite.human_note(world).strip()):
        yield LintFinding("warn", f"no human note, so no condition human-note: {', '.join(without)}")
    if suite.shell:
        yield LintFinding("warn", "items run commands of the suite; read its scripts and fixtures before you allow them")
    required = ("required_assertions", "fresh_assertions")
    if blind := [item for item in suite.asking if not expected(item) and any(getattr(item, name, ()) for name in required)]:
        yield LintFinding(
            "warn", f"{len(blind)} items expect assertions and no note: no recall is scored, and oracle-memory brings nothing"
        )
    asked = Counter((item.world, getattr(item, "question", getattr(item, "prompt", "")).lower()) for item in suite.items)
    for (world, question), count in asked.items():
        if question and count > 1:
            yield LintFinding("warn", f"{world}: asked {count} times: {question[:80]!r}")


def _of_item(item: Asking, notes_text: str) -> Iterator[str]:
    """What no memory could get right. Assertions must stand in the expected notes, so that an oracle can find them there."""
    if isinstance(item, Retrieval) and not (item.expected_notes or item.expected_tags or item.expected_files):
        yield "it expects no note, tag or file, so that nothing can be scored"
    if isinstance(item, GroundedAnswer):
        required, forbidden = item.required_assertions, item.forbidden_assertions
    elif isinstance(item, AdversarialStale):
        required, forbidden = item.fresh_assertions, item.stale_assertions
    else:
        return
    if notes_text:
        for assertion in required:
            if not assertions.says(notes_text, assertion):
                yield f"the expected notes do not say {assertion!r}"
        for assertion in forbidden:
            if assertions.says(notes_text, assertion) and item.type == "adversarial_stale":
                yield f"the fresh notes say {assertion!r} too, which is forbidden"


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
