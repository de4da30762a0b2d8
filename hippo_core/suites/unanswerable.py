"""Worlds without the facts that decide each question: all other facts, the same questions, and "unknown" is right."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hippo_core.errors import LabError
from hippo_core.suites.lookup import cached_by_identity
from hippo_core.suites.types import Fact, Hide, Item, Suite, World

UNKNOWN = "unknown"
UNANSWERABLE = "unanswerable"  # the slice, the setting, and the end of a profile's name


def drawn_as(profile: str) -> str:
    """The profile whose worlds these are without some facts: `explore` of `explore_unanswerable`, `default` of `unanswerable`."""
    return profile.removesuffix(UNANSWERABLE).rstrip("_") or "default"


def unanswerable_world(suite: Suite, world: World) -> World:
    """The world without what decides its questions, the right answer `refuted`. LabError where the suite has no `hide`."""
    if suite.hide is None:
        raise LabError(f"suite {suite.name} does not say which facts decide its questions; leave out unanswerable")
    facts: Sequence[Fact] = world.facts
    for number, item in enumerate(world.items):
        hide = suite.hide(world, item, number)
        facts = [left for fact in facts if (left := hide(fact))]
    ids = {fact.id for fact in facts}
    remaining = cached_by_identity(lambda of: tuple(fact_id for fact_id in of if fact_id in ids))
    return World(world.id, tuple(facts), tuple(_unanswerable(item, remaining(item.window), remaining(item.taught)) for item in world.items))


def _unanswerable(item: Item, window: tuple[str, ...], taught: tuple[str, ...]) -> Item:
    known = {"window": window, "taught": taught, "slices": (*item.slices, UNANSWERABLE), "refuted": item.answers}
    return replace(item, answers=(UNKNOWN,), gold_facts=(), distance=0, chance=0.0, retold={}, truth={}, **known)


def once_right(item: Item) -> str:
    """The right answer, or the one before the facts were left out."""
    return item.refuted[0] if UNANSWERABLE in item.slices else item.answers[0]


def named_by(item: Item, fact: Fact) -> bool:
    """Whether a fact has all slots that a question names, so that it answers it, perhaps with an old value."""
    return bool(item.cue) and all(fact.slots.get(role) == words for role, words in item.cue.items())


def hide_named(world: World, item: Item, number: int) -> Hide:
    """Leave out the gold facts, and all with the slots that a question names."""
    gold = {*item.gold_facts, *item.retold}
    return lambda fact: None if fact.id in gold or named_by(item, fact) else fact


def has_matching_fact(facts: Sequence[Fact], item: Item) -> bool:
    """Whether a fact has all slots that the question names."""
    return any(named_by(item, fact) for fact in facts)


def answerable_items(suite: Suite, world: World) -> Iterator[Item]:
    """The unanswerable items that the world's facts answer after all."""
    for item in world.items:
        taught = set(item.taught)
        if (
            suite.is_answerable
            and UNANSWERABLE in item.slices
            and suite.is_answerable([fact for fact in world.facts if fact.id in taught], item)
        ):
            yield item
