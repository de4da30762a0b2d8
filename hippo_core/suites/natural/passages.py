"""What these suites share: passages as facts, perhaps in chunks, and an even share of the questions of each world."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Annotated, Any

from pydantic import Field

from hippo_core.errors import LabError
from hippo_core.suites.types import Fact, Item, ReadSettings, Settings, Split, World

SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(])")
RUNG = "natural"  # of all questions: how people asked


class PassageSettings(ReadSettings):
    """`chunk_words`: how many words of a passage are one fact at most, in whole sentences; 0: all of them."""

    chunk_words: Annotated[int, Field(ge=0)] = 0


def chunks(text: str, words: int) -> list[str]:
    """A text in parts of so many words at most, cut between sentences, or within one that is longer; 0 words: the text as it is."""
    if not words:
        return [text]
    parts: list[list[str]] = [[]]
    for sentence in SENTENCE.split(text):
        spoken = sentence.split()
        for piece in (spoken[start : start + words] for start in range(0, len(spoken), words)):
            if parts[-1] and len(parts[-1]) + len(piece) > words:
                parts.append([])
            parts[-1] += piece
    return [" ".join(part) for part in parts if part]


def facts_of(world: str, passages: Iterable[tuple[str, str, str]], chunk_words: int) -> list[Fact]:
    """Passages (id, title, text) of a world as facts in their order; of a passage in chunks each is a fact `<id>.<number>`."""
    rows = []
    for name, title, text in passages:
        parts = chunks(text, chunk_words)
        names = [name] if len(parts) == 1 else [f"{name}.{number}" for number in range(len(parts))]
        rows += [(part_id, title, part) for part_id, part in zip(names, parts, strict=True)]
    return [Fact(name, world, text, {}, time, context_key=title, provenance="read") for time, (name, title, text) in enumerate(rows)]


def by_passage(facts: Iterable[Fact]) -> dict[str, list[Fact]]:
    """The facts of each passage, by its id `<world>.p<number>`."""
    facts_by_passage: dict[str, list[Fact]] = {}
    for fact in facts:
        facts_by_passage.setdefault(".".join(fact.id.split(".")[:2]), []).append(fact)
    return facts_by_passage


def holding(answer: str, facts: Sequence[Fact]) -> tuple[str, ...]:
    """The ids of the facts that contain an answer word for word, in any case."""
    wanted = re.compile(rf"(?<!\w){re.escape(answer.lower())}(?!\w)")
    return tuple(fact.id for fact in facts if wanted.search(fact.text.lower()))


def some(items: Sequence[Sequence[Item]], n: int | None, what: str, seed: int, split: Split) -> list[list[Item]]:
    """n of all worlds' items (None: all), spread evenly, drawn with the seed, in order. LabError where there are fewer."""
    most = sum(map(len, items))
    if n is None:
        return [list(of_world) for of_world in items]
    if n > most:
        raise LabError(f"{what} has {most:,} {split} questions; {n:,} were asked for: lower n")
    shares = [0] * len(items)
    while sum(shares) < n:
        for number, of_world in enumerate(items):
            shares[number] += sum(shares) < n and shares[number] < len(of_world)
    drawn = []
    for number, (of_world, share) in enumerate(zip(items, shares, strict=True)):
        chosen = sorted(Random(f"{what}/{seed}/{split}/{number}").sample(range(len(of_world)), share))
        drawn.append([of_world[index] for index in chosen])
    return drawn


def single_world(name: str, read: Callable[[Any], tuple[Sequence[Fact], Sequence[Item]]]) -> Callable[..., Iterator[World]]:
    """The `stream` of a suite that is one world, of the test split alone: the facts and the items that `read(settings)` finds."""

    def stream(settings: Settings, split: Split, seed: int, n: int | None) -> Iterator[World]:
        if split == "test":
            facts, items = read(settings)
            yield from asked_worlds([World(name, tuple(facts), tuple(items))], n, name, seed, split)

    return stream


def asked_worlds(worlds: Sequence[World], n: int | None, what: str, seed: int, split: Split) -> Iterator[World]:
    """The worlds with n of all their questions, as `some` draws them; those without any are left out."""
    for world, items in zip(worlds, some([world.items for world in worlds], n, what, seed, split), strict=True):
        if items:
            yield replace(world, facts=asked(world.facts, items), items=tuple(items))


def asked(facts: Sequence[Fact], items: Iterable[Item]) -> tuple[Fact, ...]:
    """The facts, those that one of the items needs marked as asked for."""
    gold = {fact for item in items for fact in item.gold_facts}
    return tuple(replace(fact, asked=True) if fact.id in gold else fact for fact in facts)
