"""What a sentence tells of places, from its words alone: what lies beside what, what bars the way, where one walks, and what one meets.

    The barn lies east of the well.                        ->  Link(well, barn, east)
    Between the pier and the cabin one goes by the ferry.  ->  Link(pier, cabin), by the ferry
    A hedge blocks the way north of the mill.              ->  Barrier(mill, north)
    Step 7: I went north and came to the mill. It was open to the east, and blocked to the north. ...  ->  Visit(7, ...)

A place is a noun with "the" before it. Of two places and a direction, the place behind "of", "from" or "leaving" is where one stands.
Names of several words ("the old mill", "Saint Ann's") are found in all statements and marked as one noun, "the old_mill", before a text is
read. `asked` says what a question asks of a map.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from hippo_core.spoken import MOVES

DIRECTION = re.compile(rf"\b({'|'.join(MOVES)})(?:wards?|ern(?:most)?|erly|bound)?\b", re.IGNORECASE)
NOUN = re.compile(r"\b(?:(?P<before>[A-Za-z]+) )?[Tt]he (?P<noun>[^\W\d_]+(?:_[^\W\d_]+)*)\b(?! (?:of|between) the\b)")
# Nouns that tell of the way and name no place.
GENERIC = frozenset((
    "directions", "direction", "way", "ways", "path", "paths", "road", "lane", "route", "routes", "walk", "walks", "step", "steps", "side",
    "sides", "map", "shortest", "end", "start", "turn", "turns", "number", "order", "name", "places", "place", "goal", "origin", "other",
    "first", "last", "next", "right", "left", "thing", "compass", "map", "neighbour", "neighbor", "back", "stops", "moves",
))  # fmt: skip
FROM = frozenset(("from", "of", "leaving", "left", "off"))
THROUGH = frozenset(("along", "across", "over", "through", "by", "via"))
BARS = re.compile(r"\b(?:block|bar|obstruct|clos|shut|stop|cut)(?:s|es|ed|e|red)?\b|\bno way\b|\bcannot\b", re.IGNORECASE)
NOT = re.compile(r"\b(?:no|not|never|closed|shut|locked|blocked|barred|bricked|gone|apart|fell|fallen|washed away)\b", re.IGNORECASE)
OPEN = re.compile(r"\bno (?:time|distance)\b", re.IGNORECASE)
LINKS = re.compile(
    r"\b(?:between|links?|joins?|connects?|paths?|lanes?|roads?|tracks?|neighbou?rs?|next to|beside|adjacent|borders?|adjoins?|"
    r"touch(?:es)?|leads?|ways?|walks?|gets?|goes|go|comes?|steps?|reach(?:es)?|reached|behind|opposite|across|against|next door|share|"
    r"paces?|opens?|gives on|runs?|follows?|after|in front|leaves?|meets?|beyond|at once|stands?|minutes?|through|out of)\b",
    re.IGNORECASE,
)
STARTS = re.compile(r"\b(?:starts?|started|begins?|began|sets? out|stands?|stood)\b", re.IGNORECASE)
THING = re.compile(r"\ban? [a-z]+(?= (?:at|in|on|by|near)\b|[.,;]|$)", re.IGNORECASE)
INDEFINITE = re.compile(r"\ban? ", re.IGNORECASE)
PERSON = re.compile(r"^(?P<who>[A-Z][\w'’-]*) (?P<rest>.+)$")
STEP = re.compile(r"^Step (?P<number>\d+): (?P<told>.+)$", re.DOTALL)
ROUTE = re.compile(r"^The (?P<name>[^\W\d_]+ [^\W\d_]+) [^:]+: (?P<steps>.+)")
STOP, BETWEEN = re.compile(r"[^\W\d_]+(?:_[^\W\d_]+)*"), frozenset(("the", "and", "then"))
WALLED = re.compile(r",? (?:and|but) (?:blocked|barred|closed|shut|walled|not|no way|a wall)\b", re.IGNORECASE)
NOWHERE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Link:
    """One gets from `origin` to `goal`, and back unless it is `one_way`."""

    origin: str
    goal: str
    word: str = ""  # the direction; "" where none is said
    by: str = ""  # over what it leads
    closed: bool = False  # not any more
    doubt: float = 0.0  # from 0 on, how uncertain it is; so much more does a step over it cost
    one_way: bool = False


@dataclass(frozen=True, slots=True)
class Barrier:
    """Nobody gets in the direction `word` from `place`."""

    place: str
    word: str


@dataclass(frozen=True, slots=True)
class Walk:
    """`who` stands at `place`, or goes a step in the direction `word`."""

    who: str
    place: str = ""
    word: str = ""


@dataclass(frozen=True, slots=True)
class VisitStatement:
    """A step of an explorer."""

    number: int
    move: str  # the direction that led there; "" at first
    by: str  # over what it led
    place: str  # the label of the place; "" where it shows none
    open: frozenset[str] | None  # its open sides; None: nothing is said of these
    seen: Mapping[str, str] = field(default_factory=lambda: NOWHERE)  # the labels beyond some of them


@dataclass(frozen=True, slots=True)
class Route:
    """A way that has a name, "the milk round", whose statement says its `steps` from `origin`: directions, or the names of places."""

    name: str
    origin: str
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class There:
    """Any other statement about a place, such as what is there: the `thing` with its article, if there is one alone."""

    place: str
    thing: str = ""


Observation = Link | Barrier | Walk | VisitStatement | Route | There


def read(text: str) -> Observation | None:
    """What a statement tells of places; None where it tells nothing of them."""
    if step := STEP.match(text.strip()):
        return _visit(int(step["number"]), step["told"])
    if ":" in text:
        if route := ROUTE.match(text.strip()):
            origin = next((noun for noun, before in place_nouns(text) if before in FROM), "")
            return Route(route["name"].lower(), origin, tuple(word for word in STOP.findall(route["steps"].lower()) if word not in BETWEEN))
        if len(directions(text)) != 1:
            return None
    nouns, words = list(place_nouns(text)), directions(text)
    places = [noun for noun in nouns if noun[1] not in THROUGH] if len(nouns) > 2 else nouns
    if len(places) == 2 and (len(words) == 1 or (not words and LINKS.search(text))):
        return _link(text, places, words, nouns)
    if len(nouns) == 1 and len(words) == 1 and BARS.search(text):
        return Barrier(nouns[0][0], words[0])
    if person := PERSON.match(text.strip()):
        if not nouns and len(words) == 1:
            return Walk(person["who"], word=words[0])
        if len(nouns) == 1 and not words and STARTS.search(person["rest"]):
            return Walk(person["who"], place=nouns[0][0])
    if len(nouns) != 1 or words:
        return None
    thing = THING.search(text) if len(INDEFINITE.findall(text)) == 1 else None
    return There(nouns[0][0], thing[0] if thing else "")


def directions(text: str) -> list[str]:
    """The directions that a text names, in order."""
    return [match[1].lower() for match in DIRECTION.finditer(text)]


def place_nouns(text: str) -> Iterator[tuple[str, str]]:
    """Each noun behind "the", with the word before that."""
    for match in NOUN.finditer(text):
        noun = match["noun"].lower()
        if noun not in GENERIC and noun not in MOVES:
            yield noun, (match["before"] or "").lower()


def _link(text: str, places: list[tuple[str, str]], words: list[str], nouns: list[tuple[str, str]]) -> Link | None:
    by = next((noun for noun, before in nouns if before in THROUGH and (noun, before) not in places), "")
    origin, goal = places if places[0][1] in FROM or places[1][1] not in FROM else reversed(places)
    if origin[0] == goal[0]:
        return None
    closed = bool(NOT.search(OPEN.sub("", text)))
    return Link(origin[0], goal[0], words[0] if words else "", by, closed)


def _visit(number: int, text: str) -> VisitStatement:
    """A step of an explorer, sentence by sentence: first where it led, then its sides, then what is seen."""
    sentences = [sentence for sentence in re.split(r"(?<=[.!?])\s+", text) if sentence]
    came, rest = sentences[0], sentences[1:]
    nouns, moved = list(place_nouns(came)), directions(came)
    place = next((noun for noun, before in nouns if before not in THROUGH), "")
    by = next((noun for noun, before in nouns if before in THROUGH), "")
    exits = next((sentence for sentence in rest if not list(place_nouns(sentence))), "")
    seen = {}
    for sentence in rest:
        labels, words = list(place_nouns(sentence)), directions(sentence)
        if labels and words:
            seen[words[0]] = labels[-1][0]
    return VisitStatement(number, moved[0] if moved else "", by, place, frozenset(directions(WALLED.split(exits)[0])), seen)


PAIR = re.compile(r"\b[Tt]he ([a-z]+)(?: ([a-z]+)\b)?(?=( [a-z]+)?)")
PROPER = re.compile(r"[A-Z][a-z]+(?:['’]s)?(?: [A-Z][a-z]+(?:['’]s)?)*")
BEFORE = re.compile(r"\b(?:from|at|to|of|between|beside|behind|into|opposite|leaves?|against|with) $", re.IGNORECASE)
TITLES = frozenset(("Mr", "Mrs", "Miss", "Ms", "Dr", "Doctor", "Sir", "Lady", "Aunt", "Uncle", "Widow", "Old"))
# Words that follow a name, or begin a sentence, and are no part of one.
CLOSED = frozenset((
    "a", "across", "after", "against", "and", "are", "as", "at", "before", "behind", "beside", "between", "but", "by", "can",
    "comes", "east", "for", "from", "going", "has", "have", "head", "heading", "in", "into", "is", "it", "leave", "next", "no",
    "north", "nothing", "of", "off", "on", "one", "only", "opposite", "or", "out", "over", "right", "since", "south", "than",
    "that", "the", "there", "to", "was", "way", "west", "what", "where", "which", "who", "whoever", "will", "with", "without",
    "you",
))  # fmt: skip


def is_plain(text: str) -> bool:
    """Whether a statement is neither a step of an explorer nor a named route."""
    return not STEP.match(text) and not ROUTE.match(text)


def place_names(texts: Sequence[str]) -> dict[str, str]:
    """The names of several words, and proper names, in the statements of one world: the noun that each is marked as, and the name."""
    plain = [text for text in texts if is_plain(text)]
    names = _pairs(plain) | _proper(plain)
    return {re.sub(r"['’]", "", name.lower()).replace(" ", "_"): name for name in sorted(names, key=lambda name: (-len(name), name))}


def mark(text: str, names: dict[str, str]) -> str:
    """The text with each name as one noun behind "the". A name in small letters may begin with a capital here; one word of them behind "a"
    is none."""
    for noun, name in names.items():
        spelled = re.escape(name).replace("’", "'").replace("'", "['’]")
        spelled = f"(?i:{spelled})" if name[0].islower() else spelled
        some = "" if " " in name else r"(?<!\b[Aa] )(?<!\b[Aa]n )"
        text = re.sub(rf"(?<![\w-]){some}(?:([Tt])he )?{spelled}(?!\w)", lambda hit, noun=noun: f"{hit[1] or 't'}he {noun}", text)
    return text


def _pairs(texts: Sequence[str]) -> set[str]:
    """Two words behind "the" of which the first never stands there alone."""
    after: dict[str, Counter[str]] = defaultdict(Counter)
    for text in texts:
        for first, second, third in PAIR.findall(text):
            verb = second.endswith(("s", "ed")) and third.strip() in {*CLOSED, "hard"}
            if first in MOVES:
                continue
            after[first][second if second and second not in CLOSED and not verb else ""] += 1
    return {f"{first} {second}" for first, seconds in after.items() for second in seconds if "" not in seconds and len(seconds) == 1}


def _proper(texts: Sequence[str]) -> set[str]:
    """Words with capitals that stand somewhere behind what leads to a place."""
    names: set[str] = set()
    for text in texts:
        for hit in PROPER.finditer(text):
            if hit.start() and (BEFORE.search(text[: hit.start()]) or (" " in hit[0] and hit[0].split()[0] not in TITLES)):
                names.add(hit[0])
            elif not hit.start() and (words := hit[0].split())[0].lower() in CLOSED and len(words) > 1 and BEFORE.search(words[0] + " "):
                names.add(" ".join(words[1:]))
    return names


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
ASKS_THING = re.compile(r"^(?:What (?:is|was|does|did|can|would)|Which thing)\b(?!.* [A-Z])")
PLACE_LISTS = re.compile(r"\bplaces\b|\bplace by place\b|\bstops\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PlaceRef:
    """A place as it is named: its label, and the label of one beside it where that tells it apart."""

    label: str
    next_to: str = ""


@dataclass(frozen=True, slots=True)
class MapQuery:
    """A question about a map, and the places that it names."""

    kind: Kind
    start: PlaceRef
    goal: PlaceRef | None = None
    word: str = ""  # its direction
    who: str = ""  # whom it is about
    in_places: bool = False  # whether it wants the route as places, not directions
    thing: bool = False  # whether it asks for a thing and names nobody
    other: PlaceRef | None = None  # another goal


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
        return MapQuery("exits", start) if EXIT_WORDS.search(question) else MapQuery("there", start, thing=bool(ASKS_THING.match(question)))
    if len(named) != 2 or words:
        return None
    start, goal = (place for _, place in named) if named[0][0] in FROM or named[1][0] not in FROM else (place for _, place in named[::-1])
    if COUNT.search(question):
        return MapQuery("count", start, goal)
    if BY.search(question):
        return MapQuery("by", start, goal)
    return MapQuery("way", start, goal, in_places=bool(PLACE_LISTS.search(question))) if ROUTE_WORDS.search(question) else None
