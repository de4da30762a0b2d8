"""A paired suite is a folder, checked line by line when it is read.

suite.yaml       the manifest
items.jsonl      one item a line (hippo_core/protocols/paired/items.py)
notes.jsonl      what the memory is taught: {"id": "n1", "world": "main", "text": "...", "tags": [...], "files": [...]}
human_notes/     WORLD.md, a summary that a person wrote, for the condition human-note
fixtures/        folders that agents work on
scripts/         what commands of items call
score/           the same, hidden from agents
"""

import errno
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from hippo_core.errors import LabError
from hippo_core.files import COMMAND, home, root, sha256
from hippo_core.models.spec import read_mapping, validated
from hippo_core.protocols.paired.items import (
    ITEM,
    SHELL,
    AgentItem,
    Asking,
    CommandTask,
    Count,
    Id,
    Item,
    StrictModel,
    Text,
    World,
    human_note_of,
    leaves,
)
from hippo_core.suites.folder.lines import mistake, raw_lines, read_line, some

MANIFEST, NOTES = "suite.yaml", "notes.jsonl"
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
        worlds: dict[str, list[SuiteNote]] = {}
        for note in self.notes:
            worlds.setdefault(note.world, []).append(note)
        return {world: tuple(notes) for world, notes in worlds.items()}

    @cached_property
    def asking(self) -> tuple[Asking, ...]:
        """The items that ask a memory and run no command."""
        return tuple(item for item in self.items if not isinstance(item, CommandTask | AgentItem))

    @property
    def runs_commands(self) -> bool:
        """Whether an item runs commands of the suite."""
        return any(item.type in SHELL for item in self.items)

    def human_note(self, world: str) -> str:
        """What a person wrote about a world; empty where nobody did. LabError where the world's name leads out of the suite."""
        path = within(self.folder, human_note_of(world))
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise LabError(f"{path} is no UTF-8 text; save it as UTF-8") from None
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
                return ""
            raise LabError(f"{path} cannot be read: {error.strerror}") from None

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
        raise LabError(
            f"no paired suite in {folder}: expected {MANIFEST}, items.jsonl and notes.jsonl; `{COMMAND} paired new FOLDER` makes one"
        )
    manifest = validated(Manifest, read_mapping(inside(folder, MANIFEST)), str(folder / MANIFEST))
    for script in manifest.scripts:
        inside(folder, script)
    notes = tuple(_notes(inside(folder, manifest.notes))) if manifest.notes else ()
    known: dict[str, dict[str, SuiteNote]] = {}
    for note in notes:
        known.setdefault(note.world, {})[note.id] = note
    items = tuple(_items(folder, inside(folder, manifest.items), known))
    suite = PairedSuite(folder, manifest, items, notes)
    _ = suite.checksums  # of the files as they were read
    return suite


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


def _notes(path: Path) -> Iterator[SuiteNote]:
    for where, values in numbered_lines(path, field="world"):
        yield validated(SuiteNote, values, where)


def _items(folder: Path, path: Path, known: dict[str, dict[str, SuiteNote]]) -> Iterator[Item]:
    for where, values in numbered_lines(path):
        try:
            item = ITEM.validate_python(values)
        except ValidationError as error:
            raise LabError(f"{where}: {'; '.join(map(_fault, error.errors()))}") from None
        _check(folder, where, item, known)
        yield item


def _fault(fault: Any) -> str:
    name = ".".join(map(str, fault["loc"][1:])) or "type"
    return f"{name}: {fault['msg']}" + ("" if fault["type"] == "missing" else f", got {fault['input']!r:.80}")


def _check(folder: Path, where: str, item: Item, known: dict[str, dict[str, SuiteNote]]) -> None:
    """Refuse ids that its world's notes do not have, a world without notes, and a fixture outside the suite."""
    notes = known.get(item.world, {})
    for field in ("expected_notes", "stale_notes", "fresh_notes"):
        for note_id in getattr(item, field, ()):
            if note_id not in notes:
                raise mistake(where, f"{field} with ids of notes of world {item.world!r}", repr(note_id), f"its notes are {some(notes)}")
    if item.type not in SHELL and item.world not in known:
        raise mistake(where, "a world that has notes", repr(item.world), f"add its notes, or use one of {some(known)}")
    if fixture := getattr(item, "fixture", ""):
        tree_sha256(inside(folder, fixture))  # refuses links
