"""Questions about a map: which are worth asking, their answers, the facts that carry these, and how often a guess is right."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from random import Random

from hippo_core.suites.spatial import words as words
from hippo_core.suites.spatial.facts import SpatialSettings, Telling
from hippo_core.suites.types import Item, WorldSpec


@dataclass(frozen=True)
class Draft:
    """A question before it has a number."""

    kind: str
    form: int  # the number of its wording; the last one is held out from training
    held_out: bool
    question: str
    answer: str
    gold: tuple[str, ...]
    cue: dict[str, str]
    hops: int
    chance: float
    rung: str = "exact"


def draw_items(random: Random, settings: SpatialSettings, spec: WorldSpec, telling: Telling) -> tuple[Item, ...] | None:
    """The world's questions in a random order; None where the map does not carry as many of a kind as the shares ask for."""
    drafts: list[Draft] = []
    training = spec.split == "train"
    for kind, count in share_out(random, kind_shares(settings, telling.map.is_grid), settings.n_items).items():
        candidates = CANDIDATES[kind](random, settings, telling, training)
        chosen = list(islice((draft for draft in candidates if competitors(telling, draft) >= settings.n_competitors), count))
        if len(chosen) < count:
            return None
        drafts += chosen
    random.shuffle(drafts)
    return tuple(make_item(spec, telling, draft, number) for number, draft in enumerate(drafts))


def kind_shares(settings: SpatialSettings, is_grid: bool) -> dict[str, float]:
    """The share of each kind of question on this kind of map."""
    walked = settings.trajectory_share if is_grid and settings.n_walkers else 0.0
    recall = settings.recall_share + settings.trajectory_share - walked
    path = "grid_path" if is_grid else "graph_path"
    return {path: settings.path_share, "recall": recall, "procedure": settings.procedure_share, "trajectory": walked}


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


def make_item(spec: WorldSpec, telling: Telling, draft: Draft, number: int) -> Item:
    """The draft as an item. All facts of the world stand before it."""
    taught = tuple(fact.id for fact in telling.facts)
    last = max(taught.index(fact) for fact in draft.gold)
    new_name = telling.new_names and "who" in draft.cue
    return Item(
        id=f"{spec.id}.q{number}",
        world=spec.id,
        question=draft.question,
        answers=(draft.answer,),
        gold_facts=draft.gold,
        kind=draft.kind,
        rung=draft.rung,
        hops=draft.hops,
        distance=len(taught) - 1 - last,
        chance=draft.chance,
        cue=draft.cue,
        window=taught,
        taught=taught,
        slices=(*(("new_template",) if draft.held_out else ()), *(("new_name",) if new_name else ())),
    )


def competitors(telling: Telling, draft: Draft) -> int:
    """How many facts besides the gold ones share a slot's value with the cue."""
    values = set(draft.cue.values())
    return sum(not values.isdisjoint(fact.slots.values()) for fact in telling.facts if fact.id not in draft.gold)


def wordings(random: Random, kind: str, forms: tuple[str, ...], training: bool) -> list[tuple[int, str, bool]]:
    """The (number, wording, held out) that this split may ask in, shuffled."""
    known = [(number, form, False) for number, form in enumerate(forms)]
    new = [] if training else [(len(forms), words.HELD_OUT_QUESTIONS[kind], True)]
    return random.sample(known + new, len(known + new))


def link_facts(telling: Telling, start: str, steps: list[str]) -> tuple[str, ...]:
    """The ids of the facts that tell the links of a walk, in order of walking, each once."""
    ends = ("from", "to") if telling.map.is_grid else ("a", "b")
    fact_of = {frozenset(fact.slots[end] for end in ends): fact.id for fact in telling.having(ends[1]) if ends[0] in fact.slots}
    passed = telling.map.walk(start, steps) or []
    return tuple(dict.fromkeys(fact_of[frozenset(pair)] for pair in pairwise(passed)))


def paths(random: Random, settings: SpatialSettings, telling: Telling, training: bool) -> Iterator[Draft]:
    """Shortest ways between two places. chance: as many steps as needed, each drawn at random (on a graph the last one is known)."""
    drawn = telling.map
    kind = "grid_path" if drawn.is_grid else "graph_path"
    forms = words.GRID_PATH_QUESTIONS if drawn.is_grid else words.GRAPH_PATH_QUESTIONS
    pairs = [(a, b) for a in drawn.places for b, steps in drawn.distances[a].items() if settings.min_steps <= steps <= settings.max_steps]
    for start, goal in random.sample(pairs, len(pairs)):
        steps = drawn.route(random, start, goal)
        gold = link_facts(telling, start, steps)
        if settings.alternative_routes and not has_detour(telling, start, goal, steps):
            continue
        form, wording, held_out = wordings(random, kind, forms, training)[0]
        guesses = 4 ** len(steps) if drawn.is_grid else len(drawn.places) ** (len(steps) - 1)
        chance = drawn.count_walks(start, goal, len(steps)) / guesses
        question = wording.format(origin=start, goal=goal)
        cue = {"from": start, "to": goal}
        yield Draft(kind, form, held_out, question, ", ".join(steps), gold, cue, len(steps), chance)


def has_detour(telling: Telling, start: str, goal: str, steps: list[str]) -> bool:
    """Whether a second route joins the ends that has no link of the first."""
    passed = telling.map.walk(start, steps) or []
    rest = telling.map.without({frozenset(pair) for pair in pairwise(passed)})
    return rest.distances[start][goal] < float("inf")


def recalls(random: Random, settings: SpatialSettings, telling: Telling, training: bool) -> Iterator[Draft]:
    """What is at a place: first each thing once, then again in other words. chance: one of the world's things."""
    things = telling.having("object")
    random.shuffle(things)
    forms_by_thing = [wordings(random, "recall", words.RECALL_QUESTIONS, training) for _ in things]
    for turn in range(len(words.RECALL_QUESTIONS)):
        for fact, forms in zip(things, forms_by_thing, strict=True):
            form, wording, held_out = forms[turn]
            rung = "exact" if form == telling.forms[fact.id] else "paraphrase"
            where = fact.slots["place"]
            question = wording.format(place=where)
            yield Draft("recall", form, held_out, question, fact.slots["object"], (fact.id,), {"place": where}, 1, 1 / len(things), rung)


def procedures(random: Random, settings: SpatialSettings, telling: Telling, training: bool) -> Iterator[Draft]:
    """The steps of a procedure: the same one again and again in other words, then the next. chance: each step drawn at random."""
    facts = telling.having("steps")
    random.shuffle(facts)
    for fact in facts:
        for form, wording, held_out in wordings(random, "procedure", words.PROCEDURE_QUESTIONS, training):
            rung = "exact" if form == telling.forms[fact.id] else "paraphrase"
            name, origin, steps = fact.slots["name"], fact.slots["from"], fact.slots["steps"]
            choices = 4 if telling.map.is_grid else len(telling.map.places)
            chance = 1 / choices ** len(steps.split(", "))
            cue = {"name": name, "from": origin}
            yield Draft("procedure", form, held_out, wording.format(name=name, origin=origin), steps, (fact.id,), cue, 1, chance, rung)


def trajectories(random: Random, settings: SpatialSettings, telling: Telling, training: bool) -> Iterator[Draft]:
    """Where a walker is after the last step: each walker once, then again in other words. chance: any place but the start."""
    walkers = list(dict.fromkeys(fact.slots["who"] for fact in telling.having("who")))
    forms_by_walker = [wordings(random, "trajectory", words.TRAJECTORY_QUESTIONS, training) for _ in walkers]
    for turn in range(len(words.TRAJECTORY_QUESTIONS)):
        for who, forms in zip(walkers, forms_by_walker, strict=True):
            form, wording, held_out = forms[turn]
            walk = [fact for fact in telling.having("who") if fact.slots["who"] == who]
            origin, steps = walk[0].slots["from"], [fact.slots["direction"] for fact in walk[1:]]
            end = (telling.map.walk(origin, steps) or [origin])[-1]
            gold = tuple(fact.id for fact in walk) + link_facts(telling, origin, steps)
            question = wording.format(who=who, origin=origin)
            chance = 1 / (len(telling.map.places) - 1)
            yield Draft("trajectory", form, held_out, question, end, gold, {"who": who, "from": origin}, len(steps), chance)


CANDIDATES: dict[str, Callable[[Random, SpatialSettings, Telling, bool], Iterator[Draft]]] = {
    "grid_path": paths,
    "graph_path": paths,
    "recall": recalls,
    "procedure": procedures,
    "trajectory": trajectories,
}
