"""Statements and questions read by their likeness, where the patterns do not read them or it is surer than they are."""

import re
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace

from hippo_core.methods.spatial.asked import PLACES, Asked, Place
from hippo_core.methods.spatial.likeness import KINDS, Blanked, Likeness
from hippo_core.methods.spatial.reading import GENERIC, Link, Observation, There, directions, place_nouns

SURE = {"read": 0.0, "unread": 0.0}  # how far the likest kind leads before it counts, where a pattern reads a link and where none does
KIND = re.compile(r"\b[Tt]he (\w+) (\w+)")
ORDER = 0.0  # of the two places, where a pattern has chosen another first


def likely(texts: Sequence[str], found: Sequence[Observation | None], likeness: Likeness) -> list[Observation | None]:
    """The statements of a world once more: `found` is what patterns read, and names are marked in `texts`.

    A sentence that names two places, and one direction or none, is a link, a closed one, or neither, whichever it is like.
    """
    read, two = list(found), _two_places(texts, found)
    if not two:
        return read
    sentences = list(two.values())
    for number, one, scores, begins in zip(two, sentences, likeness.told(sentences), likeness.begins(sentences), strict=True):
        read[number] = _read(one, found[number], scores, begins)
    return read


def likely_way(question: str, places: Set[str], likeness: Likeness) -> Asked | None:
    """The way between the two of these places that a question names; None where it asks for none."""
    named = [noun for noun in _named(question) if noun in places]
    if len(named) != 2:
        return None
    one = Blanked(question, (named[0], named[1]))
    if likeness.asked([one])[0] <= 0:
        return None
    start, goal = named if likeness.begins([one])[0] > 0 else named[::-1]
    return Asked("way", Place(start), Place(goal), in_places=bool(PLACES.search(question)))


def _two_places(texts: Sequence[str], found: Sequence[Observation | None]) -> dict[int, Blanked]:
    """The sentences of two places by number. Of more than two nouns those are places that other sentences name two by two."""
    named = {
        number: _named(text)
        for number, (text, one) in enumerate(zip(texts, found, strict=True))
        if one is None or isinstance(one, Link | There)
    }
    known = {noun for own in named.values() if len(own) == 2 for noun in own}
    often = Counter(noun for own in named.values() for noun in own)
    two = {number: own if len(own) == 2 else [noun for noun in own if noun in known or often[noun] > 1] for number, own in named.items()}
    return {
        number: Blanked(texts[number], (own[0], own[1])) for number, own in two.items() if len(own) == 2 and len(set(directions(texts[number]))) < 2
    }


def _named(text: str) -> list[str]:
    """The nouns that a text names, once each; none that tells what kind of way or place another word is, as in "the next stop"."""
    kinds = {noun.lower() for noun, kind in KIND.findall(text) if kind.lower() in GENERIC}
    return [noun for noun in dict.fromkeys(noun for noun, _ in place_nouns(text)) if noun not in kinds]


def _read(one: Blanked, found: Observation | None, scores, begins: float) -> Observation | None:
    order = sorted(range(len(KINDS)), key=lambda kind: -scores[kind])
    link = found if isinstance(found, Link) and {found.origin, found.goal} == set(one.places) else None
    if scores[order[0]] - scores[order[1]] <= SURE["read" if link else "unread"]:
        return found
    kind = KINDS[order[0]]
    if kind == "none":
        return found if isinstance(found, There) else None
    word = next(iter(directions(one.text)), "")
    origin, goal = one.places if begins > 0 else one.places[::-1]
    if link and (abs(begins) <= ORDER or not word):
        origin, goal = link.origin, link.goal
    return Link(origin, goal, word, link.by if link else "", kind == "closed")
