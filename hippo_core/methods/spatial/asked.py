"""What a question asks of a map, from its words.

A way, its length, by what it leads; what lies beside a place, its open sides, what is there; where somebody is; a route that has a name.
"""

import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Literal

from hippo_core.methods.spatial.reading import FROM, GENERIC, directions
from hippo_core.spoken import MOVES

Kind = Literal["way", "count", "by", "next", "nearer", "reach", "neighbor", "exits", "where", "there", "route"]
PLACE = re.compile(r"\b(?:(?P<before>[A-Za-z]+) )?[Tt]he (?P<noun>[^\W\d_]+(?:_[^\W\d_]+)*)\b(?P<next> next to the (?P<near>[^\W\d_]+))?")
COUNT = re.compile(r"\bhow (?:many|far|long)\b|\bnumber of\b", re.IGNORECASE)
BY = re.compile(r"^(?:By what|What|Over what|Along what)\b", re.IGNORECASE)
ROUTE_WORDS = re.compile(
    r"\b(?:ways?|routes?|paths?|directions?|turns?|places|"
    r"place by place|stops|moves|steps|walks?|go|goes|going|get|lead|leads|reach|travels?)\b",
    re.IGNORECASE,
)
EXIT_WORDS = re.compile(r"\bdirections?\b|\bsides?\b|\bways? out\b|\bexits?\b", re.IGNORECASE)
WHERE = re.compile(r"\bwhere\b|\bwhich place\b|\bend\b", re.IGNORECASE)
THING = re.compile(r"^(?:What (?:is|was|does|did|can|would)|Which thing)\b(?!.* [A-Z])")
PLACE_LISTS = re.compile(r"\bplaces\b|\bplace by place\b|\bstops\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PlaceRef:
    """A place as it is named: its label, and the label of one beside it where that tells it apart."""

    label: str
    next_to: str = ""


@dataclass(frozen=True, slots=True)
class MapQuery:
    """A question about a map. `start`, `goal`: the places that it names, `other`: another goal; `word`: its direction; `who`: whom it is
    about; `in_places`: whether it wants the route as places, not directions; `thing`: whether it asks for a thing and names nobody."""

    kind: Kind
    start: PlaceRef
    goal: PlaceRef | None = None
    word: str = ""
    who: str = ""
    in_places: bool = False
    thing: bool = False
    other: PlaceRef | None = None


def asked(question: str, walkers: Set[str] = frozenset(), routes: Set[str] = frozenset()) -> MapQuery | None:
    """What a question asks of a map; None where it asks nothing of one. `walkers`: names of those whose steps were told; `routes`: names
    of routes that were told."""
    if route := next((name for name in sorted(routes) if re.search(rf"\b{re.escape(name)}\b", question, re.IGNORECASE)), ""):
        return MapQuery("route", PlaceRef(route))
    refs = [(match["before"] or "", PlaceRef(match["noun"].lower(), (match["near"] or "").lower())) for match in PLACE.finditer(question)]
    named = [(before.lower(), place) for before, place in refs if place.label not in GENERIC and place.label not in MOVES]
    words = directions(question)
    if set(words) == set(MOVES):  # "North, south, east or west: ..."
        words = []
    if len(named) == 1:
        [(_, start)] = named
        who = next((name for name in walkers if re.search(rf"\b{re.escape(name)}\b", question)), "")
        if who and WHERE.search(question):
            return MapQuery("where", start, who=who)
        if len(words) == 1:
            return MapQuery("neighbor", start, word=words[0])
        if words:
            return None
        return MapQuery("exits", start) if EXIT_WORDS.search(question) else MapQuery("there", start, thing=bool(THING.match(question)))
    if len(named) != 2 or words:
        return None
    start, goal = (place for _, place in named) if named[0][0] in FROM or named[1][0] not in FROM else (place for _, place in named[::-1])
    if COUNT.search(question):
        return MapQuery("count", start, goal)
    if BY.search(question):
        return MapQuery("by", start, goal)
    return MapQuery("way", start, goal, in_places=bool(PLACE_LISTS.search(question))) if ROUTE_WORDS.search(question) else None
