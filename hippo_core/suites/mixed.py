"""mixed: worlds of events, relations and routes; some questions need two of them, or all three.

    taught   On Friday, Carla sold a guitar at the market. Carla works for the Marlow company. The Marlow company is in Oslo.
             The Marlow company is at the barn. The well is north of the mill. The barn lies east of the well.
    asked    Which city is home to the employer of the one who sold a guitar at the market on Friday?              gold: Oslo
             Which directions lead from the mill to the employer of the one who sold a guitar at the market?       gold: north, east

Each part is a world of its own suite; they share no name, object or place. Further facts join them: somebody of an event works or studies
somewhere, and that is at a place of the map. A question about two parts ends with a phrase of the other one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from random import Random
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from hippo_core.suites import episodic, lexicon, semantic, spatial
from hippo_core.suites.altering import other_answers
from hippo_core.suites.episodic import EpisodicSettings
from hippo_core.suites.semantic import FRAMES, SemanticSettings
from hippo_core.suites.semantic.words import FORMS, Rewording
from hippo_core.suites.spatial.facts import SpatialSettings
from hippo_core.suites.spatial.map import read_map, write_links
from hippo_core.suites.splits import attempts, belongs, interleaved
from hippo_core.suites.types import Fact, Item, PathScore, Settings, Suite, World, WorldSpec

Kind = Literal["event", "relation", "way", "event_relation", "relation_way", "event_way"]
KINDS: tuple[Kind, ...] = ("event", "relation", "way", "event_relation", "relation_way", "event_way")
PATHS = ("grid_path", "graph_path")
JOBS = {"work": "employer", "study": "college"}  # of which people have one, by frame: what a question calls it
PLAIN = ("relation", "direction", "action", "when", "steps", "name")  # slots whose words may stand in several parts


class MixedSettings(Settings):
    """A world of three parts, each by the settings of its suite but for the number of questions. `kinds`: of the questions, in turn."""

    n_facts: Literal[0] = 0  # as many as the parts have
    n_items: int = Field(5, ge=1)
    n_competitors: int = 1
    kinds: Annotated[tuple[Kind, ...], Field(min_length=1)] = KINDS
    events: EpisodicSettings = EpisodicSettings()
    relations: SemanticSettings = SemanticSettings()
    ways: SpatialSettings = SpatialSettings.model_validate({})


class MixedFirm(NamedTuple):
    """A firm with an uncontested city, the fact that says so, and the facts that repeat it."""

    name: str
    frame: str
    city: str
    fact: str
    again: tuple[str, ...]


class Employee(NamedTuple):
    """Somebody as a question names them, with the facts that say who that is and where they work."""

    phrase: str
    gold: tuple[str, ...]
    cue: dict[str, str]
    slices: tuple[str, ...] = ()


@dataclass
class MixedDraft:
    """A world under construction. Ids begin with the name of the part; `joins` are the facts that join the parts."""

    spec: WorldSpec
    events: World
    relations: World
    routes: World
    firms: list[MixedFirm] = field(default_factory=list)
    people: list[Item] = field(default_factory=list)  # questions of which somebody is the answer
    joins: list[Fact] = field(default_factory=list)
    rewording: Rewording | None = None  # of the joins
    used: set[str] = field(default_factory=set)  # questions that are asked in any form, and firms that have a place

    def add_join(self, form: str, words: Mapping[str, str], slots: Mapping[str, str]) -> str:
        """One more join; returns its id."""
        name = f"join.{len(self.joins)}"
        text = self.rewording(form, words) if self.rewording else form.format(**words)
        self.joins.append(Fact(name, self.spec.id, text, dict(slots), 0, provenance="told"))
        return name


def make_world(random: Random, settings: MixedSettings, spec: WorldSpec) -> World:
    """One world; drawn again until it carries its questions."""
    turn = spec.index * settings.n_items
    kinds: list[Kind] = [settings.kinds[(turn + number) % len(settings.kinds)] for number in range(settings.n_items)]
    for _ in attempts(settings, "mixed world"):
        draft = draw_parts(random, settings, spec, kinds)
        items = ask(random, draft, kinds) if draft else None
        if draft and items:
            world = merge_parts(random, draft, items)
            if all(has_competitor(item, world.facts) for item in world.items):
                return world
    raise AssertionError("unreachable")


def draw_parts(random: Random, settings: MixedSettings, spec: WorldSpec, kinds: Sequence[Kind]) -> MixedDraft | None:
    """The three parts; None where a word stands in two of them."""
    count = Counter(kinds)
    n_routes = count["way"] + 4 * (count["relation_way"] + count["event_way"])
    parts = []
    for name, part, own, n_items in (
        ("event", episodic, settings.events, settings.events.n_facts),
        ("relation", semantic, settings.relations, count["relation"]),
        ("way", spatial, settings.ways, n_routes),
    ):
        world = part.make_world(random, own.model_copy(update={"n_items": max(1, n_items)}), spec)
        parts.append(labelled(world, name))
    if any(spoken(part) & spoken(other) for part, other in combinations(parts, 2)):
        return None
    draft = MixedDraft(spec, *parts, firms=uncontested(parts[1]))
    draft.rewording = Rewording(spec) if settings.relations.wording == "reworded" else None
    return draft


def spoken(part: World) -> set[str]:
    """The names, objects and places of a part, in small letters, and their synonyms."""
    words = {word for fact in part.facts for slot, value in fact.slots.items() if slot not in PLAIN for word in value.lower().split()}
    return words | {word for group in (*lexicon.OBJECTS, *lexicon.PLACES) if words & set(group) for word in group}


def labelled(part: World, name: str) -> World:
    """The part with its name instead of the world's in all ids."""

    def renamed(old_id: str) -> str:
        return f"{name}.{old_id.removeprefix(f'{part.id}.')}"

    facts = tuple(replace(fact, id=renamed(fact.id), reward=False, pin=False) for fact in part.facts)
    items = []
    for item in part.items:
        retold = {renamed(again): renamed(first) for again, first in item.retold.items()}
        items.append(replace(item, id=renamed(item.id), gold_facts=tuple(map(renamed, item.gold_facts)), retold=retold))
    return World(part.id, facts, tuple(items))


def uncontested(relations: World) -> list[MixedFirm]:
    """The companies and colleges whose facts all name one city."""
    by_firm: dict[str, list[Fact]] = {}
    for fact in relations.facts:
        if {"firm", "city"} <= fact.slots.keys():
            by_firm.setdefault(fact.slots["firm"], []).append(fact)
    firms = []
    for name, facts in by_firm.items():
        frame = next((frame for frame in JOBS if FRAMES[frame].firm in facts[0].text), "")
        if frame and len({fact.slots["city"] for fact in facts}) == 1 and all(fact.schema_fit for fact in facts):
            firms.append(MixedFirm(name, frame, facts[0].slots["city"], facts[0].id, tuple(fact.id for fact in facts[1:])))
    return firms


def ask(random: Random, draft: MixedDraft, kinds: Sequence[Kind]) -> list[Item] | None:
    """The world's questions, in order; None where it does not carry one of them."""
    who = {item.answers[0]: item for item in draft.events.items if item.question.startswith("Who ")}  # what becomes a phrase
    draft.people = list(who.values())
    left = {"event": draft.events.items, "relation": draft.relations.items, "way": draft.routes.items}
    asked: dict[int, Item] = {}
    for number, kind in sorted(enumerate(kinds), key=lambda entry: entry[1] in left):  # those that join first: they are harder to find
        if kind == "event_relation":
            item = city_of_employer(random, draft)
        elif kind in left:
            item = next((candidate for candidate in left[kind] if candidate.id not in draft.used), None)
        else:
            paths = (candidate for candidate in left["way"] if candidate.kind in PATHS and candidate.id not in draft.used)
            item = next((joined for path in paths if (joined := route_to_employer(random, draft, path, kind))), None)
        if item is None:
            return None
        draft.used.add(item.id)
        asked[number] = item
    return [asked[number] for number in range(len(kinds))]


def has_competitor(item: Item, facts: Sequence[Fact]) -> bool:
    """Whether a fact besides the gold ones shares a slot's value with the cue."""
    named = {value.lower() for value in item.cue.values()}
    return any(fact.id not in item.gold_facts and named & {value.lower() for value in fact.slots.values()} for fact in facts)


def employee(random: Random, draft: MixedDraft, firm: MixedFirm, named: bool) -> Employee | None:
    """Who works or studies there: somebody by name (`named`), or a person of an event, who gets a job there."""
    frame = FRAMES[firm.frame]
    for fact in draft.relations.facts if named else ():
        if fact.slots.get("firm") == firm.name and fact.slots.get("relation") == frame.relation:
            who, about = fact.slots["who"], {"who": fact.slots["who"], "relation": frame.relation}
            if len({other.slots["firm"] for other in draft.relations.facts if about.items() <= other.slots.items()}) == 1:
                return Employee(who, (fact.id,), {"who": who})
    for event in () if named else random.sample(draft.people, len(draft.people)):
        who = event.answers[0]
        if event.id not in draft.used and belongs(f"{who}|{firm.frame}||{firm.name}", draft.spec.split):
            slots = {"who": who, "relation": frame.relation, "firm": firm.name}
            link = draft.add_join(random.choice(frame.link), {"who": who, "name": firm.name}, slots)
            draft.used.add(event.id)
            return Employee(f"the one w{event.question[1:-1]}", (*event.gold_facts, link), event.cue, event.slices)
    return None


def city_of_employer(random: Random, draft: MixedDraft) -> Item | None:
    """In which city a person of an event works."""
    for firm in random.sample(draft.firms, len(draft.firms)):
        if who := employee(random, draft, firm, named=False):
            question = f"Which city is home to the {JOBS[firm.frame]} of {who.phrase}?"
            gold, again = (*who.gold, firm.fact), dict.fromkeys(firm.again, firm.fact)
            chance = 1 / len({other.city for other in draft.firms})
            about: dict[str, Any] = {"hops": len(gold), "chance": chance, "cue": who.cue, "slices": who.slices, "retold": again}
            return Item(f"city.{firm.name}", draft.spec.id, question, (firm.city,), gold, "event_relation", **about)
    return None


def route_to_employer(random: Random, draft: MixedDraft, path: Item, kind: Kind) -> Item | None:
    """A path question whose goal is where somebody works: a named person, or a person of an event."""
    start, goal = path.cue["from"], path.cue["to"]
    if not path.question.endswith(f" the {goal}?"):
        return None
    for firm in random.sample(draft.firms, len(draft.firms)):
        if firm.name in draft.used or not belongs(f"{firm.name}|{goal}", draft.spec.split):
            continue
        if who := employee(random, draft, firm, named=kind == "relation_way"):
            draft.used |= {firm.name, path.id}
            words = {"name": firm.name, "firm": FRAMES[firm.frame].firm, "place": goal}
            at = draft.add_join(random.choice(FORMS["at"]), words, {"firm": firm.name, "relation": "is at", "place": goal})
            return replace(
                path,
                id=f"{kind}.{path.id}",
                kind=kind,
                question=f"{path.question.removesuffix(f'the {goal}?')}the {JOBS[firm.frame]} of {who.phrase}?",
                gold_facts=(*who.gold, at, *path.gold_facts),
                cue={**who.cue, "from": start},
                hops=path.hops + len(who.gold) + 1,
                slices=tuple(dict.fromkeys((*path.slices, *who.slices))),
                truth={"path": path.kind, "from": start, "to": goal, "links": write_links(read_map(draft.routes.facts))},
            )
    return None


def merge_parts(random: Random, draft: MixedDraft, items: Sequence[Item]) -> World:
    """The world: the parts' facts interleaved, each part in its order, with new ids."""
    world, gold = draft.spec.id, {fact for item in items for fact in item.gold_facts}
    facts = interleaved(random, [draft.events.facts, draft.relations.facts, draft.routes.facts, draft.joins])
    ids = {fact.id: f"{world}.f{number}" for number, fact in enumerate(facts)}
    renamed = tuple(replace(fact, id=ids[fact.id], time=number, asked=fact.id in gold) for number, fact in enumerate(facts))
    taught = tuple(ids.values())
    asked = []
    for number, item in enumerate(items):
        retold = {ids[again]: ids[first] for again, first in item.retold.items()}
        known = {"gold_facts": tuple(ids[fact] for fact in item.gold_facts), "retold": retold, "window": (), "taught": taught}
        asked.append(replace(item, id=f"{world}.q{number}", distance=0, **known))
    return World(world, renamed, tuple(asked))


def score_path(world: World, item: Item, prediction: str) -> PathScore | None:
    """See the spatial suite; a joined question is scored as the path that it asks for."""
    return spatial.score_path(world, replace(item, kind=item.truth.get("path", item.kind)), prediction)


def with_counterfactual_answers(world: World, others: Sequence[World]) -> World:
    """The world with other cities, another map, and other events where these alone are asked for."""
    cities = semantic.with_counterfactual_answers(world, others)
    there = spatial.with_counterfactual_answers(replace(cities, items=world.items), others)
    asked = [item for item in world.items if item.id not in {answered.id for answered in (*cities.items, *there.items)}]
    joined = {gold for item in world.items if item not in asked for gold in item.gold_facts}
    alone = tuple(item for item in asked if not joined & set(item.gold_facts))
    events = other_answers(replace(there, items=alone), others)
    items = {item.id: item for item in (*cities.items, *there.items, *events.items)}
    return replace(events, items=tuple(items[item.id] for item in world.items if item.id in items))


MIXED = Suite(
    "mixed",
    "events, relations and ways in one world, and questions that need several of them",
    MixedSettings,
    make_world,
    primary="success",
    answer_budget=40,
    has_window=False,
    score_path=score_path,
    reads=lambda settings: [*semantic.SEMANTIC.reads(settings.relations), *spatial.SPATIAL.reads(settings.ways)],
    altered=with_counterfactual_answers,
    order=8,
    asks="facts and ways joined",
)
