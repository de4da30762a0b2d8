"""Worlds as two JSONL files: one fact, one item a line, world after world.

In a data set of a folder of the user's own a line leaves `window` or `taught` out where that is all facts of the world: these may be
100,000, and the items as many. Lists that are left out are one list for all items when they are read.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from hippo_core.suites.lookup import cached_by_identity
from hippo_core.suites.types import Fact, Item, World

FACT_FIELDS = tuple(field.name for field in fields(Fact))
ITEM_FIELDS = tuple(field.name for field in fields(Item))
TUPLES = ("answers", "gold_facts", "window", "taught", "slices", "refuted")
LISTS = ("window", "taught")
ENCODER = json.JSONEncoder(ensure_ascii=False)


def to_line(value: Fact | Item, names: Iterable[str]) -> str:
    """A fact or an item as one line of JSON."""
    return ENCODER.encode({name: getattr(value, name) for name in names}) + "\n"


def write_worlds(folder: Path, worlds: Iterable[World], short: bool = False) -> dict[str, Any]:
    """Write facts.jsonl and items.jsonl into a new folder; returns the counts for the card. `short`: lists of all facts are left out."""
    folder.mkdir()
    counts = {name: Counter() for name in ("kinds", "rungs", "hops", "slices")}
    total = Counter({"worlds": 0, "facts": 0, "items": 0})
    with (folder / "facts.jsonl").open("w", encoding="utf-8") as facts, (folder / "items.jsonl").open("w", encoding="utf-8") as items:
        for world in worlds:
            facts.writelines(to_line(fact, FACT_FIELDS) for fact in world.facts)
            everything = tuple(fact.id for fact in world.facts)
            is_everything = cached_by_identity(lambda ids, everything=everything: short and ids == everything)
            total.update(worlds=1, facts=len(world.facts), items=len(world.items))
            for item in world.items:
                left_out = {name for name in LISTS if is_everything(getattr(item, name))} | (set() if item.truth else {"truth"})
                items.write(to_line(item, (name for name in ITEM_FIELDS if name not in left_out)))
                counts["kinds"][item.kind] += 1
                counts["rungs"][item.rung] += 1
                counts["hops"][str(item.hops)] += 1
                counts["slices"].update(item.slices)
    return {**total, **{name: dict(sorted(counter.items())) for name, counter in counts.items()}}


def read_worlds(folder: Path) -> list[World]:
    """The worlds that `write_worlds` wrote, in the same order."""
    facts: dict[str, list[Fact]] = {}
    for values in read_lines(folder / "facts.jsonl"):
        facts.setdefault(values["world"], []).append(Fact(**values))
    everything = {world: tuple(fact.id for fact in world_facts) for world, world_facts in facts.items()}
    items: dict[str, list[Item]] = {world: [] for world in facts}
    for values in read_lines(folder / "items.jsonl"):
        values.update({name: tuple(values[name]) if name in values else everything[values["world"]] for name in TUPLES})
        items[values["world"]].append(Item(**values))
    return [World(world, tuple(world_facts), tuple(items[world])) for world, world_facts in facts.items()]


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)
