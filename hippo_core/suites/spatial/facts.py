"""Telling a map and what happens on it: links, obstacles, things at places, procedures, and the steps of walkers in their order."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Literal

from pydantic import Field

from hippo_core.suites import lexicon
from hippo_core.suites.spatial import words as words
from hippo_core.suites.spatial.map import Map
from hippo_core.suites.splits import belongs
from hippo_core.suites.types import Fact, Settings, Split, WorldSpec


class SpatialSettings(Settings):
    """A world of the spatial suite. The map decides how many facts there are."""

    n_facts: Literal[0] = 0  # as many as the map needs
    n_items: int = Field(5, ge=1)
    graph_share: float = Field(0.4, ge=0, le=1)  # share of worlds that are graphs; the others are grids
    grid_size: int = Field(4, ge=2, le=6)  # cells on a side
    obstacles: float = Field(0.15, ge=0, le=0.4)  # share of the grid's cells that are blocked
    graph_places: int = Field(10, ge=4, le=30)
    graph_extra: int = Field(3, ge=0)  # links of a graph beyond those of a tree
    dead_ends: int = Field(0, ge=0)  # places with a single way out, at least
    alternative_routes: bool = False  # between the ends of a path there is a second route that shares no link with the first
    min_steps: int = Field(2, ge=2)  # of a path that is asked for
    max_steps: int = Field(4, ge=2)
    n_objects: int = Field(5, ge=1)
    n_procedures: int = Field(2, ge=1)
    min_procedure: int = Field(4, ge=1)  # steps of a procedure
    max_procedure: int = Field(6, ge=1)
    n_walkers: int = Field(2, ge=0)
    trajectory_steps: int = Field(4, ge=1)
    new_names: float = Field(0.25, ge=0, le=1)  # share of worlds whose walkers have names that no training saw
    path_share: float = Field(0.3, ge=0)  # the four shares of questions; only their ratio counts
    recall_share: float = Field(0.1, ge=0)
    procedure_share: float = Field(0.4, ge=0)
    trajectory_share: float = Field(0.2, ge=0)  # in a graph, where there are no directions to follow, these are recall questions


@dataclass(frozen=True)
class Sentence:
    """A fact before it has a place in the telling; `form` is the number of its wording."""

    text: str
    slots: dict[str, str]
    form: int = 0


@dataclass(frozen=True)
class Telling:
    """A map, its facts in order of telling, the wording of each, and whether the walkers' names are ones that no training saw."""

    map: Map
    facts: tuple[Fact, ...]
    forms: dict[str, int]
    new_names: bool

    def having(self, slot: str) -> list[Fact]:
        """The facts that have this slot."""
        return [fact for fact in self.facts if slot in fact.slots]


def tell_world(random: Random, settings: SpatialSettings, spec: WorldSpec, drawn: Map, bars: list[tuple[str, str]]) -> Telling | None:
    """All facts of a world: first the map and what belongs to it, in any order, then the walkers' steps. None where words run out."""
    map_sentences = [*tell_links(random, drawn), *tell_obstacles(random, bars, spec.split)]
    map_sentences += [*tell_objects(random, drawn, settings.n_objects, spec.split), *tell_procedures(random, drawn, settings, spec.split)]
    random.shuffle(map_sentences)
    new = spec.split != "train" and random.random() < settings.new_names
    walks = tell_walks(random, drawn, settings, spec.split, lexicon.names(held_out=new)) if drawn.is_grid else []
    if walks is None:
        return None
    sentences = map_sentences + walks
    facts = tuple(
        Fact(
            id=f"{spec.id}.f{number}",
            world=spec.id,
            text=sentence.text,
            slots=sentence.slots,
            time=number,
            context_key="the map" if number < len(map_sentences) else "the walks",
            provenance="told",
        )
        for number, sentence in enumerate(sentences)
    )
    forms = {fact.id: sentence.form for fact, sentence in zip(facts, sentences, strict=True)}
    return Telling(drawn, facts, forms, new and bool(walks))


def tell_links(random: Random, drawn: Map) -> Iterator[Sentence]:
    """Every link once, seen from one of its ends."""
    for a, near in drawn.steps.items():
        for word, b in near.items():
            if a < b:
                yield tell_step(random, drawn, a, word, b) if random.random() < 0.5 else tell_step(random, drawn, b, back(drawn, a, b), a)


def back(drawn: Map, a: str, b: str) -> str:
    """The step that leads from b to a."""
    return next(word for word, place in drawn.steps[b].items() if place == a)


def tell_step(random: Random, drawn: Map, a: str, word: str, b: str) -> Sentence:
    if drawn.is_grid:
        return Sentence(random.choice(words.GRID_FORMS).format(origin=a, direction=word, to=b), {"from": a, "direction": word, "to": b})
    return Sentence(random.choice(words.GRAPH_FORMS).format(a=a, b=b), {"a": a, "b": b})


def tell_obstacles(random: Random, bars: list[tuple[str, str]], split: Split) -> Iterator[Sentence]:
    """What bars the way, where the split has a word for it."""
    for origin, direction in bars:
        fits = [word for word in words.OBSTACLES if belongs(f"{word}|{direction}|{origin}", split)]
        if fits:
            obstacle = random.choice(fits)
            text = random.choice(words.OBSTACLE_FORMS).format(origin=origin, direction=direction, obstacle=obstacle)
            yield Sentence(text, {"from": origin, "direction": direction, "obstacle": obstacle})


def tell_objects(random: Random, drawn: Map, count: int, split: Split) -> Iterator[Sentence]:
    """Different things at different places, one each."""
    used: set[str] = set()
    for place in random.sample(drawn.places, min(count, len(drawn.places))):
        fits = [thing for thing in words.OBJECTS if thing not in used and belongs(f"{thing}|{place}", split)]
        thing = random.choice(fits)
        used.add(thing)
        form = random.randrange(len(words.RECALL_FORMS))
        text = words.RECALL_FORMS[form].format(place=place, object=words.article(thing))
        yield Sentence(text, {"place": place, "object": thing}, form)


def busy_places(drawn: Map) -> list[str]:
    """The places with the most ways out: about half of all."""
    ranked = sorted(drawn.places, key=lambda place: -len(drawn.steps[place]))
    least = len(drawn.steps[ranked[(len(ranked) - 1) // 2]])
    return [place for place in ranked if len(drawn.steps[place]) >= least]


def tell_procedures(random: Random, drawn: Map, settings: SpatialSettings, split: Split) -> Iterator[Sentence]:
    """Named walks of several steps, each told in one sentence."""
    names = random.sample(words.PROCEDURES, len(words.PROCEDURES))
    for _ in range(settings.n_procedures):
        origin = random.choice(busy_places(drawn))
        name = next((name for name in names if belongs(f"{name}|{origin}", split)), None)
        if name is None:
            continue
        names.remove(name)
        length = random.randint(settings.min_procedure, max(settings.min_procedure, settings.max_procedure))
        steps = ", ".join(drawn.stroll(random, origin, length))
        form = random.randrange(len(words.PROCEDURE_FORMS))
        text = words.PROCEDURE_FORMS[form].format(name=name, origin=origin, steps=steps)
        yield Sentence(text, {"name": name, "from": origin, "steps": steps}, form)


def tell_walks(random: Random, drawn: Map, settings: SpatialSettings, split: Split, names: tuple[str, ...]) -> list[Sentence] | None:
    """Where each walker starts and each step, the walkers' steps interleaved; no walk ends where it began."""
    walks: dict[str, list[Sentence]] = {}
    while len(walks) < settings.n_walkers:
        origin = random.choice(busy_places(drawn))
        who = random.choice(names)
        if who in walks or not belongs(f"{who}|{origin}", split):
            continue
        steps = drawn.stroll(random, origin, settings.trajectory_steps)
        passed = drawn.walk(origin, steps)
        step_sentences = [tell_walker_step(random, who, direction, split) for direction in steps]
        if passed is None or passed[-1] == origin or None in step_sentences:
            return None
        start = Sentence(random.choice(words.START_FORMS).format(who=who, origin=origin), {"who": who, "from": origin})
        walks[who] = [start, *(sentence for sentence in step_sentences if sentence)]
    turns = [who for who, walk in walks.items() for _ in walk]
    random.shuffle(turns)
    waiting = {who: iter(walk) for who, walk in walks.items()}
    return [next(waiting[who]) for who in turns]


def tell_walker_step(random: Random, who: str, direction: str, split: Split) -> Sentence | None:
    fits = [verb for verb in words.VERBS if belongs(f"{who}|{verb}|{direction}", split)]
    if not fits:
        return None
    return Sentence(words.STEP_FORM.format(who=who, verb=random.choice(fits), direction=direction), {"who": who, "direction": direction})
