"""A semantic world with other cities: the statements stay the same, and all lead to another city than the true one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from random import Random

from hippo_core.suites import lexicon
from hippo_core.suites.altering import exchanged
from hippo_core.suites.types import World


def with_counterfactual_answers(world: World, others: Sequence[World]) -> World:
    """The world with each city replaced, by one unknown here while there are enough, and the items about cities."""
    old = sorted({fact.slots["city"] for fact in world.facts if "city" in fact.slots})
    items = [item for item in world.items if item.answers[0] in old]
    apart = {(city, item.answers[0]) for item in items for city in (*item.answers, *item.refuted)}
    cities = _exchange(Random(f"altered/{world.id}"), old, apart)
    other = [
        replace(item, answers=(cities[item.answers[0]],), refuted=tuple(cities.get(city, city) for city in item.refuted)) for item in items
    ]
    return replace(world, facts=tuple(exchanged(fact, cities) for fact in world.facts) if cities else world.facts, items=tuple(other))


def _exchange(random: Random, old: Sequence[str], apart: set[tuple[str, str]]) -> Mapping[str, str]:
    """For each city another one, none twice. `apart`: pairs (city, true one) of which the first may not become the second."""
    new = [city for city in lexicon.CITIES if city not in old]
    for _ in count():
        drawn = random.sample(new if len(new) >= len(old) else lexicon.CITIES, len(old))
        pairs = set(zip(old, drawn, strict=True))
        if all(was != now for was, now in pairs) and not pairs & apart:
            return dict(zip(old, drawn, strict=True))
    raise AssertionError("unreachable")
