"""Lessons in the words of the bank of relations: chains of facts, witnesses, updates and denials, as the suite `relations` draws them.

No relation, name or wording of the suite's validation or test worlds stands in a lesson for training.
"""

from random import Random

from hippo_core.suites.relations import RelationsSettings, is_answerable, make_world
from hippo_core.suites.types import Fact, Item, Split, World, WorldSpec
from hippo_core.training.lessons import UNKNOWN, Branch, Lesson

SETTLED, MISSING = 0.5, 0.15  # share of the lessons: with what decides alone, as a memory shows it; with a link left out
N_QUESTIONS = 6


def lesson(random: Random, n_facts: int, split: Split) -> Lesson:
    """Questions of one to three hops, of what is so now and was so before, and of what is disputed, among some `n_facts` statements."""
    world = make_world(random, _settings(random), WorldSpec(split, 0, random.randrange(30)))
    settled = random.random() < SETTLED
    needed = {item.id: _needed(world, item, settled) for item in world.items}
    chosen: list[Item] = []
    kept: set[str] = set()
    for item in random.sample(world.items, len(world.items)):
        if not chosen or len(kept | needed[item.id]) <= n_facts:
            chosen.append(item)
            kept |= needed[item.id]
    touched = {_edge(fact) for fact in world.facts if fact.id in kept}
    others = [fact.id for fact in world.facts if _edge(fact) not in touched]
    kept |= set(random.sample(others, max(0, min(len(others), n_facts - len(kept)))))
    if random.random() < MISSING:
        removed = random.choice(random.choice(chosen).gold_facts)
        [edge] = {_edge(fact) for fact in world.facts if fact.id == removed}
        kept -= {fact.id for fact in world.facts if _edge(fact) == edge}
    facts = [fact for fact in world.facts if fact.id in kept]
    number = {fact.id: index for index, fact in enumerate(facts)}
    branches = []
    for item in chosen:
        if needed[item.id] <= kept:
            others = sorted(number[source] for source in needed[item.id] - set(item.gold_facts))
            gold = (*others, *(number[source] for source in item.gold_facts))
            branches.append(Branch(item.question, item.answers[0], gold, True, item.kind))
        elif not is_answerable(facts, item):
            branches.append(Branch(item.question, UNKNOWN, (), False, UNKNOWN))
    texts = tuple((fact.text, (fact.slots["head"], fact.slots["tail"])) for fact in facts)
    return Lesson(texts, tuple(branches), ordered=len({_edge(fact) for fact in facts}) < len(facts))


def _settings(random: Random) -> RelationsSettings:
    return RelationsSettings(
        n_facts=random.randint(10, 16),
        n_relations=random.randint(4, 6),
        n_items=N_QUESTIONS,
        hops=random.choice(((1, 2, 3), (2, 3, 3))),
        about=("chain", "disputed", "chain", "now", "chain", "before"),
        testimony=random.choice((0.0, 0.3, 0.5)),
    )


def _edge(fact: Fact) -> tuple[str, str]:
    """What a statement is about."""
    return fact.slots["head"], fact.slots["relation"]


def _needed(world: World, item: Item, settled: bool) -> set[str]:
    """The statements that a question needs: all about its steps, or, where it is `settled`, those that decide them."""
    gold = set(item.gold_facts)
    if settled and item.kind not in ("now", "before"):
        return gold
    edges = {_edge(fact) for fact in world.facts if fact.id in gold}
    return {fact.id for fact in world.facts if _edge(fact) in edges}
