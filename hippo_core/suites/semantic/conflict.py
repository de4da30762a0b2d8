"""Plain statements that disagree: several people say where a firm is, and nothing in the words of a statement tells who is right.

The rule: **each person's last word counts once, and what most of them hold to at the end is so.** A person who says something thrice
counts once; one who says otherwise later has taken the first word back. Statements are drawn such that each of three simpler rules is
right about every second time, whatever the others say: to believe the last statement, the first, or the one made most often.

Where people say how sure they are: **what is told most surely is so, however many say otherwise; of what is told as surely, the rule above
decides.** Statements are drawn such that it makes no difference whether words that were taken back count, that no tie is left, and that
the rule above alone is right about every second time.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import product
from random import Random
from typing import NamedTuple

from hippo_core.suites.semantic.drawn_patterns import TABLE

PATTERNS, MOST = 300, 6  # patterns of each kind; statements about a firm, at most
Pattern = tuple[tuple[int, bool], ...]
Rules = tuple[bool, ...]


class Testimony(NamedTuple):
    """Who said it, which city, and how sure that one said to be, from 0 to 1; None where nothing was said of it."""

    teller: str
    city: str
    confidence: float | None = None


def settled(said: Sequence[Testimony]) -> str | None:
    """The city that most tellers hold to at the end; None where two have as many."""
    return most_common([one.city for one in last_words(said)])


def last_words(said: Sequence[Testimony]) -> list[Testimony]:
    """The last statement of each person."""
    return list({one.teller: one for one in said}.values())


def surest(said: Sequence[Testimony]) -> list[Testimony]:
    """The statements that were told most surely; all where nobody says how sure."""
    most = max(one.confidence or 0.0 for one in said)
    return [one for one in said if (one.confidence or 0.0) == most]


def settled_surely(said: Sequence[Testimony]) -> str | None:
    """The city that is told most surely; of several that are told as surely, as `settled` says. None where words that were taken back
    make a difference."""
    city = settled(surest(said))
    return city if city == settled(surest(last_words(said))) else None


def most_common(cities: Sequence[str]) -> str | None:
    """The most frequent of them; None for a tie."""
    first, *others = Counter(cities).most_common(2)
    return None if others and others[0][1] == first[1] else first[0]


def simple_rules(said: Sequence[Testimony]) -> tuple[str | None, str | None, str | None]:
    """What the last statement says, the first, and most of them."""
    return said[-1].city, said[0].city, most_common([one.city for one in said])


def disagree(random: Random, tellers: Sequence[str], true: str, other: str) -> list[Testimony]:
    """Statements in order of which `true` is what holds; a coin says of each simple rule whether it finds that."""
    right = tuple(random.random() < 0.5 for _ in range(3))
    pattern = random.choice(patterns()[right])
    names = random.sample(tellers, max(teller for teller, _ in pattern) + 1)
    return [Testimony(names[teller], true if holds else other) for teller, holds in pattern]


def disagree_surely(random: Random, tellers: Sequence[str], true: str, other: str, levels: Sequence[float]) -> list[Testimony]:
    """Statements in order with how sure each is told, of which `true` is what holds; a coin says whether it is also what most hold to."""
    pair = random.sample((true, other), 2)
    while True:
        said = [one._replace(confidence=random.choice(levels)) for one in disagree(random, tellers, *pair)]
        if settled_surely(said) == true:
            return said


@cache
def patterns() -> dict[Rules, list[Pattern]]:
    """Who (by number) says what holds, and who does not, by which of the simple rules find it: the last, the first, the most."""
    return {
        right: [tuple((ord(letter.lower()) - ord("a"), letter.isupper()) for letter in word) for word in words.split()]
        for right, words in TABLE.items()
    }


def draw_patterns(draws: int) -> dict[Rules, list[Pattern]]:
    """What `drawn_patterns.TABLE` was made by, from some 300,000 draws; with fewer of them its beginnings."""
    random = Random("plain statements")
    found: dict[Rules, list[Pattern]] = {right: [] for right in product((False, True), repeat=3)}
    for _ in range(draws):
        pattern = _draw(random)
        holding = [holds for _, holds in pattern]
        if len(pattern) <= MOST and not all(holding) and _most(list(dict(pattern).values())) and (most := _most(holding)) is not None:
            same = found[holding[-1], holding[0], most]
            if len(same) < PATTERNS:
                same.append(tuple(pattern))
    return found


def _most(holding: Sequence[bool]) -> bool | None:
    """What more than half of them are; None for a tie."""
    twice = 2 * sum(holding)
    return None if twice == len(holding) else twice > len(holding)


def _draw(random: Random) -> list[tuple[int, bool]]:
    """Three to five tellers, each with a last word, before which some said the same or something else: who, and whether it holds."""
    turns = []
    for teller in range(random.randint(3, 5)):
        last = random.random() < 0.6
        before = random.choices((0, 1, 2), cum_weights=(5, 8, 10))[0]
        turns.append([*((teller, random.choice((last, True, False))) for _ in range(before)), (teller, last)])
    order = [number for number, turn in enumerate(turns) for _ in turn]
    random.shuffle(order)
    left = [iter(turn) for turn in turns]
    return [next(left[number]) for number in order]
