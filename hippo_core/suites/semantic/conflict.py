"""Plain statements that disagree: several people say where a firm is, and nothing in the words of a statement tells who is right.

The rule: **each person's last word counts once, and what most of them hold to at the end is so.** A person who says something thrice
counts once; one who says otherwise later has taken the first word back. Statements are drawn such that each of three simpler rules is
right about every second time, whatever the others say: to believe the last statement, the first, or the one made most often.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import product
from random import Random
from typing import NamedTuple

PATTERNS, MOST = 300, 6  # patterns of each kind; statements about a firm, at most


class Said(NamedTuple):
    """Who said it, and which city."""

    teller: str
    city: str


def settled(said: Sequence[Said]) -> str | None:
    """The city that most tellers hold to at the end; None where two have as many."""
    return most_common(list({one.teller: one.city for one in said}.values()))


def most_common(cities: Sequence[str]) -> str | None:
    """The most frequent of them; None for a tie."""
    first, *others = Counter(cities).most_common(2)
    return None if others and others[0][1] == first[1] else first[0]


def simple_rules(said: Sequence[Said]) -> tuple[str | None, str | None, str | None]:
    """What the last statement says, the first, and most of them."""
    return said[-1].city, said[0].city, most_common([one.city for one in said])


def disagree(random: Random, tellers: Sequence[str], true: str, other: str) -> list[Said]:
    """Statements in order of which `true` is what holds; a coin says of each simple rule whether it finds that."""
    right = tuple(random.random() < 0.5 for _ in range(3))
    pattern = random.choice(patterns()[right])
    names = random.sample(tellers, max(teller for teller, _ in pattern) + 1)
    return [Said(names[teller], true if holds else other) for teller, holds in pattern]


@cache
def patterns() -> dict[tuple[bool, ...], list[tuple[tuple[int, bool], ...]]]:
    """Who (by number) says what holds, and who does not, by which of the simple rules find it: so many of each, drawn once."""
    random, found = Random("plain statements"), {right: [] for right in product((False, True), repeat=3)}
    while min(map(len, found.values())) < PATTERNS:
        said = _draw(random)
        rules = simple_rules(said)
        if len(said) <= MOST and settled(said) == "true" and None not in rules and len({one.city for one in said}) > 1:
            same = found[tuple(city == "true" for city in rules)]
            if len(same) < PATTERNS:
                same.append(tuple((int(one.teller), one.city == "true") for one in said))
    return found


def _draw(random: Random) -> list[Said]:
    """Three to five tellers, each with a last word, before which some said the same or something else."""
    cities, turns = ("true", "other"), []
    for teller in map(str, range(random.randint(3, 5))):
        last = "true" if random.random() < 0.6 else "other"
        before = random.choices((0, 1, 2), (5, 3, 2))[0]
        turns.append([*(Said(teller, random.choice((last, *cities))) for _ in range(before)), Said(teller, last)])
    order = [number for number, turn in enumerate(turns) for _ in turn]
    random.shuffle(order)
    left = [iter(turn) for turn in turns]
    return [next(left[number]) for number in order]


def confidences(random: Random, true: Sequence[bool], levels: Sequence[float]) -> list[float]:
    """How sure each statement is said to be, such that of those that are said so with a level of c the share c is true, on average.

    P(level | true) = share of the level * c / share of true ones, and so for the others; the shares of the lowest and the highest level
    follow from how many are true, the middle one has .3.
    """
    low, middle, high = levels
    share = min(max(sum(true) / len(true), 0.3 * middle + 0.7 * low), 0.3 * middle + 0.7 * high)
    top = (share - 0.3 * middle - 0.7 * low) / (high - low)
    weights = (0.7 - top, 0.3, top)
    chances = {
        True: [weight * level for weight, level in zip(weights, levels, strict=True)],
        False: [weight * (1 - level) for weight, level in zip(weights, levels, strict=True)],
    }
    return [random.choices(levels, chances[one])[0] for one in true]
