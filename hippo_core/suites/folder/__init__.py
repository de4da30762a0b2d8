"""The user's own suite: a folder with `facts.jsonl` and `items.jsonl`, one JSON object a line, checked line by line.

    facts.jsonl   {"id": "f1", "world": "w1", "text": "Ada keeps the key in the blue jar."}
    items.jsonl   {"id": "q1", "world": "w1", "question": "Where is the key?", "answers": ["the blue jar"], "gold_facts": ["f1"]}

Further fields are those of a fact and an item (`slots`, `time`, `kind`, `rung`, `window`, ...), each with a default: `time` is the line's
order within its world, `window` and `taught` are all facts of the world. The folder's own files are the `test` split; a subfolder
`val/` with files of the same form is the `val` split, a subfolder `train/` the `train` split.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal
from zlib import crc32

from pydantic import Field

from hippo_core.errors import LabError
from hippo_core.files import home
from hippo_core.suites.folder.lines import FACT_FIELDS, ITEM_FIELDS, mistake, raw_lines, read_lines, some
from hippo_core.suites.lookup import Ids, cached_by_identity, positions
from hippo_core.suites.splits import SPLITS
from hippo_core.suites.types import Fact, Item, Settings, Split, Suite, World, WorldSpec
from hippo_core.text import OWN_ANSWER_TOKENS

PREFIX = "folder:"
FILES = ("facts.jsonl", "items.jsonl")


class FolderSettings(Settings):
    """`answer_tokens`: of an answer, at most; `n_competitors`: for the validator. The folder says the rest."""

    answer_tokens: Annotated[int, Field(ge=1)] = OWN_ANSWER_TOKENS
    n_facts: Literal[0] = 0
    n_items: Literal[0] = 0
    n_competitors: int = 0


def folder_suite(name: str) -> Suite:
    """The suite in the folder that `folder:PATH` names, PATH from the lab's home or absolute. It is checked when it is read."""
    folder = own_folder(name)

    def stream(settings: FolderSettings, split: Split, seed: int, n: int | None) -> Iterator[World]:
        yield from read_folder(folder, split)

    slug = re.sub(r"\W+", "-", folder.name.lower()).strip("-") or "own"
    name = f"folder-{slug}-{crc32(str(folder).encode()):08x}"
    own: dict[str, Any] = {"answer_budget": OWN_ANSWER_TOKENS, "folder": folder, "module": __name__}
    return Suite(name, f"your own: {folder}", FolderSettings, stream=stream, **own)


def is_own(suite_name: str) -> bool:
    """Whether a suite is a folder of the user's own."""
    return suite_name.startswith(PREFIX)


def own_folder(suite_name: str) -> Path:
    """The folder that `folder:PATH` names, PATH from the lab's home or absolute; LabError where there is none."""
    folder = (home() / Path(suite_name.removeprefix(PREFIX)).expanduser()).resolve()
    if not folder.is_dir():
        raise LabError(f"no such folder: {folder}; expected folder:PATH, where PATH holds facts.jsonl and items.jsonl")
    return folder


def part_of(folder: Path, split: Split) -> Path:
    """Where the two files of a split lie."""
    return folder if split == "test" else folder / split


def has_split(folder: Path, split: Split) -> bool:
    """Whether the folder holds this split."""
    return split == "test" or part_of(folder, split).is_dir()


def files_of(folder: Path) -> list[Path]:
    """The files of all splits that are there."""
    return sorted(path for split in SPLITS for name in FILES if (path := part_of(folder, split) / name).is_file())


def read_folder(folder: Path, split: Split = "test") -> list[World]:
    """The worlds of a split, in the order in which the items first name them."""
    if not has_split(folder, split):
        raise LabError(f"{folder} has no {split} split; put facts.jsonl and items.jsonl into {folder / split}")
    part = part_of(folder, split)
    by_world: dict[str, dict[str, Fact]] = {}
    for fact in read_facts(part / "facts.jsonl"):
        by_world.setdefault(fact.world, {})[fact.id] = fact
    items: dict[str, list[Item]] = {}
    for item in read_items(part / "items.jsonl", by_world):
        items.setdefault(item.world, []).append(item)
    return [World(world, tuple(by_world[world].values()), tuple(world_items)) for world, world_items in items.items()]


def read_facts(path: Path) -> list[Fact]:
    """The facts of a file; those of a world in order of `time`."""
    facts, lines = [], dict[str, int]()
    for _, values in read_lines(path, FACT_FIELDS):
        world = values["world"]
        lines[world] = lines.get(world, -1) + 1
        facts.append(Fact(**{"slots": {}, "time": lines[world], **values}))
    return sorted(facts, key=lambda fact: fact.time)


def read_items(path: Path, by_world: Mapping[str, Mapping[str, Fact]]) -> Iterator[Item]:
    """The items of a file, checked. `window` and `taught` are in order of telling; where left out, all items share one list."""
    everything = {world: tuple(facts) for world, facts in by_world.items()}
    positions_of = cached_by_identity(positions)
    for where, values in read_lines(path, ITEM_FIELDS):
        world = values["world"]
        if world not in by_world:
            raise mistake(where, "a world that facts.jsonl has", repr(world), f"add its facts, or use one of {some(by_world)}")
        for field in ("gold_facts", "window", "taught", "retold"):
            for fact in values.get(field, ()):
                if fact not in by_world[world]:
                    expected = f"{field} with ids of facts of world {world!r}"
                    raise mistake(where, expected, repr(fact), f"its facts are {some(by_world[world])}")
        order = positions_of(everything[world])
        lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        lists |= {name: tuple(sorted(lists[name], key=order.__getitem__)) for name in ("window", "taught") if name in lists}
        taught = lists.get("taught", everything[world])
        item = Item(**{"kind": "own", "taught": taught, "window": taught, **values, **lists})
        check_taught(where, item, positions_of(taught))
        window = positions_of(item.window)
        gold = [window[fact] for fact in item.gold_facts if fact in window]
        yield item if "distance" in values or not gold else replace(item, distance=len(window) - 1 - max(gold))


def check_taught(where: str, item: Item, taught: Mapping[str, int]) -> None:
    """Refuse facts in the gold facts or the window that were never taught."""
    for field in ("gold_facts", "window"):
        named: Ids = getattr(item, field)
        strange = None if named is item.taught else next((fact for fact in named if fact not in taught), None)
        if strange is not None:
            raise mistake(where, f"{field} among the taught facts", repr(strange), "add it to taught, or leave taught out")


def require_folder(suite_name: str, split: Split, n: int, calibrates: bool = False, shuffles: bool = False) -> None:
    """LabError for the first mistake in the folder, and where it lacks what a run of n questions of a split needs. `calibrates`: it has a
    gate that is calibrated on validation worlds; `shuffles`: a world is shown what another one says."""
    folder = own_folder(suite_name)
    if calibrates and not has_split(folder, "val"):
        remedy = f"put facts.jsonl and items.jsonl into {folder / 'val'}, or say overrides='[episodic.use_gate=false]'"
        raise LabError(f"the gate is calibrated on validation worlds, and {folder} has none; {remedy}")
    seen = tuple((path, path.stat().st_mtime_ns, path.stat().st_size) for path in files_of(folder))
    counts = _questions(folder, split, seen)
    for other in ("val", "test"):
        if has_split(folder, other):
            _questions(folder, other, seen)
    if shuffles and (len(counts) == 1 or counts[0] >= n):
        remedy = "take a larger n" if len(counts) > 1 else "split the facts into worlds, or leave this preset out"
        raise LabError(f"this preset shows what another world says, and the first {n} questions of {folder} are about one world; {remedy}")


@lru_cache(maxsize=32)
def _questions(folder: Path, split: Split, seen: tuple[tuple[Path, int, int], ...]) -> tuple[int, ...]:
    """How many questions each world has. A split is read once for all cells of a grid, as long as its files are as they were `seen`."""
    return tuple(len(world.items) for world in read_folder(folder, split))


def count_questions(suite_name: str, split: Split) -> int:
    """How many questions a split has, counted by lines."""
    return sum(bool(line.strip()) for line in raw_lines(part_of(own_folder(suite_name), split) / "items.jsonl"))


def cut_short(suite_name: str, split: Split, n: int) -> str:
    """A sentence that says how many questions are left out; empty where none are."""
    there = count_questions(suite_name, split)
    return f"{n:,} of the {there:,} questions of {suite_name} are asked (n={n}); n=all asks all of them" if n < there else ""


def words_in(text: str) -> int:
    """How many words a text has; it has as many tokens, or more."""
    return len(text.split())


def long_answers(worlds: Sequence[World], budget: int, length: Callable[[str], int] = words_in) -> list[str]:
    """The accepted answers over the budget, each with its item. `length` counts tokens, or words where no model is loaded."""
    asked = ((item, answer) for world in worlds for item in world.items for answer in item.answers)
    return [f"{item.id} ({answer!r})" for item, answer in asked if length(answer) > budget]
