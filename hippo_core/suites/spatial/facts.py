"""Sentences for a map and what happens on it: links, obstacles, objects at places, procedures, and walkers' steps in order."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Literal, Self

from pydantic import Field, model_validator

from hippo_core.suites import lexicon
from hippo_core.suites.reworded import Wording
from hippo_core.suites.spatial import words as words
from hippo_core.suites.spatial.map import Link, Map
from hippo_core.suites.splits import belongs, interleaved
from hippo_core.suites.types import Fact, Settings, Split, WorldSpec


class SpatialSettings(Settings):
    """A world of the spatial suite. The map decides how many facts there are."""

    n_facts: Literal[0] = 0  # as many as the map needs
    n_items: int = Field(5, ge=1)
    graph_share: float = Field(0.4, ge=0, le=1)  # share of worlds that are graphs; the others are grids
    grid_size: int = Field(4, ge=2, le=9)  # cells on a side
    obstacles: float = Field(0.15, ge=0, le=0.4)  # share of the grid's cells that are blocked
    walls: float = Field(0.0, ge=0, le=0.5)  # share of the links between free cells that a wall cuts
    graph_places: int = Field(10, ge=4, le=30)
    graph_extra: int = Field(3, ge=0)  # links of a graph beyond those of a tree
    dead_ends: int = Field(0, ge=0)  # places with a single way out, at least
    alternative_routes: bool = False  # between the ends of a path there is a second route that shares no link with the first
    min_steps: int = Field(2, ge=2)  # of a path that is asked for
    max_steps: int = Field(4, ge=2)
    n_objects: int = Field(5, ge=0)
    n_procedures: int = Field(2, ge=0)
    min_procedure: int = Field(4, ge=1)  # steps of a procedure
    max_procedure: int = Field(6, ge=1)
    n_walkers: int = Field(2, ge=0)
    trajectory_steps: int = Field(4, ge=1)
    new_names: float = Field(0.25, ge=0, le=1)  # share of worlds whose walkers have names that no training saw
    edge_labels: bool = False  # links lead over a footbridge, along a towpath, ..., which questions may ask for
    rounds: int = Field(0, ge=0)  # how often an explorer walks through the full map and reports it; 0: sentences describe it
    first_person: float = Field(0.5, ge=0, le=1)  # share of the explorers that say "I"
    sight: float = Field(0.3, ge=0, le=1)  # share of the open sides beyond which an explorer sees the label of the next place
    unlabeled: float = Field(0.0, ge=0, lt=1)  # share of the visits that show no label
    noise: float = Field(0.0, ge=0, lt=0.5)  # share of the labels and of the moves' directions that are wrong
    stale: float = Field(0.0, ge=0, le=0.5)  # share of the links that close, and of the walls that open, after the first round
    spurious: float = Field(0.0, ge=0, le=1)  # share of the walls that are once reported open, before the last round
    aliases: float = Field(0.0, ge=0, le=0.5)  # share of the places that go by the label of another one
    path_share: float = Field(0.3, ge=0)  # the shares of questions; only their ratio counts
    recall_share: float = Field(0.1, ge=0)
    procedure_share: float = Field(0.4, ge=0)
    trajectory_share: float = Field(0.2, ge=0)  # in a graph, where there are no directions to follow, these are recall questions
    edge_label_share: float = Field(0.0, ge=0)
    step_count_share: float = Field(0.0, ge=0)
    neighbor_share: float = Field(0.0, ge=0)  # in a graph, where there are no directions, these are path questions
    exits_share: float = Field(0.0, ge=0)  # of explorers, who report all sides of a place at once
    wording: Wording = "own"  # of the facts; questions are in the lab's own words

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        narrated_only = ("graph_share", "recall_share", "procedure_share", "trajectory_share")
        if self.rounds and (wrong := [name for name in narrated_only if getattr(self, name)]):
            raise ValueError(f"explorers walk grids and meet no things, procedures or walkers: set {', '.join(wrong)} to 0, or rounds to 0")
        for name, least in {"unlabeled": 1, "noise": 1, "aliases": 1, "exits_share": 1, "stale": 2, "spurious": 2}.items():
            if getattr(self, name) and self.rounds < least:
                raise ValueError(f"{name} is about explorers of {least} or more rounds: set rounds to at least {least}, or {name} to 0")
        if self.edge_label_share and not self.edge_labels:
            raise ValueError("edge_label_share asks for labels that no link has: set edge_labels to true, or edge_label_share to 0")
        return self


@dataclass(frozen=True)
class Sentence:
    """A fact before it has a number; `form` is the number of its wording."""

    text: str
    slots: dict[str, str]
    form: int = 0


@dataclass(frozen=True)
class MapNarration:
    """A map, its facts in order, and what questions about it must know.

    `forms`: the wording of each fact. `new_names`: whether no training saw the walkers' names. `links`: the id of the fact of a link (a
    pair of places), `edge_labels` its label, `crossings` the ids of the facts of its ends and its label. Of an explored map also `labels`,
    what each place goes by, `visits`, the id of the last fact of a place's sides (one that names it, if the last round has one), `first`,
    the map in the first round, and `changed`, the links that closed or opened since.
    """

    map: Map
    facts: tuple[Fact, ...]
    links: dict[Link, str]
    forms: dict[str, int] = field(default_factory=dict)
    new_names: bool = False
    edge_labels: dict[Link, str] = field(default_factory=dict)
    crossings: dict[Link, tuple[str, ...]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    visits: dict[str, str] = field(default_factory=dict)
    first: Map | None = None
    changed: frozenset[Link] = frozenset()

    def having(self, slot: str) -> list[Fact]:
        """The facts that have this slot."""
        return [fact for fact in self.facts if slot in fact.slots]

    @cached_property
    def shared_labels(self) -> frozenset[str]:
        """The labels that several places go by."""
        return frozenset(label for label, count in Counter(self.labels.values()).items() if count > 1)

    def shares_label(self, place: str) -> bool:
        """Whether another place goes by the same label."""
        return self.label(place) in self.shared_labels

    def label(self, place: str) -> str:
        """What a place goes by: its name, but where it is explored perhaps that of another one."""
        return self.labels.get(place, place)


def narrate_map(random: Random, settings: SpatialSettings, spec: WorldSpec, drawn: Map, bars: list[tuple[str, str]]) -> MapNarration | None:
    """All facts of a world: first the map and what belongs to it, in any order, then the walkers' steps. None where words run out."""
    edge_labels = draw_edge_labels(random, drawn) if settings.edge_labels else {}
    map_sentences = [*link_sentences(random, drawn, edge_labels), *obstacle_sentences(random, bars, spec.split)]
    map_sentences += object_sentences(random, drawn, settings.n_objects, spec.split)
    map_sentences += procedure_sentences(random, drawn, settings, spec.split)
    random.shuffle(map_sentences)
    new = spec.split != "train" and random.random() < settings.new_names
    walks = walk_sentences(random, drawn, settings, spec.split, lexicon.names(held_out=new)) if drawn.is_grid else []
    if walks is None:
        return None
    sentences = map_sentences + walks
    facts = tuple(
        spec.fact(number, sentence.text, sentence.slots, context_key="the map" if number < len(map_sentences) else "the walks")
        for number, sentence in enumerate(sentences)
    )
    forms = {fact.id: sentence.form for fact, sentence in zip(facts, sentences, strict=True)}
    a, b = ("from", "to") if drawn.is_grid else ("a", "b")
    links = {frozenset((fact.slots[a], fact.slots[b])): fact.id for fact in facts if a in fact.slots and b in fact.slots}
    return MapNarration(drawn, facts, links, forms, new and bool(walks), edge_labels, {link: (fact,) for link, fact in links.items()})


def draw_edge_labels(random: Random, drawn: Map) -> dict[Link, str]:
    """A label for each link; links that meet at a place have different ones."""
    edge_labels: dict[Link, str] = {}
    for a, near in drawn.steps.items():
        for b in (place for place in near.values() if a < place):
            used = {label for link, label in edge_labels.items() if link & {a, b}}
            edge_labels[frozenset((a, b))] = random.choice([label for label in words.EDGE_LABELS if label not in used])
    return edge_labels


def link_sentences(random: Random, drawn: Map, edge_labels: Mapping[Link, str]) -> Iterator[Sentence]:
    """Every link once, seen from one of its ends."""
    for a, near in drawn.steps.items():
        for word, b in near.items():
            if a < b:
                back = next(step for step, place in drawn.steps[b].items() if place == a)
                ends = (a, word, b) if random.random() < 0.5 else (b, back, a)
                start, word, end = ends
                slots = {"from": start, "direction": word, "to": end} if drawn.is_grid else {"a": start, "b": end}
                label = edge_labels.get(frozenset((a, b)))
                slots |= {"by": label} if label else {}
                form = random.choice(words.FORMS[("grid" if drawn.is_grid else "graph") + ("_way" if label else "")])
                yield Sentence(form.format(**slots, origin=start, way=label and words.edge_phrase(label)), slots)


def obstacle_sentences(random: Random, bars: list[tuple[str, str]], split: Split) -> Iterator[Sentence]:
    """The obstacles for which the split has a word."""
    for origin, direction in bars:
        fits = [word for word in words.OBSTACLES if belongs(f"{word}|{direction}|{origin}", split)]
        if fits:
            obstacle = random.choice(fits)
            text = random.choice(words.FORMS["obstacle"]).format(origin=origin, direction=direction, obstacle=obstacle)
            yield Sentence(text, {"from": origin, "direction": direction, "obstacle": obstacle})


def object_sentences(random: Random, drawn: Map, count: int, split: Split) -> Iterator[Sentence]:
    """Different objects at different places, one each."""
    used: set[str] = set()
    for place in random.sample(drawn.places, min(count, len(drawn.places))):
        fits = [obj for obj in words.OBJECTS if obj not in used and belongs(f"{obj}|{place}", split)]
        obj = random.choice(fits)
        used.add(obj)
        form = random.randrange(len(words.FORMS["recall"]))
        text = words.FORMS["recall"][form].format(place=place, object=lexicon.article(obj))
        yield Sentence(text, {"place": place, "object": obj}, form)


def busy_places(drawn: Map) -> list[str]:
    """The places with the most exits: about half of all."""
    ranked = sorted(drawn.places, key=lambda place: -len(drawn.steps[place]))
    least = len(drawn.steps[ranked[(len(ranked) - 1) // 2]])
    return [place for place in ranked if len(drawn.steps[place]) >= least]


def procedure_sentences(random: Random, drawn: Map, settings: SpatialSettings, split: Split) -> Iterator[Sentence]:
    """Named walks of several steps, each in one sentence."""
    names = random.sample(words.PROCEDURES, len(words.PROCEDURES))
    for _ in range(settings.n_procedures):
        origin = random.choice(busy_places(drawn))
        name = next((name for name in names if belongs(f"{name}|{origin}", split)), None)
        if name is None:
            continue
        names.remove(name)
        length = random.randint(settings.min_procedure, max(settings.min_procedure, settings.max_procedure))
        steps = ", ".join(drawn.stroll(random, origin, length))
        form = random.randrange(len(words.FORMS["procedure"]))
        text = words.FORMS["procedure"][form].format(name=name, origin=origin, steps=steps)
        yield Sentence(text, {"name": name, "from": origin, "steps": steps}, form)


def walk_sentences(random: Random, drawn: Map, settings: SpatialSettings, split: Split, names: tuple[str, ...]) -> list[Sentence] | None:
    """Where each walker starts and each step, the walkers' steps interleaved; no walk ends where it began."""
    walks: dict[str, list[Sentence]] = {}
    while len(walks) < settings.n_walkers:
        origin = random.choice(busy_places(drawn))
        who = random.choice(names)
        if who in walks or not belongs(f"{who}|{origin}", split):
            continue
        steps = drawn.stroll(random, origin, settings.trajectory_steps)
        passed = drawn.walk(origin, steps)
        moves = []
        for direction in steps:
            if fits := [verb for verb in words.VERBS if belongs(f"{who}|{verb}|{direction}", split)]:
                moves.append(Sentence(f"{who} {random.choice(fits)} {direction}.", {"who": who, "direction": direction}))
        if passed is None or passed[-1] == origin or len(moves) < len(steps):
            return None
        start = Sentence(random.choice(words.FORMS["start"]).format(who=who, origin=origin), {"who": who, "from": origin})
        walks[who] = [start, *moves]
    return interleaved(random, list(walks.values()))
