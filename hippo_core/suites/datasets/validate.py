"""The rules that every suite must keep, and what breaks them: wrong ids, two golds for a question, too few competitors, leaks.

A finding is a broken rule; no findings are the goal.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from hippo_core.suites.lookup import TextLookup, cached_by_identity, positions
from hippo_core.suites.types import Item, Suite, World
from hippo_core.suites.unanswerable import UNANSWERABLE, answerable_items

# Rules that a suite cannot keep, and why.
EXEMPT: dict[str, dict[str, str]] = {
    "twowiki": {"answer hidden": "retrieval alone is judged: the files have no answers"},
    "babi": {
        "one gold": "a question is asked again as the story goes on, with another answer",
        "answer told": "yes, no, maybe and numbers stand in no statement",
        "competitors": "a story has as many as it tells",
        "no shared facts": "most sentences of the public test files occur in the train files; drawn stories share none",
    },
}

GOLDLESS = {UNANSWERABLE, "no_gold"}  # slices of items without gold facts: there are none, or no file names them


@dataclass(frozen=True, slots=True)
class RuleViolation:
    """A broken rule: which one, where, and what is wrong. `item` is empty where it is about a world or a suite."""

    rule: str
    world: str
    item: str
    message: str


class Known:
    """A world's look-up tables for the rules, each made once for all items."""

    def __init__(self, world: World, n_competitors: int) -> None:
        self.n_competitors = n_competitors
        self.facts = {fact.id: fact for fact in world.facts}
        self.positions = cached_by_identity(positions)
        self.unknown = cached_by_identity(lambda ids: [fact for fact in ids if fact not in self.facts])
        self.in_order = cached_by_identity(lambda ids: all(self.facts[a].time <= self.facts[b].time for a, b in pairwise(ids)))

    @cached_property
    def texts(self) -> TextLookup:
        """What the facts say, in small letters."""
        return TextLookup({name: fact.text.lower() for name, fact in self.facts.items()})

    @cached_property
    def by_value(self) -> dict[str, set[str]]:
        """The ids of the facts that have a slot of this value, in small letters."""
        ids_by_value: dict[str, set[str]] = {}
        for name, fact in self.facts.items():
            for value in fact.slots.values():
                ids_by_value.setdefault(value.lower(), set()).add(name)
        return ids_by_value


def rules(worlds: Sequence[World], suite: Suite, n_competitors: int = 3) -> list[RuleViolation]:
    """All rules about the worlds themselves that the suite is not exempt from."""
    exempt = EXEMPT.get(suite.name, {})
    findings = list(unique_ids(worlds))
    for world in worlds:
        known = Known(world, n_competitors)
        findings += one_gold(world)
        for item in world.items:
            for rule, check in ITEM_RULES.items():
                findings += [RuleViolation(rule, world.id, item.id, message) for message in check(item, known)]
        wrong = answerable_items(suite, world)
        findings += [RuleViolation("never told", world.id, item.id, "what was told answers it, though it has no answer") for item in wrong]
    return [finding for finding in findings if finding.rule not in exempt]


def unique_ids(worlds: Sequence[World]) -> Iterator[RuleViolation]:
    """Worlds, facts and items have ids of their own; a fact and an item know their world."""
    seen: dict[tuple[str, str], str] = {}
    for world in worlds:
        named = [("world", world), *(("fact", fact) for fact in world.facts), *(("item", item) for item in world.items)]
        for kind, part in named:
            if (kind, part.id) in seen:
                item, message = part.id if kind == "item" else "", f"a {kind} of world {seen[kind, part.id]} is called {part.id}"
                yield RuleViolation("ids", world.id, item, message)
            seen[kind, part.id] = world.id
            if not isinstance(part, World) and part.world != world.id:
                yield RuleViolation("ids", world.id, part.id, f"{part.id} says that its world is {part.world}")


def one_gold(world: World) -> Iterator[RuleViolation]:
    """The same question has the same answers wherever it is asked in a world."""
    answers: dict[str, tuple[str, ...]] = {}
    for item in world.items:
        first = answers.setdefault(item.question.lower(), item.answers)
        if first != item.answers:
            yield RuleViolation("one gold", world.id, item.id, f"asked before with the answers {first}, now {item.answers}")


def known_facts(item: Item, known: Known) -> Iterator[str]:
    """Gold facts and the window are taught; taught facts exist, in order of time."""
    if not item.gold_facts and not GOLDLESS & set(item.slices):
        yield "it has no gold fact"
    taught = known.positions(item.taught)
    for name in ("gold_facts", "window", "taught"):
        named = getattr(item, name)
        shared = named is item.taught
        strange = known.unknown(named) if shared else [fact for fact in named if fact not in known.facts or fact not in taught]
        if strange:
            yield f"{name} has {', '.join(strange[:3])}, which its world does not have or teach"
        elif name != "gold_facts" and not known.in_order(named):
            yield f"{name} is not in order of telling"


def true_distance(item: Item, known: Known) -> Iterator[str]:
    """The distance counts the facts of the window after the last gold one."""
    window = known.positions(item.window)
    gold_positions = [window[fact] for fact in item.gold_facts if fact in window]
    if gold_positions and item.distance != len(item.window) - 1 - max(gold_positions):
        yield f"its distance is {len(item.window) - 1 - max(gold_positions)}, not {item.distance}"


def answer_stated(item: Item, known: Known) -> Iterator[str]:
    """Where one fact is enough, a gold fact contains the answer."""
    gold = [known.facts[fact].text for fact in item.gold_facts if fact in known.facts]
    if item.hops == 1 and gold and not any(contains_words(text, answer) for text in gold for answer in item.answers):
        yield f"no gold fact holds the answer {item.answers[0]!r}"


def answer_hidden(item: Item, known: Known) -> Iterator[str]:
    """The question does not contain the answer; no answer is empty."""
    if not item.answers or not all(answer.strip() for answer in item.answers):
        yield "it has an empty answer"
    for answer in item.answers:
        if answer.strip() and contains_words(item.question, answer):
            yield f"the question holds the answer {answer!r}"


def no_leak(item: Item, known: Known) -> Iterator[str]:
    """No fact stands in the question."""
    for fact in known.texts.inside(item.question.lower()):
        yield f"the question holds the fact {fact}"


def enough_competitors(item: Item, known: Known) -> Iterator[str]:
    """So many facts besides the gold ones share a slot's value with the cue; not of unanswerable items, since a fact that was left out for
    one may be near to another."""
    sharing = set[str]().union(*(known.by_value.get(value.lower(), ()) for value in item.cue.values()))
    count = len(sharing.difference(item.gold_facts))
    if count < known.n_competitors and UNANSWERABLE not in item.slices:
        yield f"{count} facts besides the gold ones share a slot with the cue {item.cue}, expected {known.n_competitors}"


def contains_words(text: str, words: str) -> bool:
    """Whether the words stand in the text, as whole words, in any case."""
    text, words = text.lower(), words.lower()
    return words in text and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None


ITEM_RULES: dict[str, Callable[[Item, Known], Iterator[str]]] = {
    "known facts": known_facts,
    "distance": true_distance,
    "answer told": answer_stated,
    "answer hidden": answer_hidden,
    "leak": no_leak,
    "competitors": enough_competitors,
}


def shared_facts(suite: Suite, **splits: Iterable[World]) -> list[RuleViolation]:
    """Facts that are in more than one split, by their text: `shared_facts(suite, val=..., test=..., train=...)`."""
    if "no shared facts" in EXEMPT.get(suite.name, {}):
        return []
    first_split: dict[str, str] = {}
    findings = []
    for split, worlds in splits.items():
        for fact in (fact for world in worlds for fact in world.facts):
            first = first_split.setdefault(fact.text, split)
            if first != split:
                findings.append(RuleViolation("no shared facts", fact.world, "", f"{fact.text!r} is told in {first} and in {split}"))
    return findings
