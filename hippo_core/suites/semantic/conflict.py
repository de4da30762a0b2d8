"""Plain statements that disagree: several people say where a firm is, and the words do not show who is right.

The rule: **each person's last statement counts once, and the majority of these is true.** Statements are drawn so that each of three
simpler rules is right about every second time, whatever the others say: to believe the last statement, the first, or the most frequent
one. Where people state their confidence: **the most confident statement is true; among equals the rule above decides.** It makes no
difference whether corrected statements count, there is no tie, and the rule above alone is right about every second time.
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
    """Who stated it, which city, and the stated confidence, from 0 to 1; None without one."""

    teller: str
    city: str
    confidence: float | None = None


def settled(testimonies: Sequence[Testimony]) -> str | None:
    """The majority of the tellers' last statements; None for a tie."""
    return most_common([testimony.city for testimony in last_words(testimonies)])


def last_words(testimonies: Sequence[Testimony]) -> list[Testimony]:
    """The last statement of each person."""
    return list({testimony.teller: testimony for testimony in testimonies}.values())


def most_confident(testimonies: Sequence[Testimony]) -> list[Testimony]:
    """The statements of highest confidence; all where nobody states one."""
    most = max(testimony.confidence or 0.0 for testimony in testimonies)
    return [testimony for testimony in testimonies if (testimony.confidence or 0.0) == most]


def deciding(testimonies: Sequence[Testimony], true: str) -> int:
    """The index of the statement that decides: the latest true one, a most confident one if there is one, of these a last statement."""
    confident, last = most_confident(testimonies), last_words(testimonies)
    right = [index for index, testimony in enumerate(testimonies) if testimony.city == true]
    return max(right, key=lambda index: (testimonies[index] in confident, testimonies[index] in last, index))


def settled_by_confidence(testimonies: Sequence[Testimony]) -> str | None:
    """The most confident city, among equals the `settled` one; None where corrected statements make a difference."""
    city = settled(most_confident(testimonies))
    return city if city == settled(most_confident(last_words(testimonies))) else None


def most_common(cities: Sequence[str]) -> str | None:
    """The most frequent of them; None for a tie."""
    first, *others = Counter(cities).most_common(2)
    return None if others and others[0][1] == first[1] else first[0]


def disagree(random: Random, tellers: Sequence[str], true: str, other: str) -> list[Testimony]:
    """Statements in order, with the truth `true`; a coin decides for each simple rule whether it finds it."""
    right = tuple(random.random() < 0.5 for _ in range(3))
    pattern = random.choice(patterns()[right])
    names = random.sample(tellers, max(teller for teller, _ in pattern) + 1)
    return [Testimony(names[teller], true if is_true else other) for teller, is_true in pattern]


def disagree_with_confidence(random: Random, tellers: Sequence[str], true: str, other: str, levels: Sequence[float]) -> list[Testimony]:
    """Statements in order with confidences, with the truth `true`; a coin decides whether that is also the majority's."""
    pair = random.sample((true, other), 2)
    while True:
        testimonies = [testimony._replace(confidence=random.choice(levels)) for testimony in disagree(random, tellers, *pair)]
        if settled_by_confidence(testimonies) == true:
            return testimonies


@cache
def patterns() -> dict[Rules, list[Pattern]]:
    """Which tellers (by number) state the truth, by which of the simple rules find it: the last, the first, the most."""
    return {
        tuple(verdict == "yes" for verdict in right.split()): [
            tuple((ord(letter.lower()) - ord("a"), letter.isupper()) for letter in word) for word in words.split()
        ]
        for right, words in tables(__file__).items()
    }
