"""The questions about a map: their kinds, answers and gold facts, and those chosen as items."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, pairwise
from random import Random
from typing import Any, NamedTuple

from hippo_core.spoken import MOVES, NUMBERS
from hippo_core.suites.spatial import words as words
from hippo_core.suites.spatial.facts import MapNarration, SpatialSettings
from hippo_core.suites.spatial.map import write_links
from hippo_core.suites.types import Item, WorldSpec, after_all


class MapCue(NamedTuple):
    """How a question names a place: by its label, and if another place shares that, also by a neighbour."""

    place: str
    label: str
    neighbor: str = ""

    @property
    def spoken(self) -> str:
        return f"{self.label} next to the {self.neighbor}" if self.neighbor else self.label

    @property
    def words(self) -> frozenset[str]:
        return frozenset(filter(None, (self.label, self.neighbor)))

    def slots(self, role: str) -> dict[str, str]:
        return {role: self.label, **({f"{role}_next_to": self.neighbor} if self.neighbor else {})}


class MapWording(NamedTuple):
    """A form of a question: of which kind, its number, its words, and whether no training sees it."""

    kind: str
    number: int
    form: str
    held_out: bool


@dataclass(frozen=True)
class MapQuestions:
    """The questions that a map carries: for each kind its items, in random order and without ids."""

    random: Random
    settings: SpatialSettings
    narration: MapNarration
    training: bool

    @cached_property
    def index_of(self) -> dict[str, int]:
        return {fact.id: number for number, fact in enumerate(self.narration.facts)}

    def of_kind(self, kind: str) -> Iterator[Item]:
        """The questions of a kind."""
        by_kind = {
            "recall": self.recalls,
            "procedure": self.procedures,
            "trajectory": self.trajectories,
            "edge_label": self.edge_labels,
            "neighbor": self.neighbors,
            "exits": self.exits,
        }
        return by_kind[kind]() if kind in by_kind else self.routes(kind)

    def wordings(self, kind: str) -> list[MapWording]:
        """The wordings that this split may ask in, shuffled."""
        known = [MapWording(kind, number, form, False) for number, form in enumerate(words.QUESTIONS[kind])]
        new = [] if self.training else [MapWording(kind, len(known), words.HELD_OUT_QUESTIONS[kind], True)]
        return self.random.sample(known + new, len(known + new))

    def item(
        self, wording: MapWording, spoken: dict[str, str], cue: dict[str, str], answers: Sequence[str], gold: Sequence[str], **about: Any
    ) -> Item:
        """An item; `spoken`: what its wording names. It takes as many hops as it has gold facts, unless `about` says so."""
        marks = {"new_template": wording.held_out, "new_name": self.narration.new_names and "who" in cue}
        slices = (*(mark for mark, applies in marks.items() if applies), *about.pop("slices", ()))
        known = after_all(self.narration.facts, [self.index_of[fact] for fact in gold])
        question = wording.form.format(**spoken)
        values: dict[str, Any] = {"hops": len(gold)} | known | about
        return Item("", "", question, tuple(answers), kind=wording.kind, cue=cue, slices=slices, **values)

    def routes(self, kind: str) -> Iterator[Item]:
        """Shortest routes between two places, or (`step_count`) how many steps they take, one of each pair.

        chance: of a route, as many steps as needed, each drawn at random (on a graph the last one is known); of a number of steps, one of
        those from `min_steps` to `max_steps` that the map has.
        """
        narration, drawn, settings = self.narration, self.narration.map, self.settings
        usual = range(settings.min_steps, settings.max_steps + 1)
        pairs = [(a, b) for a in drawn.places for b, steps in drawn.distances[a].items() if steps in usual]
        for a, b in self.random.sample(pairs, len(pairs)):
            steps = drawn.route(self.random, a, b)
            start, goal = name(narration, a), name(narration, b)
            if not start or not goal or start.words & goal.words:
                continue
            if settings.alternative_routes and not has_detour(narration, a, b, steps):
                continue
            wording = self.wordings(kind)[0]
            if kind == "step_count":
                answers: Sequence[str] = (NUMBERS[len(steps)], str(len(steps)))
                chance = 1 / len({steps for row in drawn.distances.values() for steps in row.values() if steps in usual})
                truth: dict[str, str] = {}
            else:
                answers, truth = [", ".join(steps)], route_truth(narration, a, b)
                guesses = 4 ** len(steps) if drawn.is_grid else len(drawn.places) ** (len(steps) - 1)
                chance = drawn.count_walks(a, b, len(steps)) / guesses
            spoken, cue = {"origin": start.spoken, "goal": goal.spoken}, {**start.slots("from"), **goal.slots("to")}
            gold, slices = link_facts(narration, a, steps), route_slices(narration, a, steps)
            yield self.item(wording, spoken, cue, answers, gold, chance=chance, hops=len(steps), slices=slices, truth=truth)

    def recalls(self) -> Iterator[Item]:
        """What is at a place: first each object once, then again in other words. chance: one of the world's objects."""
        facts = self.narration.having("object")
        self.random.shuffle(facts)
        wordings_of = [self.wordings("recall") for _ in facts]
        for turn in range(len(words.QUESTIONS["recall"])):
            for fact, wordings in zip(facts, wordings_of, strict=True):
                cue, rung = {"place": fact.slots["place"]}, self.rung(fact.id, wordings[turn])
                yield self.item(wordings[turn], cue, cue, [fact.slots["object"]], [fact.id], chance=1 / len(facts), rung=rung)

    def procedures(self) -> Iterator[Item]:
        """The steps of a procedure: the same one again and again in other words, then the next. chance: each step drawn at random."""
        facts = self.narration.having("steps")
        self.random.shuffle(facts)
        choices = 4 if self.narration.map.is_grid else len(self.narration.map.places)
        for fact in facts:
            steps, cue = fact.slots["steps"], {"name": fact.slots["name"], "from": fact.slots["from"]}
            spoken, chance = {"name": cue["name"], "origin": cue["from"]}, 1 / choices ** len(steps.split(", "))
            for wording in self.wordings("procedure"):
                rung = self.rung(fact.id, wording)
                yield self.item(wording, spoken, cue, [steps], [fact.id], chance=chance, rung=rung)

    def rung(self, fact: str, wording: MapWording) -> str:
        """`exact`: the question repeats the words of its fact."""
        return "exact" if wording.number == self.narration.forms[fact] else "paraphrase"

    def trajectories(self) -> Iterator[Item]:
        """Where a walker is after the last step: each walker once, then again in other words. chance: any place but the start."""
        narration = self.narration
        walks: dict[str, list] = {}
        for fact in narration.having("who"):
            walks.setdefault(fact.slots["who"], []).append(fact)
        wordings_of = [self.wordings("trajectory") for _ in walks]
        for turn in range(len(words.QUESTIONS["trajectory"])):
            for (who, walk), wordings in zip(walks.items(), wordings_of, strict=True):
                origin, steps = walk[0].slots["from"], [fact.slots["direction"] for fact in walk[1:]]
                end = (narration.map.walk(origin, steps) or [origin])[-1]
                gold = (*(fact.id for fact in walk), *link_facts(narration, origin, steps))
                spoken, cue = {"who": who, "origin": origin}, {"who": who, "from": origin}
                yield self.item(wordings[turn], spoken, cue, [end], gold, chance=self.any_other_place, hops=len(steps))

    @property
    def any_other_place(self) -> float:
        """The chance of a place that is drawn among all but one."""
        return 1 / (len(self.narration.map.places) - 1)

    def edge_labels(self) -> Iterator[Item]:
        """The label of a link. chance: one of the map's labels."""
        narration = self.narration
        chance = 1 / len(set(narration.edge_labels.values()))
        links = sorted((sorted(link), gold) for link, gold in narration.crossings.items())
        for ends, gold in self.random.sample(links, len(links)):
            start, goal = (name(narration, place) for place in self.random.sample(ends, 2))
            if start and goal and not start.words & goal.words:
                wording, label = self.wordings("edge_label")[0], narration.edge_labels[frozenset(ends)]
                spoken, cue = {"origin": start.spoken, "goal": goal.spoken}, {**start.slots("from"), **goal.slots("to")}
                yield self.item(wording, spoken, cue, [label, words.edge_phrase(label)], gold, chance=chance)

    def neighbors(self) -> Iterator[Item]:
        """The neighbour of a place in a direction. chance: any other place."""
        narration = self.narration
        links = [(place, word, near) for place, steps in narration.map.steps.items() for word, near in steps.items()]
        for place, word, near in self.random.sample(links, len(links)):
            if narration.shares_label(place):
                continue
            wording, gold = self.wordings("neighbor")[0], narration.crossings.get(frozenset((place, near)), ())
            if gold:
                spoken, cue, answers = {"direction": word, "origin": place}, {"from": place, "direction": word}, [narration.label(near)]
                slices = route_slices(narration, place, [word])
                yield self.item(wording, spoken, cue, answers, gold, chance=self.any_other_place, slices=slices)

    def exits(self) -> Iterator[Item]:
        """On which sides a place is open, where these are several; any order will do. chance: any set of two or more directions."""
        narration = self.narration
        for place in self.random.sample(narration.map.places, len(narration.map.places)):
            near = narration.map.steps[place]
            if narration.shares_label(place) or len(near) < 2:
                continue
            wording, answers = self.wordings("exits")[0], words.in_any_order([word for word in MOVES if word in near])
            slices = ["changed"] if any(place in link for link in narration.changed) else []
            gold = [narration.visits[place]]
            yield self.item(wording, {"origin": place}, {"from": place}, answers, gold, chance=1 / 11, slices=slices)


def link_facts(narration: MapNarration, start: str, steps: list[str]) -> tuple[str, ...]:
    """The ids of the facts of a walk's links, in order of walking, each once."""
    passed = narration.map.walk(start, steps) or []
    return tuple(dict.fromkeys(narration.links[frozenset(pair)] for pair in pairwise(passed)))


def route_truth(narration: MapNarration, start: str, goal: str) -> dict[str, str]:
    """What scores a path, where link facts do not: all links, and their labels."""
    if not narration.labels and not narration.edge_labels:
        return {}
    labels = {"ways": write_links(narration.map.labelled(narration.edge_labels))} if narration.edge_labels else {}
    return {"links": write_links(narration.map), "from": start, "to": goal, **labels}


def route_slices(narration: MapNarration, start: str, steps: list[str]) -> tuple[str, ...]:
    """`changed`: the first map lacks the route, or has a shorter one; `alias`: it touches a place with a shared label."""
    passed = narration.map.walk(start, steps) or []
    changed = narration.first is not None and narration.first.distances[start][passed[-1]] != len(steps)
    changed = changed or any(frozenset(pair) in narration.changed for pair in pairwise(passed))
    return (*(("changed",) if changed else ()), *(("alias",) if any(narration.shares_label(place) for place in passed) else ()))


def name(narration: MapNarration, place: str) -> MapCue | None:
    """An unambiguous name for a place; None where neither its label nor a neighbour is enough."""
    label = narration.label(place)
    if not narration.shares_label(place):
        return MapCue(place, label)
    for neighbor in narration.map.steps[place].values():
        if not narration.shares_label(neighbor):
            return MapCue(place, label, neighbor)
    return None


def has_detour(narration: MapNarration, start: str, goal: str, steps: list[str]) -> bool:
    """Whether a second route, without any link of the first, joins the ends."""
    passed = narration.map.walk(start, steps) or []
    rest = narration.map.without({frozenset(pair) for pair in pairwise(passed)})
    return rest.distances[start][goal] < float("inf")


def draw_items(random: Random, settings: SpatialSettings, spec: WorldSpec, narration: MapNarration) -> tuple[Item, ...] | None:
    """The world's questions in a random order; None where the map does not carry as many of a kind as the shares ask for."""
    questions = MapQuestions(random, settings, narration, spec.split == "train")
    items: list[Item] = []
    for kind, count in share_out(random, kind_shares(settings, narration.map.is_grid), settings.n_items).items():
        chosen = list(islice((item for item in questions.of_kind(kind) if competitors(narration, item) >= settings.n_competitors), count))
        if len(chosen) < count:
            return None
        items += chosen
    random.shuffle(items)
    return tuple(replace(item, id=f"{spec.id}.q{number}", world=spec.id) for number, item in enumerate(items))


def competitors(narration: MapNarration, item: Item) -> int:
    """How many facts besides the gold ones share a slot's value with the cue."""
    values = set(item.cue.values())
    return sum(not values.isdisjoint(fact.slots.values()) for fact in narration.facts if fact.id not in item.gold_facts)


def kind_shares(settings: SpatialSettings, is_grid: bool) -> dict[str, float]:
    """The share of each kind of question on this kind of map."""
    trajectory = settings.trajectory_share if is_grid and settings.n_walkers else 0.0
    neighbor = settings.neighbor_share if is_grid else 0.0
    return {
        "grid_path" if is_grid else "graph_path": settings.path_share + settings.neighbor_share - neighbor,
        "recall": settings.recall_share + settings.trajectory_share - trajectory,
        "procedure": settings.procedure_share,
        "trajectory": trajectory,
        "edge_label": settings.edge_label_share,
        "step_count": settings.step_count_share,
        "neighbor": neighbor,
        "exits": settings.exits_share,
    }


def share_out(random: Random, shares: dict[str, float], total: int) -> dict[str, int]:
    """Whole numbers that add up to `total`, each on average (and up to one) its share of it: systematic sampling."""
    scale = total / sum(shares.values())
    mark, reached, counts = random.random(), 0.0, {}
    for name, share in shares.items():
        reached += share * scale
        counts[name] = 0
        while mark < reached - 1e-9 and sum(counts.values()) < total:
            counts[name] += 1
            mark += 1
    return counts
