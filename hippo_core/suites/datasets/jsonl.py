"""Worlds as two JSONL files: one fact, one item a line, world after world."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from hippo_core.suites.types import Fact, Item, World

FACT_FIELDS = tuple(field.name for field in fields(Fact))
ITEM_FIELDS = tuple(field.name for field in fields(Item))
TUPLES = ("answers", "gold_facts", "window", "taught", "slices")


def to_line(value: Fact | Item, names: tuple[str, ...]) -> str:
    """A fact or an item as one line of JSON."""
    return json.dumps({name: getattr(value, name) for name in names}, ensure_ascii=False) + "\n"


def write_worlds(folder: Path, worlds: Iterable[World]) -> dict[str, Any]:
    """Write facts.jsonl and items.jsonl into a new folder; returns the counts for the card."""
    folder.mkdir()
    counts = {name: Counter() for name in ("kinds", "rungs", "hops", "slices")}
    total = Counter({"worlds": 0, "facts": 0, "items": 0})
    with (folder / "facts.jsonl").open("w", encoding="utf-8") as facts, (folder / "items.jsonl").open("w", encoding="utf-8") as items:
        for world in worlds:
            facts.writelines(to_line(fact, FACT_FIELDS) for fact in world.facts)
            items.writelines(to_line(item, ITEM_FIELDS) for item in world.items)
            total.update(worlds=1, facts=len(world.facts), items=len(world.items))
            for item in world.items:
                counts["kinds"][item.kind] += 1
                counts["rungs"][item.rung] += 1
                counts["hops"][str(item.hops)] += 1
                counts["slices"].update(item.slices)
    return {**total, **{name: dict(sorted(found.items())) for name, found in counts.items()}}


def read_worlds(folder: Path) -> list[World]:
    """The worlds that `write_worlds` wrote, in the same order."""
    facts: dict[str, list[Fact]] = {}
    for values in read_lines(folder / "facts.jsonl"):
        facts.setdefault(values["world"], []).append(Fact(**values))
    items: dict[str, list[Item]] = {world: [] for world in facts}
    for values in read_lines(folder / "items.jsonl"):
        values.update({name: tuple(values[name]) for name in TUPLES})
        items[values["world"]].append(Item(**values))
    return [World(world, tuple(told), tuple(items[world])) for world, told in facts.items()]


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)
