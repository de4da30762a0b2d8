"""The user's own suite: a folder with `facts.jsonl` and `items.jsonl`, one JSON object a line, checked line by line.

    facts.jsonl   {"id": "f1", "world": "w1", "text": "Ada keeps the key in the blue jar."}
    items.jsonl   {"id": "q1", "world": "w1", "question": "Where is the key?", "answers": ["the blue jar"], "gold_facts": ["f1"]}

Further fields are those of a fact and an item (`slots`, `time`, `kind`, `rung`, `window`, ...), each with a default: `time` is the line's
order within its world, `window` and `taught` are all facts of the world. The folder's own files are the `test` split; a subfolder
`val/` with files of the same form is the `val` split, a subfolder `train/` the `train` split.
"""

import re
from collections.abc import Iterator
from random import Random
from typing import Literal
from zlib import crc32

from hippo_core.suites.folder.place import PREFIX, files_of, has_split, is_own, own_folder, part_of
from hippo_core.suites.folder.preflight import count_questions, cut_short, require_folder
from hippo_core.suites.folder.worlds import read_folder
from hippo_core.suites.types import Settings, Split, Suite, World, WorldSpec

__all__ = [
    "PREFIX",
    "count_questions",
    "cut_short",
    "files_of",
    "folder_suite",
    "has_split",
    "is_own",
    "own_folder",
    "part_of",
    "read_folder",
    "require_folder",
]


class FolderSettings(Settings):
    """The folder says all; nothing can be set but what the validator expects."""

    n_facts: Literal[0] = 0
    n_items: Literal[0] = 0
    n_competitors: int = 0


def folder_suite(name: str) -> Suite:
    """The suite in the folder that `folder:PATH` names, PATH from the repository's root or absolute. It is checked when it is read."""
    folder = own_folder(name)

    def stream(settings: FolderSettings, split: Split, seed: int, n: int | None) -> Iterator[World]:
        yield from read_folder(folder, split)

    def make_world(random: Random, settings: FolderSettings, spec: WorldSpec) -> World:
        worlds = read_folder(folder, spec.split)
        return worlds[spec.index % len(worlds)]

    slug = re.sub(r"\W+", "-", folder.name.lower()).strip("-") or "own"
    return Suite(f"folder-{slug}-{crc32(str(folder).encode()):08x}", f"your own: {folder}", FolderSettings, make_world, stream=stream)
