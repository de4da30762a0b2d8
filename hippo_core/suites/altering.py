"""The altered store: other contents under the same ids and questions, so that an answer shows whether it came from what was told.

A suite says by `Suite.altered` what another world would be: other cities, another map. All others exchange answers among worlds.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

from hippo_core.errors import LabError
from hippo_core.suites.types import Fact, Item, Suite, World


def with_counterfactual_answers(suite: Suite, worlds: Sequence[World]) -> list[World]:
    """The worlds with other facts under the same ids. Their items are those to which these facts give another answer than the true one;
    their questions are the same, their answers and truth are those of the facts as they are told now. LabError where there is nothing else
    to tell."""
    alter: Callable[[World, Sequence[World]], World] = suite.altered or other_answers
    return [alter(world, [other for other in worlds if other.id != world.id]) for world in worlds]


def exchanged(fact: Fact, words: Mapping[str, str]) -> Fact:
    """The fact with each of these words in the place of the one that it stands for, in its text and its slots."""
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\b")

    def other(text: str) -> str:
        return pattern.sub(lambda word: words[word[0]], text)

    return replace(fact, text=other(fact.text), slots={slot: other(value) for slot, value in fact.slots.items()})


def replaced_value(fact: Fact, slot: str, value: str, was: str = "", now: str = "") -> Fact:
    """The fact with another value of a slot. `was`, `now`: the words that say so in the text, where these are more than the values."""
    was, now = was or fact.slots[slot], now or value
    if was not in fact.text:  # it begins the sentence
        was, now = was[0].upper() + was[1:], now[0].upper() + now[1:]
    return replace(fact, text=fact.text.replace(was, now), slots={**fact.slots, slot: value})


def answering(item: Item, facts: Mapping[str, Fact]) -> tuple[str, str] | None:
    """The id of the one gold fact of an item that holds its answer, and the slot that does; None where none does, or several do."""
    holding = {gold: slot for gold in item.gold_facts for slot, value in facts[gold].slots.items() if value == item.answers[0]}
    return next(iter(holding.items())) if len(holding) == 1 else None


def other_answers(world: World, others: Sequence[World]) -> World:
    """The world with other answers: the gold fact of an item that tells the answer, and what tells it again, say something else in its
    place. That comes from a like fact of another world and stands nowhere in this one, where the language has such a word."""
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
    """A value that the slot has in other worlds, preferably unknown here, of the same article, and from a fact that is alike."""
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
