"""notes: everyday statements written by hand, message by message, in worlds of some seventeen, and questions about them.

    taught   Moved the parish council to the Methodist hall because the library boiler is out. Derek is bringing the urn.
    asked    Who will carry along the tea machine?     gold: Derek

A world is one person's, household's or team's notes (data/notes/*.yaml), in order of telling. Each is asked about on two rungs. Some
correct an earlier one, some are much like another; a question that no note answers has the answer "unknown" and no gold note. Five worlds
are for validation, the others for the test alone; nothing is trained on any.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from random import Random
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hippo_core.files import root
from hippo_core.models.spec import read_mapping, validated
from hippo_core.suites.natural.passages import asked_worlds
from hippo_core.suites.types import Fact, Item, ReadSettings, Split, Suite, World

FOLDER = "data/notes"
VALIDATION = ("b2-flatshare", "b3-engineering-standup", "c5-grandmothers-book", "c7-bird-count", "d2-payroll-errors")
UNKNOWN = "unknown"
Rung = Literal["exact", "partial", "paraphrase", "noisy"]
Text = Annotated[str, Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NoteQuestion(_Part):
    """A question about a note; the first answer stands in it word for word."""

    rung: Rung
    question: Text
    answers: Annotated[list[Text], Field(min_length=1)]


class NoteFact(_Part):
    """A note with its two questions. `corrects`: the earlier note that it replaces a part of; `like`: one that it resembles."""

    id: Text
    text: Text
    corrects: str = ""
    like: str = ""
    asked: Annotated[list[NoteQuestion], Field(min_length=2, max_length=2)]


class Unanswerable(_Part):
    """A question that no note answers; `like`: the note that comes nearest."""

    rung: Rung
    question: Text
    like: str = ""


class Notes(_Part):
    """A world's file."""

    kind: Text
    notes: Annotated[list[NoteFact], Field(min_length=4)]
    unanswerable: list[Unanswerable] = []


class NotesSettings(ReadSettings):
    """`together`: all notes of a split are one world; `answerable`: questions that no note answers are left out."""

    together: bool = False
    answerable: bool = False


def names() -> list[str]:
    """The worlds by name."""
    return sorted(path.stem for path in (root() / FOLDER).glob("*.yaml"))


@cache
def read(name: str) -> Notes:
    """A world's file; LabError where it is not of its form."""
    where = f"{FOLDER}/{name}.yaml"
    return validated(Notes, read_mapping(root() / where), where)


def world_of(name: str, settings: NotesSettings) -> World:
    """The world of a file, all of its questions asked at the end of it."""
    content = read(name)
    ids = {note.id: f"{name}.{note.id}" for note in content.notes}
    facts = [
        Fact(ids[note.id], name, note.text, {}, time, context_key=content.kind, provenance="told")
        for time, note in enumerate(content.notes)
    ]
    taught = tuple(ids.values())
    of_all: dict[str, Any] = {"world": name, "kind": content.kind, "window": taught, "taught": taught}
    items = []
    for time, note in enumerate(content.notes):
        slices = tuple(what for what, other in (("correction", note.corrects), ("near_duplicate", note.like)) if other)
        about = {**of_all, "gold_facts": (ids[note.id],), "distance": len(facts) - 1 - time, "slices": slices}
        for number, asked in enumerate(note.asked):
            items.append(Item(f"{ids[note.id]}.{number}", question=asked.question, answers=tuple(asked.answers), rung=asked.rung, **about))
    about = {**of_all, "answers": (UNKNOWN,), "gold_facts": (), "slices": ("unanswerable",)}
    for number, question in enumerate([] if settings.answerable else content.unanswerable):
        items.append(Item(f"{name}.unanswerable.{number}", question=question.question, rung=question.rung, **about))
    return World(name, tuple(facts), tuple(items))


def merged(worlds: list[World], name: str) -> World:
    """Worlds as one, one after the other."""
    facts = [replace(fact, world=name, time=time) for time, fact in enumerate(fact for world in worlds for fact in world.facts)]
    taught = tuple(fact.id for fact in facts)
    items = [replace(item, world=name, window=taught, taught=taught) for world in worlds for item in world.items]
    time_of = {fact.id: fact.time for fact in facts}
    far = [replace(item, distance=len(facts) - 1 - time_of[item.gold_facts[0]]) if item.gold_facts else item for item in items]
    return World(name, tuple(facts), tuple(far))


def stream(settings: NotesSettings, split: Split, seed: int, n: int | None) -> Iterator[World]:
    """The worlds of a split in the seed's order, the questions spread over them; none for training."""
    if split == "train":
        return
    chosen = [name for name in names() if (name in VALIDATION) == (split == "val")]
    worlds = [world_of(name, settings) for name in Random(f"notes/order/{seed}/{split}").sample(chosen, len(chosen))]
    if settings.together:
        worlds = [merged(worlds, f"notes-{split}")]
    yield from asked_worlds(worlds, n, "notes", seed, split)


NOTES = Suite(
    "notes",
    "everyday notes written by hand, and questions about them",
    NotesSettings,
    answer_budget=16,
    stream=stream,
    reads=lambda settings: [root() / FOLDER / f"{name}.yaml" for name in names()],
    split_rule=f"val: {', '.join(sorted(VALIDATION))}; test: the other files of {FOLDER}; train: none",
)
