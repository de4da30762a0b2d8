"""Statements and questions read by their likeness, where the patterns do not read them or it is surer than they are."""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import numpy as np
from scipy.cluster.hierarchy import DisjointSet

from hippo_core.methods.spatial.asked import PLACES, Asked, Place
from hippo_core.methods.spatial.likeness import KINDS, Blanked, Likeness
from hippo_core.methods.spatial.place_map import Cell, beside
from hippo_core.methods.spatial.reading import GENERIC, Link, Observation, There, directions, place_nouns
from hippo_core.spoken import OPPOSITE

SURE = 0.3  # how far the likest kind leads before it stands for the link that a pattern reads
MEND = 1.0  # how far another kind may lead where without a link the map would not hang together
LEAN = 0.4  # how much likelier a link is than a sentence alone says: worlds tell more links than anything else
WEIGHT, SCALE = 1.0, 0.25  # of doubt
KIND = re.compile(r"\b[Tt]he (\w+) (\w+)")


def likely(
    texts: Sequence[str], found: Sequence[Observation | None], likeness: Likeness, places: Set[str] | None = None
) -> list[Observation | None]:
    """The statements of a world once more: `found` is what patterns read, and names are marked in `texts`. `places`: the nouns of all
    places, where these are known; no link leads to any other one then.

    A sentence that names two places, and one direction or none, is a link, a closed one, or neither, whichever it is like; and a link, if
    that is nearly as likely, where its places would have no way between them without it.
    """
    read = [None if places and isinstance(one, Link) and not {one.origin, one.goal} <= places else one for one in found]
    two = _two_places(texts, read, places)
    if not two:
        return read
    sentences = list(two.values())
    begins = dict(zip(two, likeness.begins(sentences), strict=True))
    leads = dict[int, float]()
    lean = np.array([LEAN, 0.0, 0.0], dtype=np.float32)
    for (number, one), scores in zip(two.items(), likeness.told(sentences) + lean, strict=True):
        kind = max(range(len(KINDS)), key=lambda kind: scores[kind])
        leads[number] = scores[0] - max(scores[1:])
        if sorted(scores)[-1] - sorted(scores)[-2] > (SURE if _link(one, found[number]) else 0):
            read[number] = _read_as(KINDS[kind], one, found[number], begins[number])
    _apart(read, two)
    links = [one for one in read if isinstance(one, Link) and not one.closed]
    linked = {place for one in links for place in (one.origin, one.goal)}
    compass = {place for one in links if one.word for place in (one.origin, one.goal)}
    whole = DisjointSet([*linked, *(place for one in sentences for place in one.places)])
    for one in links:
        whole.merge(one.origin, one.goal)
    for number in sorted(leads, key=lambda number: -leads[number]):
        a, b = two[number].places
        if leads[number] <= -MEND or not {a, b} & linked or whole.connected(a, b):
            continue
        if directions(two[number].text) or not {a, b} & compass:
            linked |= {a, b}
            whole.merge(a, b)
            read[number] = _read_as("link", two[number], found[number], begins[number])
    turned(read, {number: abs(begins[number]) for number in two})
    for number, lead in leads.items():
        one, by_pattern = read[number], _link(two[number], found[number])
        if isinstance(one, Link) and not one.closed:
            read[number] = replace(one, doubt=0.0 if by_pattern and not by_pattern.closed else doubt(lead))
    return read


def doubt(lead: float) -> float:
    """How much more a step costs that a link leads by so much: what is lost where it is none, by how likely that is."""
    return WEIGHT * float(np.logaddexp(0.0, -lead / SCALE)) if lead < SURE else 0.0


def turned(read: list[Observation | None], sure: Mapping[int, float]) -> None:
    """Turn round links that name a direction, the least sure first, as far as they then fit together better on a grid."""
    worst = misfits(read)
    for number in sorted(sure, key=lambda number: sure[number]):
        one = read[number]
        if not worst:
            return
        if isinstance(one, Link) and one.word and not one.closed:
            read[number] = replace(one, origin=one.goal, goal=one.origin)
            better = misfits(read)
            if better < worst:
                worst = better
            else:
                read[number] = one


def misfits(read: Sequence[Observation | None]) -> int:
    """How many links do not fit where places lie by the others on a grid, and how many places lie where another one does."""
    near: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for one in read:
        if isinstance(one, Link) and one.word and not one.closed:
            near[one.origin].append((one.word, one.goal))
            near[one.goal].append((OPPOSITE[one.word], one.origin))
    cells: dict[str, Cell] = {}
    wrong = 0
    for first in near:
        if first in cells:
            continue
        laid, waiting = {first: (0, 0)}, deque([first])
        while waiting:
            here = waiting.popleft()
            for word, there in near[here]:
                cell = beside(laid[here], word)
                if there not in laid:
                    laid[there] = cell
                    waiting.append(there)
                wrong += laid[there] != cell
        wrong += len(laid) - len(set(laid.values()))
        cells |= laid
    return wrong


def _apart(read: list[Observation | None], two: Mapping[int, Blanked]) -> None:
    """Take back what names no direction as a link between two places that others have directions for: there each step has one."""
    links = {number: one for number, one in enumerate(read) if isinstance(one, Link) and not one.closed}
    compass = {place for one in links.values() if one.word for place in (one.origin, one.goal)}
    for number in links.keys() & two.keys():
        if not links[number].word and compass.issuperset(two[number].places):
            read[number] = None


def likely_way(question: str, places: Set[str], likeness: Likeness, found: Asked | None = None) -> Asked | None:
    """The way between the two of these places that a question names; None where it asks for none. `found`: the way that patterns read."""
    named = [noun for noun in _named(question) if noun in places]
    if len(named) != 2:
        return found
    one = Blanked(question, (named[0], named[1]))
    if not found and likeness.asked([one])[0] <= 0:
        return None
    start, goal = named if likeness.begins([one])[0] > 0 else named[::-1]
    return Asked("way", Place(start), Place(goal), in_places=bool(PLACES.search(question)))


def _two_places(texts: Sequence[str], found: Sequence[Observation | None], places: Set[str] | None) -> dict[int, Blanked]:
    """The sentences of two places by number. Of more than two nouns those are places that other sentences name two by two, where it is
    not known which ones are."""
    named = {
        number: _named(text, places)
        for number, (text, one) in enumerate(zip(texts, found, strict=True))
        if one is None or isinstance(one, There) or (isinstance(one, Link) and not one.by)
    }
    known = {noun for own in named.values() if len(own) == 2 for noun in own}
    often = Counter(noun for own in named.values() for noun in own)
    two = {}
    for number, own in named.items():
        nouns = own if len(own) == 2 else [noun for noun in own if noun in known or often[noun] > 1]
        counts = sorted((often[noun] for noun in nouns), reverse=True)
        if len(nouns) > 2 and counts[1] > counts[2]:
            nouns = [noun for noun in nouns if often[noun] >= counts[1]]
        if len(nouns) == 2 and _one_direction(texts[number]):
            two[number] = Blanked(texts[number], (nouns[0], nouns[1]))
    return two


def _one_direction(text: str) -> bool:
    """Whether a text names one direction at most, or one and the way back."""
    words = set(directions(text))
    return len(words) < 2 or ({OPPOSITE[word] for word in words} == words and len(words) == 2)


def _named(text: str, places: Set[str] | None = None) -> list[str]:
    """The nouns that a text names, once each; none that tells what kind of way or place another word is, as in "the next stop". `places`:
    those of them that may be places."""
    if places:
        return [noun for noun in dict.fromkeys(noun for noun, _ in place_nouns(text)) if noun in places]
    kinds = {noun.lower() for noun, kind in KIND.findall(text) if kind.lower() in GENERIC}
    return [noun for noun in dict.fromkeys(noun for noun, _ in place_nouns(text)) if noun not in kinds]


def _link(one: Blanked, found: Observation | None) -> Link | None:
    """The link between these two places that a pattern reads, if it does."""
    return found if isinstance(found, Link) and {found.origin, found.goal} == set(one.places) else None


def _read_as(kind: str, one: Blanked, found: Observation | None, begins: float) -> Observation | None:
    if kind == "none":
        return found if isinstance(found, There) else None
    link, word = _link(one, found), next(iter(directions(one.text)), "")
    origin, goal = one.places if begins > 0 else one.places[::-1]
    if link and not word:
        origin, goal = link.origin, link.goal
    return Link(origin, goal, word, link.by if link else "", kind == "closed")
