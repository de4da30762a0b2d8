"""Another map of the same places: they exchange positions, and what happens on the map changes. The questions stay.

links, obstacles, an explorer's steps    each place is where another one was
objects                                  each is where another one was
procedures, walkers                      they begin where they began, and go another way on the other map
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Self

from hippo_core.spoken import MOVES, NUMBERS
from hippo_core.suites import lexicon
from hippo_core.suites.altering import exchanged, replaced_value
from hippo_core.suites.spatial import words as words
from hippo_core.suites.spatial.map import Link, Map, ends_of, read_links, read_map, write_links
from hippo_core.suites.spatial.path import PATH_KINDS
from hippo_core.suites.types import Fact, Item, World

DRAWS = 2000  # of positions of places, at most
SHORTEST, LONGEST = 2, 4  # steps of a route that is asked for; the world's own longest one may be longer
STROLLS = 100  # draws of another walk
MAP_KINDS = ("grid_path", "graph_path", "step_count", "neighbor", "exits", "edge_label")  # of items that the map answers


def with_counterfactual_answers(world: World, others: Sequence[World]) -> World:
    """The world on another map. Its items are those that this map answers differently from the true one."""
    random = Random(f"altered/{world.id}")
    facts = {fact.id: fact for fact in world.facts}
    true = Ground.of(world)
    other = _drawn(random, world, true) if true else None
    if true and other:
        on_map = [fact for fact in world.facts if ends_of(fact) or "obstacle" in fact.slots or "step" in fact.slots]
        facts |= {fact.id: exchanged(fact, other.labels) for fact in on_map}
        facts |= dict(_other_walks(random, world, true.map, other.map))
    facts |= dict(_other_objects(random, world))
    items = (_other_item(item, facts, true, other) for item in world.items)
    return replace(world, facts=tuple(facts.values()), items=tuple(item for item in items if item))


@dataclass(frozen=True)
class Ground:
    """A map, the labels of its links, and the places that a question can name: for each of these the one that is now there."""

    map: Map
    edge_labels: Mapping[Link, str]
    labels: Mapping[str, str]

    @classmethod
    def of(cls, world: World) -> Self | None:
        """The true one: from the facts, or, of an explored world, from an item's truth. None where neither has it."""
        if not any("step" in fact.slots for fact in world.facts):
            drawn = read_map(world.facts)
            edge_labels = {frozenset(ends): fact.slots.get("by", "") for fact in world.facts if (ends := ends_of(fact))}
            return cls(drawn, edge_labels, {place: place for place in drawn.places}) if drawn.places else None
        truth = next((item.truth for item in world.items if "links" in item.truth), None)
        if truth is None:
            return None
        labelled = read_links(truth["ways"], is_grid=False).steps if "ways" in truth else {}
        edge_labels = {frozenset((a, b)): label for a, near in labelled.items() for label, b in near.items()}
        seen = sorted({label for fact in world.facts for slot, label in fact.slots.items() if slot in ("place", *MOVES)})
        return cls(read_links(truth["links"], is_grid=True), edge_labels, {label: label for label in seen})

    def moved(self, labels: Mapping[str, str]) -> "Ground":
        """The same with labels exchanged."""
        there = {place: labels.get(place, place) for place in self.map.steps}
        steps = {
            there[a]: {word if self.map.is_grid else there[word]: there[b] for word, b in near.items()}
            for a, near in self.map.steps.items()
        }
        edge_labels = {frozenset(there[end] for end in link): label for link, label in self.edge_labels.items()}
        return Ground(Map(steps, self.map.is_grid), edge_labels, labels)

    @cached_property
    def truth(self) -> dict[str, str]:
        """What items keep of the map."""
        labels = {"ways": write_links(self.map.labelled(self.edge_labels))} if any(self.edge_labels.values()) else {}
        return {"links": write_links(self.map), **labels}


def _drawn(random: Random, world: World, true: Ground) -> Ground:
    """Of several other maps the first one that answers all items about the map, or the one that answers most of them."""
    asked = [item for item in world.items if _kind(item) in MAP_KINDS and _named(item) <= true.labels.keys()]
    longest = max([LONGEST, *(int(true.map.distances[a][b]) for a, b in map(_ends, asked) if b)])
    best, most = true, -1
    for _ in range(DRAWS):
        other = true.moved(dict(zip(true.labels, random.sample(list(true.labels), len(true.labels)), strict=True)))
        answered = sum(_map_answers(item, true, other, longest) is not None for item in asked)
        if answered > most:
            best, most = other, answered
        if most == len(asked) and other.labels != true.labels:
            break
    return best


def _kind(item: Item) -> str:
    return item.truth.get("path", item.kind)


def _ends(item: Item) -> tuple[str, str]:
    """The places that an item asks about; the second is "" where it is one."""
    return item.truth.get("from", item.cue.get("from", "")), item.truth.get("to", item.cue.get("to", ""))


def _named(item: Item) -> set[str]:
    """The places that an item names, with the neighbour that it names for a shared label."""
    return {*filter(None, _ends(item)), *(f"by {near}" for slot, near in item.cue.items() if slot.endswith("_next_to"))}


def leads_on_both(drawn: Map, other: Map, start: str, goal: str) -> bool:
    """Whether a shortest route between two places of a map also joins them on another map."""
    away, reached = drawn.distances, {(start, start)}
    for _ in range(int(away[start][goal])):
        reached = {
            (drawn.steps[here][word], other.steps[there][word])
            for here, there in reached
            for word in drawn.steps[here].keys() & other.steps.get(there, {}).keys()
            if away[drawn.steps[here][word]][goal] < away[here][goal]
        }
    return any(there == goal for _, there in reached)


def _map_answers(item: Item, true: Ground, other: Ground, longest: float = float("inf")) -> tuple[str, ...] | None:
    """The other map's answers to an item; None where it has none, or the true one's."""
    if not _named(item) <= true.labels.keys() & other.map.steps.keys():
        return None
    kind, (a, b), answers = _kind(item), _ends(item), tuple[str, ...]()
    if kind in ("grid_path", "graph_path"):
        if not SHORTEST <= other.map.distances[a][b] <= longest or leads_on_both(other.map, true.map, a, b):
            return None
        return (", ".join(other.map.route(Random(item.id), a, b)),)
    if kind == "step_count":
        count = other.map.distances[a][b]
        same = count == true.map.distances[a][b]
        return None if same or not SHORTEST <= count <= longest else (NUMBERS[int(count)], str(int(count)))
    if kind == "neighbor":
        near = other.map.steps[a].get(item.cue["direction"])
        answers = (near,) if near and near in true.labels else ()
    elif kind == "exits" and len(other.map.steps[a]) > 1:
        answers = words.in_any_order([word for word in MOVES if word in other.map.steps[a]])
    elif kind == "edge_label" and (label := other.edge_labels.get(frozenset((a, b)), "")):
        answers = label, words.edge_phrase(label)
    return answers if answers and answers[0] not in item.answers else None


def _other_item(item: Item, facts: Mapping[str, Fact], true: Ground | None, other: Ground | None) -> Item | None:
    """The item with the other facts' answers; None where these answer nothing, or the same."""
    kind, gold = _kind(item), [facts[fact_id] for fact_id in item.gold_facts]
    answers = None
    if kind in MAP_KINDS and true and other:
        answers = _map_answers(item, true, other)
    elif kind == "recall":
        answers = (gold[0].slots["object"],)
    elif kind == "procedure":
        answers = (gold[0].slots["steps"],)
    elif kind == "trajectory" and other:
        walk = [fact.slots for fact in gold if fact.slots.get("who") == item.cue["who"]]
        passed = other.map.walk(item.cue["from"], [slots["direction"] for slots in walk[1:]])
        answers = (passed[-1],) if passed else None
    if answers is None or answers[0] in item.answers:
        return None
    truth = item.truth | other.truth if item.truth and other and kind in PATH_KINDS else item.truth
    return replace(item, answers=answers, truth=truth)


def _other_objects(random: Random, world: World) -> Iterator[tuple[str, Fact]]:
    """The facts of objects at places, each with the object of another one."""
    object_facts = [fact for fact in world.facts if "object" in fact.slots]
    object_facts = random.sample(object_facts, len(object_facts))
    for fact, other in zip(object_facts, [*object_facts[1:], *object_facts[:1]], strict=True):
        was, now = fact.slots["object"], other.slots["object"]
        if was == now:  # there is only one object
            now = random.choice([obj for obj in words.OBJECTS if obj != was])
        yield fact.id, replaced_value(fact, "object", now, lexicon.article(was), lexicon.article(now))


def _other_walks(random: Random, world: World, true: Map, other: Map) -> Iterator[tuple[str, Fact]]:
    """Procedures and walkers' steps on the other map, as many as before from the same place."""
    walks: dict[str, list[Fact]] = {}
    for fact in world.facts:
        slots = fact.slots
        if {"name", "from", "steps"} <= slots.keys():
            drawn = _strolls(random, other, slots["from"], slots["steps"].count(",") + 1)
            yield fact.id, replaced_value(fact, "steps", next((walk for walk in drawn if walk != slots["steps"]), slots["steps"]))
        elif slots.keys() in ({"who", "from"}, {"who", "direction"}):
            walks.setdefault(slots["who"], []).append(fact)
    for start, *moves in walks.values():
        origin = start.slots["from"]
        end = (true.walk(origin, [fact.slots["direction"] for fact in moves]) or [""])[-1]
        drawn = (walk.split(", ") for walk in _strolls(random, other, origin, len(moves)))
        steps = next((walk for walk in drawn if (other.walk(origin, walk) or [origin])[-1] not in (origin, end)), None)
        for fact, step in zip(moves, steps or (), strict=bool(steps)):
            yield fact.id, replaced_value(fact, "direction", step)


def _strolls(random: Random, drawn: Map, origin: str, length: int) -> Iterator[str]:
    return (", ".join(drawn.stroll(random, origin, length)) for _ in range(STROLLS))
