"""The spatial suite's statements in other words, made from their slots: maps in sentences, walkers' steps, explorers' reports.

An explorer marks all steps in one style ("Move 3:", "(3)", "3rd leg:", "Next,"), and reports sights before or after open sides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from hippo_core.spoken import MOVES
from hippo_core.suites import lexicon
from hippo_core.suites.reworded import generator, sentence, wordings
from hippo_core.suites.spatial import words as words
from hippo_core.suites.spatial.explore import word_visit
from hippo_core.suites.spatial.facts import SpatialSettings
from hippo_core.suites.splits import attempts, belongs
from hippo_core.suites.types import Fact, WorldSpec

# The kind of a fact, by the first of these slots that it has; the kind of a link with a label ends in "_way".
KINDS = {"steps": "procedure", "obstacle": "obstacle", "object": "thing", "to": "grid", "a": "graph", "from": "start", "who": "step"}


def reword(facts: Sequence[Fact], settings: SpatialSettings, spec: WorldSpec) -> tuple[Fact, ...]:
    """The facts of a world in other words. Facts that several splits may have get a text that belongs to this one."""
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
