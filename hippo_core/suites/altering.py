"""The altered store: other contents under the same ids and questions, so that an answer shows whether it came from the store.

`Suite.altered` makes the other world: other cities, another map. Suites without it exchange answers among worlds.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

from hippo_core.errors import LabError
from hippo_core.suites.types import Fact, Item, Suite, World


def with_counterfactual_answers(suite: Suite, worlds: Sequence[World]) -> list[World]:
    """The worlds with other facts under the same ids. They keep the items whose answer changes: the questions are the same, the answers
    and the truth follow the new facts. LabError where there is no other answer."""
    alter: Callable[[World, Sequence[World]], World] = suite.altered or other_answers
    return [alter(world, [other for other in worlds if other.id != world.id]) for world in worlds]


def exchanged(fact: Fact, words: Mapping[str, str]) -> Fact:
    """The fact with words replaced, in its text and its slots. `words`: old word to new one."""
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\b")

    def other(text: str) -> str:
        return pattern.sub(lambda word: words[word[0]], text)

    return replace(fact, text=other(fact.text), slots={slot: other(value) for slot, value in fact.slots.items()})


def replaced_value(fact: Fact, slot: str, value: str, was: str = "", now: str = "") -> Fact:
    """The fact with another value of a slot. `was`, `now`: the words in the text, where they are more than the values."""
    was, now = was or fact.slots[slot], now or value
    if was not in fact.text:  # it begins the sentence
        was, now = was[0].upper() + was[1:], now[0].upper() + now[1:]
    return replace(fact, text=fact.text.replace(was, now), slots={**fact.slots, slot: value})


def answering(item: Item, facts: Mapping[str, Fact]) -> tuple[str, str] | None:
    """The id of the gold fact that holds an item's answer, and its slot; None where no fact does, or several do."""
    holding = {gold: slot for gold in item.gold_facts for slot, value in facts[gold].slots.items() if value == item.answers[0]}
    return next(iter(holding.items())) if len(holding) == 1 else None


def other_answers(world: World, others: Sequence[World]) -> World:
    """The world with other answers. The gold fact that holds an item's answer, and the facts that repeat it, get another value. It comes
    from a similar fact of another world, and stands nowhere in this one if there is such a word."""
    was = {fact.id: fact for fact in world.facts}
    now, items = dict(was), []
    for item in world.items:
        if match := answering(item, was):
            gold, slot = match
            if now[gold].slots[slot] == item.answers[0]:
                value = _other_value(world, item, now[gold], slot, others)
                for fact_id in (gold, *(again for again, first in item.retold.items() if first == gold)):
                    now[fact_id] = replaced_value(now[fact_id], slot, value)
            items.append(replace(item, answers=(now[gold].slots[slot],), refuted=()))
    return replace(world, facts=tuple(now.values()), items=tuple(items))


def _other_value(world: World, item: Item, fact: Fact, slot: str, others: Sequence[World]) -> str:
    """A value of this slot in other worlds: preferably unknown here, with the same article, and from a similar fact."""
    texts, old = " ".join(candidate.text for candidate in world.facts), fact.slots[slot]
    likeness: dict[str, tuple[bool, bool, int]] = {}
    for other in (candidate for there in others for candidate in there.facts if slot in candidate.slots):
        value = other.slots[slot]
        if value != old:
            n_same = sum(other.slots.get(name) == words for name, words in fact.slots.items() if name != slot)
            fits = (value not in texts, (value[0] in "aeiou") == (old[0] in "aeiou"), n_same)
            likeness[value] = max(fits, likeness.get(value, fits))
    if not likeness:
        raise LabError(f"no other world has another {slot} than {old!r} to tell in world {world.id}; give more questions (n)")
    most = max(likeness.values())
    return Random(f"altered/{item.world}/{item.id}").choice(sorted(value for value, score in likeness.items() if score == most))
