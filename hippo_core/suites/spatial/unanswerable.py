"""Unanswerable questions about a map: facts are left out, so that a place has no name, no link leads to a place, or an object, a procedure
or a walk is missing."""

import re
from collections.abc import Sequence
from dataclasses import replace
from math import isinf

from hippo_core.suites.spatial.map import ends_of, read_map
from hippo_core.suites.spatial.words import FORMS
from hippo_core.suites.types import Fact, Hide, Item, World
from hippo_core.suites.unanswerable import once_right

ROUTES = ("grid_path", "graph_path", "step_count")


def hide(world: World, item: Item, number: int) -> Hide:
    """Leave out what decides; the number draws which, where there are two. Of a route, the goal is never named, or no link leads to it and
    to one neighbour. An explorer finds the place without a label, so that its walk stays complete."""
    cue, odd = item.cue, number % 2 == 1
    if any("step" in fact.slots for fact in world.facts):
        label = once_right(item) if item.kind == "neighbor" else cue["from"] if odd or "to" not in cue else cue["to"]
        return lambda fact: without_label(fact, label)
    if item.kind == "neighbor" or (item.kind == "trajectory" and odd):
        return without_place(once_right(item))
    if item.kind == "trajectory":
        return lambda fact: None if fact.slots.get("who") == cue["who"] else fact
    if item.kind in ROUTES:
        return cut_off(world, cue["from"], cue["to"]) if odd else without_place(cue["to"])
    return lambda fact: None if fact.id in item.gold_facts else fact


def without_place(place: str) -> Hide:
    """Leave out all facts that name the place."""
    return lambda fact: None if place in fact.slots.values() else fact


def cut_off(world: World, start: str, goal: str) -> Hide:
    """Leave out the links that lead to the goal and one of its neighbours, except between these two."""
    near = next(place for place in sorted(read_map(world.facts).steps[goal].values()) if place != start)
    island = {goal, near}

    def hidden(fact: Fact) -> Fact | None:
        ends = ends_of(fact)
        return None if ends and len(ends & island) == 1 else fact

    return hidden


def without_label(fact: Fact, label: str) -> Fact:
    """An explorer's step without this label: its place has no label, and nobody saw it from afar."""
    if label not in fact.slots.values():
        return fact
    came, *others = re.split(r"(?<=\.) ", fact.text)
    name = re.compile(rf"\bthe {label}\b", re.IGNORECASE)
    text = " ".join([name.sub(FORMS["unlabeled"][0], came), *(other for other in others if not name.search(other))])
    return replace(fact, text=text, slots={slot: value for slot, value in fact.slots.items() if value != label})


def is_answerable(facts: Sequence[Fact], item: Item) -> bool:
    """Whether facts have what the answer needs: the named places and a route, the object, the procedure, the walk."""
    cue, named = item.cue, {value for fact in facts for value in fact.slots.values()}
    if any("step" in fact.slots for fact in facts):
        needed = {cue["from"], cue.get("to", cue["from"])} | ({once_right(item)} if item.kind == "neighbor" else set())
        return needed <= named
    if item.kind in ROUTES:
        near = read_map(facts).distances
        return not isinf(near.get(cue["from"], {}).get(cue["to"], float("inf")))
    if item.kind == "trajectory":
        return once_right(item) in named and any(fact.slots.get("who") == cue["who"] and "direction" in fact.slots for fact in facts)
    if item.kind == "neighbor":
        return once_right(item) in named
    if item.kind == "edge_label":
        return any("by" in fact.slots and ends_of(fact) == {cue["from"], cue["to"]} for fact in facts)
    by, answer_slot = ("name", "steps") if item.kind == "procedure" else ("place", "object")
    return any(answer_slot in fact.slots and fact.slots.get(by) == cue[by] for fact in facts)
