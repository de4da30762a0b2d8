"""A paired suite is a folder, checked line by line when it is read.

suite.yaml       the manifest
items.jsonl      one item a line (hippo_core/protocols/paired/items.py)
notes.jsonl      what the memory is taught: {"id": "n1", "world": "main", "text": "...", "tags": [...], "files": [...]}
human_notes/     WORLD.md, a summary that a person wrote, for the condition human-note
fixtures/        folders that agents work on
scripts/         what commands of items call
score/           the same, hidden from agents
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from hippo_core.errors import LabError
from hippo_core.files import COMMAND, home, new_folder, read_text, root, sha256, write_text
from hippo_core.models.spec import read_mapping, validated
from hippo_core.protocols.paired.items import ITEMS, Asking, Count, Id, Item, Shell, StrictModel, Text, World, human_note_of, leaves
from hippo_core.suites.folder.lines import mistake, raw_lines, read_line, some

MANIFEST, NOTES = "suite.yaml", "notes.jsonl"
LONGEST_NOTE = 1 << 20  # bytes of a human note
AGENTS = "data/paired/agents-smoke"  # tasks for agents, which a new suite begins with
HASHED = ("human_notes", "fixtures", "scripts", "score")  # folders whose files are part of what a run rests on


class Manifest(StrictModel):
    """`suite.yaml`. `label_status`: whether a second reader has read the items; `default_profile`, `default_repeats`: of a run that names
    none; `min_items`: fewer are too few for a verdict; `scripts`: further files, from the folder, that a run rests on."""

    schema_version: Literal[1] = 1
    name: Id
    version: Text = "1"
    description: str = ""
    label_status: Literal["draft", "reviewed"] = "draft"
    default_profile: Literal["offline", "llm"] = "offline"
    default_repeats: Annotated[int, Field(ge=1, le=100)] = 1
    min_items: Count = 1
    tags: list[Text] = Field(default_factory=list)
    items: Text = "items.jsonl"
    notes: str = NOTES
    scripts: list[Text] = Field(default_factory=list)


class SuiteNote(StrictModel):
    """What the memory of its world is taught, in the order of the file."""

    id: Id
    world: World = "main"
    text: Text
    tags: list[Text] = Field(default_factory=list)
    files: list[Text] = Field(default_factory=list)
    when: str = ""
    who: str = ""


@dataclass(frozen=True)
class PairedSuite:
    """A folder that was read and found right. `items` and `notes` in the order of their files."""

    folder: Path
    manifest: Manifest
    items: tuple[Item, ...]
    notes: tuple[SuiteNote, ...]

    @cached_property
    def by_world(self) -> dict[str, tuple[SuiteNote, ...]]:
        """The notes of each world."""
        return notes_by_world(self.notes)

    @cached_property
    def asking(self) -> tuple[Asking, ...]:
        """The items that ask a memory and run no command."""
        return tuple(item for item in self.items if isinstance(item, Asking))

    @cached_property
    def shell(self) -> tuple[Shell, ...]:
        """The items that run commands of the suite."""
        return tuple(item for item in self.items if isinstance(item, Shell))

    def human_note(self, world: str) -> str:
        """What a person wrote about a world; empty where nobody did. LabError where the world's name leads out of the suite."""
        path = within(self.folder, human_note_of(world))
        return read_text(path, LONGEST_NOTE) if os.path.isfile(path) else ""

    @cached_property
    def checksums(self) -> dict[str, str]:
        """SHA-256 of manifest, items, notes, and of each folder that a run rests on; only what is there."""
        files = {"manifest": MANIFEST, "items": self.manifest.items, "notes": self.manifest.notes}
        sums = {name: sha256(self.folder / path) for name, path in files.items() if path}
        sums |= {name: tree_sha256(inside(self.folder, name)) for name in HASHED if (self.folder / name).is_dir()}
        return sums | {path: sha256(inside(self.folder, path)) for path in self.manifest.scripts}


def read_suite(path: str | Path) -> PairedSuite:
    """The suite in a folder, from the current folder, the lab's home, or absolute; LabError with file and line for the first mistake."""
    folders = [(base / Path(path).expanduser()).resolve() for base in (Path(), home(), root())]  # a wheel brings suites of its own
    folder = next((candidate for candidate in folders if (candidate / MANIFEST).is_file()), folders[0])
    if not (folder / MANIFEST).is_file():
        expected = f"expected {MANIFEST}, items.jsonl and notes.jsonl"
        raise LabError(f"no paired suite in {folder}: {expected}; `{COMMAND} paired new FOLDER` makes one")
    manifest = validated(Manifest, read_mapping(inside(folder, MANIFEST)), str(folder / MANIFEST))
    for script in manifest.scripts:
        inside(folder, script)
    notes: tuple[SuiteNote, ...] = ()
    if manifest.notes:
        lines = numbered_lines(inside(folder, manifest.notes), field="world")
        notes = tuple(validated(SuiteNote, values, where) for where, values in lines)
    by_world = notes_by_world(notes)
    items = tuple(_item(folder, where, values, by_world) for where, values in numbered_lines(inside(folder, manifest.items)))
    suite = PairedSuite(folder, manifest, items, notes)
    _ = suite.checksums  # of the files as they were read
    return suite


def notes_by_world(notes: tuple[SuiteNote, ...]) -> dict[str, tuple[SuiteNote, ...]]:
    """The notes of each world, in their order."""
    worlds: dict[str, list[SuiteNote]] = {}
    for note in notes:
        worlds.setdefault(note.world, []).append(note)
    return {world: tuple(own) for world, own in worlds.items()}


def inside(folder: Path, path: str) -> Path:
    """A file or folder of the suite; LabError where the path leaves it, goes over a link or leads nowhere."""
    target = within(folder, path)
    if not os.path.exists(target):
        raise LabError(f"{folder}: {path!r} is not there; add it or name another")
    return target


def within(folder: Path, path: str) -> Path:
    """A path in the suite, whether something is there or not; LabError where the path leaves it or goes over a link."""
    if leaves(path):
        raise LabError(f"{folder}: expected a path within the suite, without '..', got {path!r}")
    target = folder
    for part in Path(path).parts:
        target = target / part
        if os.path.islink(target):
            raise LabError(f"{folder}: {path!r} goes over the link {target}; copy what it points at into the suite")
    return target


def tree_sha256(folder: Path) -> str:
    """One SHA-256 of all files below a folder: their paths, modes and contents; LabError for a link."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            raise LabError(f"{path} is a link; copy what it points at into the suite")
        if path.is_file():
            executable = path.stat().st_mode & 0o100 != 0
            total.update(f"{path.relative_to(folder).as_posix()}\0{executable:d}\0{sha256(path)}\n".encode())
    return total.hexdigest()


def numbered_lines(path: Path, field: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each line's location and values; ids must differ, within the same value of a `field` alone."""
    seen: dict[tuple[str, str], int] = {}
    for number, raw in enumerate(raw_lines(path), 1):
        if not raw.strip() or raw.lstrip().startswith(b"#"):
            continue
        where = f"{path}:{number}"
        values = read_line(where, raw)
        yield where, values
        key = (str(values.get("id")), str(values.get(field, "main")))
        if key in seen:
            raise mistake(where, "an id of its own", repr(key[0]), f"line {seen[key]} has it already")
        seen[key] = number
    if not seen:
        raise LabError(f"{path} holds no line; put one JSON object on each")


def _item(folder: Path, where: str, values: dict[str, Any], by_world: Mapping[str, tuple[SuiteNote, ...]]) -> Item:
    """An item of a line. Refused are ids that its world's notes do not have, a world without notes, and a fixture outside the suite."""
    kind = str(values.get("type"))
    if kind not in ITEMS:
        raise mistake(where, "a type of item", repr(kind), f"legal: {', '.join(ITEMS)}")
    item = validated(ITEMS[kind], values, where)
    notes = [note.id for note in by_world.get(item.world, ())]
    for field in ("expected_notes", "stale_notes", "fresh_notes"):
        for note_id in getattr(item, field, ()):
            if note_id not in notes:
                raise mistake(where, f"{field} with ids of notes of world {item.world!r}", repr(note_id), f"its notes are {some(notes)}")
    if isinstance(item, Asking) and item.world not in by_world:
        raise mistake(where, "a world that has notes", repr(item.world), f"add its notes, or use one of {some(by_world)}")
    if fixture := getattr(item, "fixture", ""):
        tree_sha256(inside(folder, fixture))  # refuses links
    return item


NEW_MANIFEST = """\
schema_version: 1
name: {name}
version: "1"
description: what this suite asks, in a sentence
label_status: draft # reviewed: a second reader has read every item (second_reading.jsonl)
default_profile: offline # llm: a model answers
default_repeats: 1
min_items: 8 # below 20 a verdict is worth little: raise it
tags: []
"""
NEW_NOTES = """\
{"id": "n1", "text": "The backup of the ledger runs at 02:00 on the machine Otter.", "tags": ["backup"], "files": ["ops/backup.yaml"]}
{"id": "n2", "text": "From Monday the backup of the ledger runs at 04:30, so that it misses the export.", "tags": ["backup"]}
{"id": "n3", "text": "Inga keeps the spare key of the server room."}
"""
NEW_ITEMS = """\
# a line that begins with # is left out
{"id": "r1", "type": "retrieval", "question": "Which file sets up the backup?", "top_k": 2, "expected_notes": ["n1"]}
{"id": "g1", "type": "grounded_answer", "question": "Who has the spare key?", "expected_notes": ["n3"], "required_assertions": ["Inga"]}
{"id": "s1", "type": "adversarial_stale", "question": "At what time does the backup of the ledger run now?", "expect": "prefer_fresh", \
"stale_notes": ["n1"], "fresh_notes": ["n2"], "stale_assertions": ["02:00"], "fresh_assertions": ["04:30"]}
{"id": "s2", "type": "adversarial_stale", "question": "Who pays for the export?", "expect": "refuse"}
{"id": "b1", "type": "resume_quality", "prompt": "What must I know of the backup?", "top_k": 2, "required_topics": ["04:30"]}
"""
NEW_HUMAN_NOTE = "The ledger's backup runs at 04:30 (02:00 is old). Inga has the spare key.\n"


def new_suite(location: str | Path) -> Path:
    """Make a folder with a manifest, notes, items of each type and a human note, at a path from the current folder or an absolute one.
    The items that run commands, and what these need, are those of `data/paired/agents-smoke`. LabError where there is something already."""
    if "\0" in str(location):
        raise LabError(f"the name of a folder has no NUL character, got {str(location)!r}")
    folder = Path(location).expanduser().resolve()
    if folder.exists():
        raise LabError(f"{folder} is there already; name a new folder")
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.name).strip("-._") or "suite"
    agents = root() / AGENTS
    with new_folder(folder) as made:
        for part in HASHED:
            if (agents / part).is_dir():
                shutil.copytree(agents / part, made / part, ignore=shutil.ignore_patterns("__pycache__"))
        write_text(made / MANIFEST, NEW_MANIFEST.format(name=name))
        write_text(made / NOTES, NEW_NOTES + read_text(agents / NOTES, LONGEST_NOTE))
        write_text(made / "items.jsonl", NEW_ITEMS + read_text(agents / "items.jsonl", LONGEST_NOTE))
        write_text(made / human_note_of("main"), NEW_HUMAN_NOTE)
    return folder
