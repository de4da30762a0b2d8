"""The suite `consolidation`: events of many worlds that go into one model, so that no question fits two of them.

    taught   On Friday, Carla sold a guitar at the market.
    asked    Which person traded away a guitar at the bazaar?      gold: Carla

A model that has learnt many worlds has none to open. So each person, and each pair of an action and an object, occurs in one fact of a
data set, and a question names one of the two. Every fact is asked about once. The seed and the world's number choose a world's facts.
"""

from functools import cache
from random import Random
from typing import Annotated

from pydantic import Field

from hippo_core.errors import LabError
from hippo_core.suites import episodic, lexicon, wording
from hippo_core.suites.lexicon import Group, Verb
from hippo_core.suites.splits import attempts, belongs
from hippo_core.suites.types import Settings, Split, Suite, World, WorldSpec
from hippo_core.suites.wording import Event

RUNGS = ("exact", "paraphrase")


class ConsolidationSettings(Settings):
    """A world of the suite; every fact is asked about, so that it has as many questions as facts."""

    n_facts: Annotated[int, Field(ge=1)] = 2
    n_items: Annotated[int, Field(ge=1)] = 2
    n_competitors: int = 0
    rungs: tuple[str, ...] = RUNGS
    held_out: bool = True  # whether questions of val and test worlds may use words and forms that no training saw


@cache
def cast(seed: int, split: Split) -> tuple[tuple[str, ...], tuple[tuple[tuple[Verb, ...], Group], ...]]:
    """The people of a data set's split in the order in which its facts use them, and its pairs of an action and an object."""
    random = Random(f"consolidation/{seed}/{split}")
    people = [name for held_out in (False, True) for name in lexicon.names(held_out)]
    pairs = [(action, obj) for action in lexicon.ACTIONS for obj in lexicon.OBJECTS]
    return tuple(random.sample(people, len(people))), tuple(random.sample(pairs, len(pairs)))


def most_facts(seed: int = 0, split: Split = "test") -> int:
    """How many facts a split can have."""
    people, pairs = cast(seed, split)
    return min(len(people), len(pairs))


def make_world(random: Random, settings: ConsolidationSettings, spec: WorldSpec) -> World:
    """One world. LabError where the data set has more facts than there are people or pairs of an action and an object."""
    if settings.n_items != settings.n_facts:
        raise LabError(f"suite consolidation asks about every fact: give n_items = n_facts, got {settings.n_items} and {settings.n_facts}")
    people, pairs = cast(spec.seed, spec.split)
    first = spec.index * settings.n_facts
    if first + settings.n_facts > min(len(people), len(pairs)):
        raise LabError(f"suite consolidation has {most_facts()} facts that no other resembles; ask for fewer (n)")
    numbers = range(first, first + settings.n_facts)
    events = [_event(random, settings, spec, people[number], pairs[number]) for number in numbers]
    words = [wording.choose_words(random, event) for event in events]
    facts = tuple(spec.fact(number, wording.render_fact(random, own), own.slots(), asked=True) for number, own in enumerate(words))
    training = spec.split == "train" or not settings.held_out
    pools = {"who": people, "what": lexicon.OBJECTS, "where": lexicon.PLACES, "when": lexicon.TIMES}
    items = []
    for number, event in enumerate(events):
        rung = settings.rungs[(first + number) % len(settings.rungs)]
        kind = random.choice(wording.SLOTS)
        cue = ("what", "where") if kind == "who" else tuple(slot for slot in wording.SLOTS if slot != kind)
        question, _, slices = episodic.make_question(random, event, words[number], kind, cue, rung, training=training)
        slots, taught = words[number].slots(), tuple(fact.id for fact in facts)
        about = {"gold_facts": (facts[number].id,), "rung": rung, "chance": 1 / len(pools[kind]), "taught": taught}
        about["cue"] = {slot: slots[slot] for slot in (*cue, "action")}
        about["slices"] = (*slices, "new_name") if lexicon.is_held_out(event.who) else slices
        items.append(spec.item(number, question, slots[kind], kind, **about))
    return World(spec.id, facts, tuple(items))


def _event(random: Random, settings: Settings, spec: WorldSpec, who: str, pair: tuple[tuple[Verb, ...], Group]) -> Event:
    for _ in attempts(settings, "event"):
        event = Event(who, *pair, random.choice(lexicon.PLACES), random.choice(lexicon.TIMES))
        if belongs(event.key, spec.split):
            return event
    raise AssertionError


CONSOLIDATION = Suite(
    "consolidation", "events of many worlds that one model is to learn", ConsolidationSettings, make_world, has_window=False, order=10
)
