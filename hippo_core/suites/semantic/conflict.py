"""Plain statements that disagree: several people say where a firm is, and nothing in the words of a statement tells who is right.

The rule: **each person's last word counts once, and what most of them hold to at the end is so.** Statements are drawn such that each of
three simpler rules is right about every second time, whatever the others say: to believe the last statement, the first, or the one made
most often. Where people say how sure they are: **what is told most surely is so; of what is told as surely, the rule above decides.** It
makes no difference whether words that were taken back count, no tie is left, and the rule above alone is right about every second time.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from random import Random
from typing import NamedTuple

from hippo_core.files import tables

Pattern = tuple[tuple[int, bool], ...]
Rules = tuple[bool, ...]


class Testimony(NamedTuple):
    """Who said it, which city, and how sure that one said to be, from 0 to 1; None where nothing was said of it."""

    teller: str
    city: str
    confidence: float | None = None


def settled(testimonies: Sequence[Testimony]) -> str | None:
    """The city that most tellers hold to at the end; None where two have as many."""
    return most_common([testimony.city for testimony in last_words(testimonies)])


def last_words(testimonies: Sequence[Testimony]) -> list[Testimony]:
    """The last statement of each person."""
    return list({testimony.teller: testimony for testimony in testimonies}.values())


def most_confident(testimonies: Sequence[Testimony]) -> list[Testimony]:
    """The statements that were told most surely; all where nobody says how sure."""
    most = max(testimony.confidence or 0.0 for testimony in testimonies)
    return [testimony for testimony in testimonies if (testimony.confidence or 0.0) == most]


def settled_by_confidence(testimonies: Sequence[Testimony]) -> str | None:
    """The city that is told most surely, of these as `settled` says; None where words that were taken back make a difference."""
    city = settled(most_confident(testimonies))
    return city if city == settled(most_confident(last_words(testimonies))) else None


def most_common(cities: Sequence[str]) -> str | None:
    """The most frequent of them; None for a tie."""
    first, *others = Counter(cities).most_common(2)
    return None if others and others[0][1] == first[1] else first[0]


def disagree(random: Random, tellers: Sequence[str], true: str, other: str) -> list[Testimony]:
    """Statements in order of which `true` is what holds; a coin says of each simple rule whether it finds that."""
    right = tuple(random.random() < 0.5 for _ in range(3))
    pattern = random.choice(patterns()[right])
    names = random.sample(tellers, max(teller for teller, _ in pattern) + 1)
    return [Testimony(names[teller], true if is_true else other) for teller, is_true in pattern]


def disagree_with_confidence(random: Random, tellers: Sequence[str], true: str, other: str, levels: Sequence[float]) -> list[Testimony]:
    """Statements in order with how sure each is told, of which `true` is what holds; a coin says whether it is also what most hold to."""
    pair = random.sample((true, other), 2)
    while True:
        testimonies = [testimony._replace(confidence=random.choice(levels)) for testimony in disagree(random, tellers, *pair)]
        if settled_by_confidence(testimonies) == true:
            return testimonies


@cache
def patterns() -> dict[Rules, list[Pattern]]:
    """Who (by number) says what holds, and who does not, by which of the simple rules find it: the last, the first, the most."""
    return {
        tuple(verdict == "yes" for verdict in right.split()): [
            tuple((ord(letter.lower()) - ord("a"), letter.isupper()) for letter in word) for word in words.split()
        ]
        for right, words in tables(__file__).items()
    }
