"""The user's own suite: a folder with `facts.jsonl` and `items.jsonl`, one JSON object a line, checked line by line.

    facts.jsonl   {"id": "f1", "world": "w1", "text": "Ada keeps the key in the blue jar."}
    items.jsonl   {"id": "q1", "world": "w1", "question": "Where is the key?", "answers": ["the blue jar"], "gold_facts": ["f1"]}

Further fields are those of a fact and an item (`slots`, `time`, `kind`, `rung`, `window`, ...), each with a default: `time` is the line's
order within its world, `window` and `taught` are all facts of the world. The folder's own files are the `test` split; a subfolder
`val/` with files of the same form is the `val` split, a subfolder `train/` the `train` split.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Literal
from zlib import crc32

from hippo_core.files import LabError, root
from hippo_core.suites.folder.lines import FACT_FIELDS, ITEM_FIELDS, mistake, read_lines, some
from hippo_core.suites.given import GivenSuite
from hippo_core.suites.types import Fact, Item, Place, Settings, Split, World

PREFIX = "folder:"


class FolderSettings(Settings):
    """The folder says all; nothing can be set but what the validator expects."""

    n_facts: Literal[0] = 0
    n_items: Literal[0] = 0
    n_competitors: int = 0


def folder_suite(name: str) -> GivenSuite:
    """The suite in the folder that `folder:PATH` names, PATH from the repository's root or absolute. It is checked when it is read."""
    folder = (root() / Path(name.removeprefix(PREFIX)).expanduser()).resolve()
    if not folder.is_dir():
        raise LabError(f"no such folder: {folder}; expected folder:PATH, where PATH holds facts.jsonl and items.jsonl")

    def given(settings: FolderSettings, split: Split, seed: int, n: int | None) -> Iterator[World]:
        yield from read_folder(folder, split)

    def make_world(random: Random, settings: FolderSettings, place: Place) -> World:
        worlds = read_folder(folder, place.split)
        return worlds[place.index % len(worlds)]

    slug = re.sub(r"\W+", "-", folder.name.lower()).strip("-") or "own"
    return GivenSuite(f"folder-{slug}-{crc32(str(folder).encode()):08x}", f"your own: {folder}", FolderSettings, make_world, given=given)


def has_split(folder: Path, split: Split) -> bool:
    """Whether the folder holds this split."""
    return split == "test" or (folder / split).is_dir()


def read_folder(folder: Path, split: Split = "test") -> list[World]:
    """The worlds of a split, in the order in which the items first name them. Every mistake is a LabError with file and line."""
    if not has_split(folder, split):
        raise LabError(f"{folder} has no {split} split; put facts.jsonl and items.jsonl into {folder / split}")
    part = folder if split == "test" else folder / split
    facts = read_facts(part / "facts.jsonl")
    by_world: dict[str, dict[str, Fact]] = {}
    for fact in facts:
        by_world.setdefault(fact.world, {})[fact.id] = fact
    items: dict[str, list[Item]] = {}
    for item in read_items(part / "items.jsonl", by_world):
        items.setdefault(item.world, []).append(item)
    return [World(world, tuple(by_world[world].values()), tuple(asked)) for world, asked in items.items()]


def read_facts(path: Path) -> list[Fact]:
    """The facts of a file; those of a world in order of `time`."""
    facts, told = [], {}
    for _, values in read_lines(path, FACT_FIELDS):
        world = values["world"]
        told[world] = told.get(world, -1) + 1
        facts.append(Fact(**{"slots": {}, "time": told[world], **values}))
    return sorted(facts, key=lambda fact: fact.time)


def read_items(path: Path, by_world: Mapping[str, Mapping[str, Fact]]) -> Iterator[Item]:
    """The items of a file, with window and taught filled in, every id that they name checked."""
    for where, values in read_lines(path, ITEM_FIELDS):
        world = values["world"]
        if world not in by_world:
            raise mistake(where, "a world that facts.jsonl has", repr(world), f"add its facts, or use one of {some(by_world)}")
        told = tuple(by_world[world])
        lists = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
        taught = lists.get("taught", told)
        item = Item(**{"kind": "own", "taught": taught, "window": taught, **values, **lists})
        check_ids(where, item, told)
        yield item if "distance" in values else replace(item, distance=distance(item))


def distance(item: Item) -> int:
    """How many facts stand in the window after the last gold one; 0 where no gold fact stands there."""
    gold = [item.window.index(fact) for fact in item.gold_facts if fact in item.window]
    return len(item.window) - 1 - max(gold) if gold else 0


def check_ids(where: str, item: Item, told: tuple[str, ...]) -> None:
    """Refuse ids that the item's world does not have, and facts that the question needs but nobody taught."""
    for field in ("gold_facts", "window", "taught"):
        for fact in getattr(item, field):
            if fact not in told:
                raise mistake(where, f"{field} with ids of facts of world {item.world!r}", repr(fact), f"its facts are {some(told)}")
    for field in ("gold_facts", "window"):
        for fact in getattr(item, field):
            if fact not in item.taught:
                raise mistake(where, f"{field} among the taught facts", repr(fact), "add it to taught, or leave taught out")
