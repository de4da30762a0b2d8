"""The worlds in a folder of the user's own; every mistake in it is a LabError that names file and line."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from hippo_core.files import LabError
from hippo_core.suites.folder.lines import FACT_FIELDS, ITEM_FIELDS, mistake, read_lines, some
from hippo_core.suites.folder.place import has_split, part_of
from hippo_core.suites.lookup import Ids, cached_by_identity, positions
from hippo_core.suites.types import Fact, Item, Split, World


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
    """The items of a file, with window and taught filled in, every id that they name checked.

    Both are in order of telling, however a line lists them. Where a line does not, all items of a world share one list.
    """
    everything = {world: tuple(facts) for world, facts in by_world.items()}
    positions_of = cached_by_identity(positions)
    for where, values in read_lines(path, ITEM_FIELDS):
        world = values["world"]
        if world not in by_world:
            raise mistake(where, "a world that facts.jsonl has", repr(world), f"add its facts, or use one of {some(by_world)}")
        check_known(where, values, by_world[world])
        order = positions_of(everything[world])
        lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        lists |= {name: tuple(sorted(lists[name], key=order.__getitem__)) for name in ("window", "taught") if name in lists}
        taught = lists.get("taught", everything[world])
        item = Item(**{"kind": "own", "taught": taught, "window": taught, **values, **lists})
        check_taught(where, item, positions_of(taught))
        yield item if "distance" in values else replace(item, distance=distance(item, positions_of(item.window)))


def distance(item: Item, window: Mapping[str, int]) -> int:
    """How many facts stand in the window, a place for each, after the last gold one; 0 where no gold fact stands there."""
    gold = [window[fact] for fact in item.gold_facts if fact in window]
    return len(window) - 1 - max(gold) if gold else 0


def check_known(where: str, values: Mapping[str, list[str]], facts: Mapping[str, Fact]) -> None:
    """Refuse ids that the item's world does not have."""
    for field in ("gold_facts", "window", "taught"):
        for fact in values.get(field, ()):
            if fact not in facts:
                raise mistake(where, f"{field} with ids of facts of world {values['world']!r}", repr(fact), f"its facts are {some(facts)}")


def check_taught(where: str, item: Item, taught: Mapping[str, int]) -> None:
    """Refuse facts that the question needs, or that stand before it, but nobody taught."""
    for field in ("gold_facts", "window"):
        named: Ids = getattr(item, field)
        strange = None if named is item.taught else next((fact for fact in named if fact not in taught), None)
        if strange is not None:
            raise mistake(where, f"{field} among the taught facts", repr(strange), "add it to taught, or leave taught out")
