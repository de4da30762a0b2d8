"""Another answer in the place of the right one, in every fact that is asked for: what a memory answers then must be what its store says."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from hippo_core.files import LabError
from hippo_core.suites.types import Fact, Item, World


def altered(worlds: Sequence[World]) -> list[World]:
    """The worlds with other facts under the same ids: the gold fact of an item that tells the answer, and what tells it again, say
    something else in its place. That comes from a like fact of another world and stands nowhere in this one, where the language has such
    a word. LabError where no other world has anything to say."""
    return [_altered(world, [other for other in worlds if other.id != world.id]) for world in worlds]


def answering(item: Item, facts: Mapping[str, Fact]) -> tuple[str, str] | None:
    """The id of the one gold fact of an item that holds its answer, and the slot that does; None where none does, or several do."""
    holding = {gold: slot for gold in item.gold_facts for slot, value in facts[gold].slots.items() if value == item.answers[0]}
    return next(iter(holding.items())) if len(holding) == 1 else None


def _altered(world: World, others: Sequence[World]) -> World:
    facts = {fact.id: fact for fact in world.facts}
    for item in world.items:
        if held := answering(item, facts):
            gold, slot = held
            value = _other_value(world, item, facts[gold], slot, others)
            for one in (gold, *(again for again, first in item.retold.items() if first == gold)):
                fact = facts[one]
                facts[one] = replace(fact, text=fact.text.replace(fact.slots[slot], value), slots={**fact.slots, slot: value})
    return replace(world, facts=tuple(facts.values()))


def _other_value(world: World, item: Item, fact: Fact, slot: str, others: Sequence[World]) -> str:
    """One of the values that the slot has in other worlds: of those that this world does not know, that take the same article, and that
    stand in the likest facts."""
    texts, old = " ".join(one.text for one in world.facts), fact.slots[slot]
    likeness: dict[str, tuple[bool, bool, int]] = {}
    for other in (one for there in others for one in there.facts if slot in one.slots):
        value = other.slots[slot]
        if value != old:
            alike = sum(other.slots.get(name) == words for name, words in fact.slots.items() if name != slot)
            fits = (value not in texts, (value[0] in "aeiou") == (old[0] in "aeiou"), alike)
            likeness[value] = max(fits, likeness.get(value, fits))
    if not likeness:
        raise LabError(f"no other world has another {slot} than {old!r} to tell in world {world.id}; give more questions (n)")
    most = max(likeness.values())
    return Random(f"altered/{item.world}/{item.id}").choice(sorted(value for value, alike in likeness.items() if alike == most))
