"""What is wrong with a suite, or thin, before anything is run."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hippo_core.protocols.paired import assertions
from hippo_core.protocols.paired.conditions import expected
from hippo_core.protocols.paired.items import AdversarialStale, Asking, GroundedAnswer, Retrieval
from hippo_core.protocols.paired.second_reading import agreement
from hippo_core.protocols.paired.suite import PairedSuite
from hippo_core.results.formatting import listing, share, span
from hippo_core.results.statistics.interval import LEAST_WORLDS


@dataclass(frozen=True)
class LintFinding:
    """`fail`: an item that cannot be right, or never wrong; `warn`: a claim would be thin."""

    level: Literal["fail", "warn"]
    what: str

    def __str__(self) -> str:
        return f"{self.level}  {self.what}"


def examined(suite: PairedSuite) -> list[LintFinding]:
    """All findings, failures first."""
    return sorted([*_of_suite(suite), *_of_items(suite)], key=lambda finding: finding.level)


def _of_suite(suite: PairedSuite) -> Iterator[LintFinding]:
    manifest, worlds = suite.manifest, {item.world for item in suite.items}
    if len(suite.items) < manifest.min_items:
        yield LintFinding("fail", f"{len(suite.items)} items, the manifest asks for {manifest.min_items} at least")
    if manifest.label_status != "reviewed":
        yield LintFinding("warn", "labels are a draft: nobody has read the items a second time")
    yield from _of_second_reading(suite)
    if len(worlds) < LEAST_WORLDS:
        yield LintFinding("warn", f"{len(worlds)} worlds: below {LEAST_WORLDS} no difference has an interval")
    if without := sorted(world for world in worlds if not suite.human_note(world).strip()):
        yield LintFinding("warn", f"no human note, so no condition human-note: {', '.join(without)}")
    if suite.runs_commands:
        yield LintFinding("warn", "items run commands of the suite; read its scripts and fixtures before you allow them")
    asked = Counter((item.world, getattr(item, "question", getattr(item, "prompt", "")).lower()) for item in suite.items)
    for (world, question), count in asked.items():
        if question and count > 1:
            yield LintFinding("warn", f"{world}: asked {count} times: {question[:80]!r}")


def _of_second_reading(suite: PairedSuite) -> Iterator[LintFinding]:
    if not (read := agreement(suite)):
        return
    if read.items < len(suite.asking):
        yield LintFinding("warn", f"{len(suite.asking) - read.items} items have no second reading")
    kappa = f"{share(read.notes.mean)} ({span(read.notes.low, read.notes.high)})"
    for what, others in (("rest on other notes", read.other_notes), ("have an answer that counts as wrong", read.other_answers)):
        if others:
            yield LintFinding(
                "warn", f"second reading of {read.items} items, kappa of notes {kappa}: {len(others)} {what}: {listing(others)}"
            )


def _of_items(suite: PairedSuite) -> Iterator[LintFinding]:
    for item in suite.asking:
        texts = {note.id: note.text for note in suite.by_world.get(item.world, ())}
        notes_text = "\n".join(texts[note_id] for note_id in expected(item))
        for what in _of_item(item, notes_text):
            yield LintFinding("fail", f"item {item.id}: {what}")


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
    elif required:
        yield "it expects assertions and no note; name the notes that say them"
