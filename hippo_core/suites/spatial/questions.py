"""The questions about a map: their kinds, answers and gold facts, and those chosen as items."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice, pairwise
from random import Random

from hippo_core.spoken import MOVES, NUMBERS
from hippo_core.suites.spatial import words as words
from hippo_core.suites.spatial.facts import MapNarration, SpatialSettings
from hippo_core.suites.spatial.map import Map, write_links
from hippo_core.suites.types import Item, WorldSpec, after_all


@dataclass(frozen=True)
class MapCue:
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


@dataclass(frozen=True)
class MapQuestionDraft:
    """A question before it has a number."""

    kind: str
    held_out: bool  # whether no training sees its wording
    question: str
    answer: str
    gold: tuple[str, ...]
    cue: dict[str, str]
    hops: int
    chance: float
    rung: str = "exact"
    more_answers: tuple[str, ...] = ()
    truth: dict[str, str] = field(default_factory=dict)
    slices: tuple[str, ...] = ()


def wordings(random: Random, kind: str, training: bool) -> list[tuple[int, str, bool]]:
    """The (number, wording, held out) that this split may ask in, shuffled."""
    known = [(number, form, False) for number, form in enumerate(words.QUESTIONS[kind])]
    new = [] if training else [(len(known), words.HELD_OUT_QUESTIONS[kind], True)]
    return random.sample(known + new, len(known + new))


def link_facts(narration: MapNarration, start: str, steps: list[str]) -> tuple[str, ...]:
    """The ids of the facts of a walk's links, in order of walking, each once."""
    passed = narration.map.walk(start, steps) or []
    return tuple(dict.fromkeys(narration.links[frozenset(pair)] for pair in pairwise(passed)))


def routes(random: Random, settings: SpatialSettings, narration: MapNarration) -> Iterator[tuple[MapCue, MapCue, list[str]]]:
    """Two places that a question can name, in any order, and the steps of a shortest route between them."""
    drawn = narration.map
    pairs = [(a, b) for a in drawn.places for b, steps in drawn.distances[a].items() if settings.min_steps <= steps <= settings.max_steps]
    for start, goal in random.sample(pairs, len(pairs)):
        steps = drawn.route(random, start, goal)
        origin, end = name(narration, start), name(narration, goal)
        if not origin or not end or origin.words & end.words:
            continue
        if not settings.alternative_routes or has_detour(narration, start, goal, steps):
            yield origin, end, steps


def paths(random: Random, settings: SpatialSettings, narration: MapNarration, training: bool) -> Iterator[MapQuestionDraft]:
    """Shortest routes between two places. chance: as many steps as needed, each drawn at random (on a graph the last one is known)."""
    drawn = narration.map
    kind = "grid_path" if drawn.is_grid else "graph_path"
    for start, goal, steps in routes(random, settings, narration):
        _, wording, held_out = wordings(random, kind, training)[0]
        guesses = 4 ** len(steps) if drawn.is_grid else len(drawn.places) ** (len(steps) - 1)
        chance = drawn.count_walks(start.place, goal.place, len(steps)) / guesses
        yield MapQuestionDraft(
            kind,
            held_out,
            wording.format(origin=start.spoken, goal=goal.spoken),
            ", ".join(steps),
            link_facts(narration, start.place, steps),
            {**start.slots("from"), **goal.slots("to")},
            len(steps),
            chance,
            truth=truth(narration, start.place, goal.place),
            slices=route_slices(narration, start.place, steps),
        )


def truth(narration: MapNarration, start: str, goal: str) -> dict[str, str]:
    """What scores a path, where link facts do not: all links, and their labels."""
    if not narration.labels and not narration.edge_labels:
        return {}
    fields = {"links": write_links(narration.map), "from": start, "to": goal}
    if narration.edge_labels:
        steps = {a: {narration.edge_labels[frozenset((a, b))]: b for b in near.values()} for a, near in narration.map.steps.items()}
        fields["ways"] = write_links(Map(steps, is_grid=False))
    return fields


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


def recalls(random: Random, settings: SpatialSettings, narration: MapNarration, training: bool) -> Iterator[MapQuestionDraft]:
    """What is at a place: first each object once, then again in other words. chance: one of the world's objects."""
    object_facts = narration.having("object")
    random.shuffle(object_facts)
    forms_by_object = [wordings(random, "recall", training) for _ in object_facts]
    for turn in range(len(words.QUESTIONS["recall"])):
        for fact, forms in zip(object_facts, forms_by_object, strict=True):
            form, wording, held_out = forms[turn]
            rung = "exact" if form == narration.forms[fact.id] else "paraphrase"
            where = fact.slots["place"]
            question = wording.format(place=where)
            chance, answer = 1 / len(object_facts), fact.slots["object"]
            yield MapQuestionDraft("recall", held_out, question, answer, (fact.id,), {"place": where}, 1, chance, rung)


def procedures(random: Random, settings: SpatialSettings, narration: MapNarration, training: bool) -> Iterator[MapQuestionDraft]:
    """The steps of a procedure: the same one again and again in other words, then the next. chance: each step drawn at random."""
    facts = narration.having("steps")
    random.shuffle(facts)
    for fact in facts:
        for form, wording, held_out in wordings(random, "procedure", training):
            rung = "exact" if form == narration.forms[fact.id] else "paraphrase"
            name, origin, steps = fact.slots["name"], fact.slots["from"], fact.slots["steps"]
            choices = 4 if narration.map.is_grid else len(narration.map.places)
            chance = 1 / choices ** len(steps.split(", "))
            question, cue = wording.format(name=name, origin=origin), {"name": name, "from": origin}
            yield MapQuestionDraft("procedure", held_out, question, steps, (fact.id,), cue, 1, chance, rung)


def trajectories(random: Random, settings: SpatialSettings, narration: MapNarration, training: bool) -> Iterator[MapQuestionDraft]:
    """Where a walker is after the last step: each walker once, then again in other words. chance: any place but the start."""
    walkers = list(dict.fromkeys(fact.slots["who"] for fact in narration.having("who")))
    forms_by_walker = [wordings(random, "trajectory", training) for _ in walkers]
    for turn in range(len(words.QUESTIONS["trajectory"])):
        for who, forms in zip(walkers, forms_by_walker, strict=True):
            _, wording, held_out = forms[turn]
            walk = [fact for fact in narration.having("who") if fact.slots["who"] == who]
            origin, steps = walk[0].slots["from"], [fact.slots["direction"] for fact in walk[1:]]
            end = (narration.map.walk(origin, steps) or [origin])[-1]
            gold = tuple(fact.id for fact in walk) + link_facts(narration, origin, steps)
            question = wording.format(who=who, origin=origin)
            chance = 1 / (len(narration.map.places) - 1)
            yield MapQuestionDraft("trajectory", held_out, question, end, gold, {"who": who, "from": origin}, len(steps), chance)


def edge_labels(random: Random, settings: SpatialSettings, narration: MapNarration, training: bool) -> Iterator[MapQuestionDraft]:
    """The label of a link. chance: one of the map's labels."""
    chance = 1 / len(set(narration.edge_labels.values()))
    links = sorted((sorted(link), gold) for link, gold in narration.crossings.items())
    for ends, gold in random.sample(links, len(links)):
        start, goal = (name(narration, place) for place in random.sample(ends, 2))
        if start and goal and not start.words & goal.words:
            _, wording, held_out = wordings(random, "edge_label", training)[0]
            question = wording.format(origin=start.spoken, goal=goal.spoken)
            label, cue = narration.edge_labels[frozenset(ends)], {**start.slots("from"), **goal.slots("to")}
            more = (words.edge_phrase(label),)
            yield MapQuestionDraft("edge_label", held_out, question, label, gold, cue, len(gold), chance, more_answers=more)


def step_counts(random: Random, settings: SpatialSettings, narration: MapNarration, training: bool) -> Iterator[MapQuestionDraft]:
    """How many steps a shortest route takes. chance: one of the numbers from `min_steps` to `max_steps` that the map has."""
    near = {steps for row in narration.map.distances.values() for steps in row.values()}
    chance = 1 / sum(settings.min_steps <= steps <= settings.max_steps for steps in near)
    for start, goal, steps in routes(random, settings, narration):
        _, wording, held_out = wordings(random, "step_count", training)[0]
        question = wording.format(origin=start.spoken, goal=goal.spoken)
        gold, count = link_facts(narration, start.place, steps), len(steps)
        cue, slices = {**start.slots("from"), **goal.slots("to")}, route_slices(narration, start.place, steps)
        answer, digits = NUMBERS[count], (str(count),)
        yield MapQuestionDraft("step_count", held_out, question, answer, gold, cue, count, chance, more_answers=digits, slices=slices)


def neighbors(random: Random, settings: SpatialSettings, narration: MapNarration, training: bool) -> Iterator[MapQuestionDraft]:
    """The neighbour of a place in a direction. chance: any other place."""
    drawn = narration.map
    links = [(place, word, near) for place, steps in drawn.steps.items() for word, near in steps.items()]
    for place, word, near in random.sample(links, len(links)):
        if narration.shares_label(place):
            continue
        _, wording, held_out = wordings(random, "neighbor", training)[0]
        question = wording.format(direction=word, origin=place)
        gold = narration.crossings.get(frozenset((place, near)), ())
        cue = {"from": place, "direction": word}
        slices = route_slices(narration, place, [word])
        if gold:
            answer, chance = narration.label(near), 1 / (len(drawn.places) - 1)
            yield MapQuestionDraft("neighbor", held_out, question, answer, gold, cue, len(gold), chance, slices=slices)


def exits(random: Random, settings: SpatialSettings, narration: MapNarration, training: bool) -> Iterator[MapQuestionDraft]:
    """On which sides a place is open, where these are several; any order will do. chance: any set of two or more directions."""
    for place in random.sample(narration.map.places, len(narration.map.places)):
        near = narration.map.steps[place]
        if narration.shares_label(place) or len(near) < 2:
            continue
        _, wording, held_out = wordings(random, "exits", training)[0]
        answer, *others = words.in_any_order([word for word in MOVES if word in near])
        changed = ("changed",) if any(place in link for link in narration.changed) else ()
        question, gold, more = wording.format(origin=place), (narration.visits[place],), tuple(others)
        cue = {"from": place}
        yield MapQuestionDraft("exits", held_out, question, answer, gold, cue, 1, 1 / 11, more_answers=more, slices=changed)


CANDIDATES: dict[str, Callable[[Random, SpatialSettings, MapNarration, bool], Iterator[MapQuestionDraft]]] = {
    "grid_path": paths,
    "graph_path": paths,
    "recall": recalls,
    "procedure": procedures,
    "trajectory": trajectories,
    "edge_label": edge_labels,
    "step_count": step_counts,
    "neighbor": neighbors,
    "exits": exits,
}


def draw_items(random: Random, settings: SpatialSettings, spec: WorldSpec, narration: MapNarration) -> tuple[Item, ...] | None:
    """The world's questions in a random order; None where the map does not carry as many of a kind as the shares ask for."""
    drafts: list[MapQuestionDraft] = []
    training = spec.split == "train"
    for kind, count in share_out(random, kind_shares(settings, narration.map.is_grid), settings.n_items).items():
        candidates = CANDIDATES[kind](random, settings, narration, training)
        chosen = list(islice((draft for draft in candidates if competitors(narration, draft) >= settings.n_competitors), count))
        if len(chosen) < count:
            return None
        drafts += chosen
    random.shuffle(drafts)
    return tuple(make_item(spec, narration, draft, number) for number, draft in enumerate(drafts))


def kind_shares(settings: SpatialSettings, is_grid: bool) -> dict[str, float]:
    """The share of each kind of question on this kind of map."""
    trajectory = settings.trajectory_share if is_grid and settings.n_walkers else 0.0
    recall = settings.recall_share + settings.trajectory_share - trajectory
    path = "grid_path" if is_grid else "graph_path"
    neighbor = settings.neighbor_share if is_grid else 0.0
    return {
        path: settings.path_share + settings.neighbor_share - neighbor,
        "recall": recall,
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


def make_item(spec: WorldSpec, narration: MapNarration, draft: MapQuestionDraft, number: int) -> Item:
    """The draft as an item. All facts of the world stand before it."""
    index_of = {fact.id: number for number, fact in enumerate(narration.facts)}
    new_name = narration.new_names and "who" in draft.cue
    return Item(
        id=f"{spec.id}.q{number}",
        world=spec.id,
        question=draft.question,
        answers=(draft.answer, *draft.more_answers),
        kind=draft.kind,
        rung=draft.rung,
        hops=draft.hops,
        chance=draft.chance,
        cue=draft.cue,
        **after_all(narration.facts, [index_of[fact] for fact in draft.gold]),
        slices=(*(("new_template",) if draft.held_out else ()), *(("new_name",) if new_name else ()), *draft.slices),
        truth=draft.truth,
    )


def competitors(narration: MapNarration, draft: MapQuestionDraft) -> int:
    """How many facts besides the gold ones share a slot's value with the cue."""
    values = set(draft.cue.values())
    return sum(not values.isdisjoint(fact.slots.values()) for fact in narration.facts if fact.id not in draft.gold)
