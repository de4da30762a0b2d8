"""The spatial suite: a map in sentences; routes, procedures, objects at places, and where a walker ends up.

    taught   The well is north of the mill. The barn lies east of the well. The milk round goes from the mill: north, east, south, west.
    asked    Which directions lead from the mill to the barn?     gold: north, east

A world is a grid with obstacles or a graph of paths. Sentences describe it, or an explorer reports its observations on a walk
(`explore.py`), not all of them true; `mapper.py` is a reader that makes the best of these. Questions name labelled places, never
coordinates. Paths are scored by walking them on the true map. No fact is shared between splits: a link, an object at a place, a procedure,
a walker's start, each kind of step and each step of an explorer belong to a split by the hash of their words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from random import Random

from hippo_core.errors import LabError
from hippo_core.spoken import MOVES
from hippo_core.suites import lexicon
from hippo_core.suites.reworded import files_of, generator, sentence, wordings
from hippo_core.suites.spatial import words as words
from hippo_core.suites.spatial.altering import with_counterfactual_answers
from hippo_core.suites.spatial.explore import explore, word_visit
from hippo_core.suites.spatial.facts import MapNarration, SpatialSettings, narrate_map
from hippo_core.suites.spatial.map import Map, build_walls, draw_graph, draw_grid, name_places
from hippo_core.suites.spatial.path import localisation_error, score_path
from hippo_core.suites.spatial.questions import draw_items
from hippo_core.suites.spatial.unanswerable import hide, is_answerable
from hippo_core.suites.splits import attempts, belongs
from hippo_core.suites.types import Fact, Split, Suite, World, WorldSpec

ATTEMPTS = 500  # draws of a world before its settings count as impossible
# Dead ends of each try to label a map before it is drawn anew: the first tries are quick, the last ones thorough.
NAMINGS = (*[0] * 20, *[500] * 20)


# The kind of a fact, by the first of these slots that it has; the kind of a link with a label ends in "_way".
KINDS = {"steps": "procedure", "obstacle": "obstacle", "object": "thing", "to": "grid", "a": "graph", "from": "start", "who": "step"}


@cache
def allowed_labels(split: Split) -> tuple[frozenset[int], ...]:
    """For each label the numbers of the labels that it may be linked with in this split."""

    def linkable(a: str, b: str) -> bool:
        return a != b and belongs("|".join(sorted((a, b))), split)

    return tuple(frozenset(i for i, b in enumerate(words.PLACES) if linkable(a, b)) for a in words.PLACES)


def draw_map(random: Random, settings: SpatialSettings, split: Split, is_grid: bool) -> tuple[Map, list[tuple[str, str]]] | None:
    """A named map and the (place, direction) pairs that an obstacle bars; None where this draw fails."""
    if is_grid:
        links, bars = draw_grid(random, settings.grid_size, settings.obstacles)
    else:
        links, bars = draw_graph(random, settings.graph_places, settings.graph_extra), []
    if is_grid and settings.walls:
        build_walls(random, links, settings.walls)
    if sum(len(near) == 1 for near in links.values()) < settings.dead_ends:
        return None
    for dead_ends in NAMINGS:
        drawn = name_places(random, links, words.PLACES, allowed_labels(split), is_grid, dead_ends)
        if drawn:
            name = dict(zip(links, drawn.steps, strict=True))
            return drawn, [(name[node], direction) for node, direction in bars]
    return None


def make_world(random: Random, settings: SpatialSettings, spec: WorldSpec) -> World:
    """One world, drawn again until it carries its questions."""
    is_grid = random.random() >= settings.graph_share
    for _ in range(ATTEMPTS):
        drawn = draw_map(random, settings, spec.split, is_grid)
        narration = None
        if drawn:  # by an explorer on its walk, or in sentences with what happens on the map
            narration = explore(random, settings, spec, drawn[0]) if settings.rounds else narrate_map(random, settings, spec, *drawn)
        items = draw_items(random, settings, spec, narration) if narration else None
        if narration and items:
            gold = {fact for item in items for fact in item.gold_facts}
            facts = reword(narration.facts, settings, spec) if settings.wording == "reworded" else narration.facts
            return World(spec.id, tuple(replace(fact, asked=fact.id in gold) for fact in facts), items)
    raise LabError(
        f"spatial: {ATTEMPTS} draws gave no world that carries {settings.n_items} questions under these settings; "
        "lower n_items, n_competitors, dead_ends or obstacles, or enlarge the map"
    )


def reword(facts: Sequence[Fact], settings: SpatialSettings, spec: WorldSpec) -> tuple[Fact, ...]:
    """The facts of a world in other words, made from their slots. Facts that several splits may have get a text that belongs to this one.
    An explorer marks all steps in one style ("Move 3:", "(3)", "Next,"), and reports sights before or after open sides."""
    random = generator(spec)
    marker, sights_first = random.choice(wordings("spatial")["marker"]), random.random() < 0.5
    reworded = []
    for fact in facts:
        by_wording = "step" in fact.slots or {"who", "direction"} <= fact.slots.keys()  # its words decide its split, not its content
        for _ in attempts(settings, "other wording"):
            text = render_visit(random, fact.slots, marker, sights_first) if "step" in fact.slots else render(random, fact.slots)
            if not by_wording or belongs(text, spec.split):
                break
        reworded.append(replace(fact, text=text))
    return tuple(reworded)


def render(random: Random, slots: Mapping[str, str]) -> str:
    """A statement of a map or of a walker, from its slots."""
    known = wordings("spatial")
    kind = next(kind for slot, kind in KINDS.items() if slot in slots) + ("_way" if "by" in slots else "")
    more = {"origin": slots.get("from", ""), "verb": random.choice(known["verb"])}
    more |= {"object": lexicon.article(slots["object"])} if "object" in slots else {}
    more |= {"way": words.edge_phrase(slots["by"])} if "by" in slots else {}
    return sentence(random.choice(known[kind]).format(**{**slots, **more}))


def render_visit(random: Random, slots: Mapping[str, str], marker: Sequence[str], sights_first: bool) -> str:
    """A step of an explorer, from its slots; `marker`: how the first one and a later one are marked."""
    seen = [word for word in MOVES if word in slots]
    return word_visit(random, slots, seen, wordings("spatial"), marker[int(slots["step"]) > 1], sights_first)


SPATIAL = Suite(
    "spatial",
    "maps of labelled places: ways, procedures, things at places, walks",
    SpatialSettings,
    make_world,
    primary="success",
    answer_budget=40,
    score_path=score_path,
    localise=localisation_error,
    hide=hide,
    is_answerable=is_answerable,
    reads=files_of("spatial"),
    altered=with_counterfactual_answers,
    order=7,
    asks="ways on a map",
)
