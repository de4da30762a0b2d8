"""Place statements and questions read by the fitted encoder (encoder.py), and joint decisions over a world's statements.

    The mill nestles to the north of the pier.  ->  a link, and the pier is where one stands

A statement may tell of several links. What one says alone is weighed with the world: a link that nothing else joins is believed sooner, and
the directions of a map are turned round where they then fit together on a grid.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations

import numpy as np
import torch
from scipy.cluster.hierarchy import DisjointSet

from hippo_core.methods.relational.encoder import Marker
from hippo_core.methods.spatial.encoder import ASKS, ROLES, SAYS, TELLS, TURNS, PlaceEncoder
from hippo_core.methods.spatial.place_map import Cell, beside
from hippo_core.methods.spatial.reading import (
    CLOSED,
    DIRECTION,
    GENERIC,
    NOUN,
    PLACE_LISTS,
    THROUGH,
    Barrier,
    Kind,
    Link,
    MapQuery,
    Observation,
    PlaceRef,
    Route,
    There,
    VisitStatement,
    Walk,
    directions,
    read,
)
from hippo_core.methods.spatial.spans import PlaceNames, WordStatistics, best_spans, consensus_names, without_means
from hippo_core.models import minilm
from hippo_core.models.adapted_minilm import shipped
from hippo_core.spoken import MOVES, OPPOSITE

PART, FIT = "places", "python -m recipes.place_encoder"
Spans = tuple[tuple[int, int, int, str], ...]  # (start, end, number, noun) of each time that a text names a place
BATCH = 32
RECURRING = 0.25  # how likely a noun of several statements is a place, at least, to be one: "the spring", which is most often a season
NO_NAME = (0.0, -20.0, -20.0)  # of a word that was not read, the text being too long
CAPITAL = re.compile(r"\b[A-Z][\w'’-]*\b")
OPEN = tuple(SAYS.index(kind) for kind in ("link", "forward", "back", "opened"))
BY_PATTERN = 1.0  # nats by which what a pattern reads counts more
ONE_WAY_MARGIN = 2.0  # nats by which a link that leads one way must be likelier than one that leads both
CONNECTIVITY_MARGIN = 2.0  # nats by which a likelier reading is overruled where the map would fall apart without the link
WALK_SHARE = 0.6  # of the statements of a world that are steps, from which on it is a walk
KINDS: Mapping[tuple[int, str], Kind] = {  # by how many places a question names, and what it asks
    (2, "way"): "way",
    (2, "distance"): "count",
    (2, "next"): "next",
    (2, "reach"): "reach",
    (3, "nearer"): "nearer",
}
ROUTE_PRIOR = 10.0  # how much likelier a question asks for a route than in the balanced training lessons
DIRECTED = re.compile(r"\b(?:directions?|compass|turns?|which way|moves?|steps?|north|east|south|west)\b", re.IGNORECASE)
DOUBTED = 4.0  # how much more a step costs that somebody supposes


@dataclass(frozen=True)
class PlaceReading:
    """What a text says of its `nouns`, in order of appearance."""

    nouns: tuple[str, ...]
    says: np.ndarray  # logarithms of `SAYS` [P, P, S], the earlier place first
    stands: np.ndarray  # [P, P], above 0: a direction leads from the earlier place
    roles: tuple[str, ...]  # of the places
    turns: tuple[tuple[str, str], ...]  # of its directions, as (word, what it is)
    walk: float  # how likely it is a step of a walk
    asks: Mapping[str, float]  # how likely each of `ASKS` is


@dataclass
class PlaceReader:
    """The fitted encoder. What was read is kept."""

    model: PlaceEncoder
    marker: Marker
    tagged: dict[str, dict[int, np.ndarray]] = field(default_factory=dict)
    kept: dict[tuple[str, Spans], PlaceReading] = field(default_factory=dict)

    def names(self, texts: Sequence[str]) -> PlaceNames:
        """The names of a world's places, by all of its statements."""
        world, tagged = WordStatistics(texts), self._tags(texts)
        scores = [np.array([of.get(token.start, NO_NAME) for token in own]) for own, of in zip(world.tokens, tagged, strict=True)]
        spans = [best_spans(own, row) for own, row in zip(world.tokens, scores, strict=True)]
        walking = people(world, spans)
        spans = [
            [(start, end) for start, end in some if not {texts[number][token.start : token.end] for token in own[start:end]} & walking]
            for number, (own, some) in enumerate(zip(world.tokens, spans, strict=True))
        ]
        names = consensus_names(world, spans)
        inside = {word for name in names.names.values() for word in name.lower().split()}
        likely = defaultdict[str, list[float]](list)  # of each noun behind "the" that it is a place, statement by statement
        for own, row in zip(world.tokens, scores, strict=True):
            for at in range(1, len(own)):
                if own[at - 1].word == "the" and own[at].word.isalpha() and own[at].word not in inside:
                    likely[own[at].word].append(1 - float(np.exp(row[at][0])))
        more = {noun for noun, values in likely.items() if sum(values) >= RECURRING * len(values) and len(values) > 1}
        return without_means(PlaceNames(names.names, names.places | more - GENERIC - MOVES.keys()), world)

    @torch.inference_mode()
    def _tags(self, texts: Sequence[str]) -> list[dict[int, np.ndarray]]:
        """Of each piece by where it begins how likely it is of no name of a place, begins one, or goes on with it, as logarithms."""
        new = sorted({text for text in texts if text not in self.tagged}, key=lambda text: (len(text), text))
        for first in range(0, len(new), BATCH):
            part = self.marker.unmarked(new[first : first + BATCH])
            for text, marked, logits in zip(new[first : first + BATCH], part, self.model.name(part), strict=True):
                self.tagged[text] = dict(zip(marked.starts, logits.log_softmax(-1).numpy(), strict=True))
        return [self.tagged[text] for text in texts]

    @torch.inference_mode()
    def read(self, texts: Sequence[str], places: frozenset[str] | None = None) -> list[PlaceReading]:
        """Texts whose names are marked. `places`: the nouns of all places; None: each noun behind "the" may be one."""
        keys = [(text, _spans(text, places)) for text in texts]
        new = sorted({key for key in keys if key not in self.kept}, key=lambda key: (len(key[0]), key))
        for first in range(0, len(new), BATCH):
            part = new[first : first + BATCH]
            marked = self.marker([(text, [(start, end, number) for start, end, number, _ in spans]) for text, spans in part])
            words = [[(hit.start(), hit[1].lower()) for hit in DIRECTION.finditer(text)] for text, _ in part]
            at = [
                [(text_pieces.starts.index(start), word) for start, word in own if start in text_pieces.starts]
                for text_pieces, own in zip(marked, words, strict=True)
            ]
            read = self.model(marked, [[index for index, _ in own] for own in at])
            for key, turns, reading in zip(part, at, read, strict=True):
                nouns = tuple(dict.fromkeys(noun for *_, noun in key[1]))
                kinds = reading.turns.argmax(-1).tolist() if turns else []
                self.kept[key] = PlaceReading(
                    nouns[: len(reading.roles)],
                    reading.says.log_softmax(-1).numpy(),
                    reading.stands.numpy(),
                    tuple(ROLES[role] for role in reading.roles.argmax(-1).tolist()) if len(reading.roles) else (),
                    tuple((word, TURNS[kind]) for (_, word), kind in zip(turns, kinds, strict=True)),
                    float(reading.tells.softmax(-1)[TELLS.index("walk")]),
                    dict(zip(ASKS, reading.asks.softmax(-1).tolist(), strict=True)),
                )
        return [self.kept[key] for key in keys]


def _spans(text: str, places: frozenset[str] | None) -> Spans:
    """Where a text names places, with the number and the noun of each."""
    numbers: dict[str, int] = {}
    spans = []
    for hit in NOUN.finditer(text):
        noun = hit["noun"].lower()
        if noun in places if places is not None else noun not in GENERIC and noun not in MOVES:
            spans.append((hit.start("noun"), hit.end("noun"), numbers.setdefault(noun, len(numbers) + 1), noun))
    return tuple(spans)


@cache
def fitted_places(device: str = "cpu") -> PlaceReader:
    """The shipped reader. LabError where MiniLM or it is missing, damaged, or of another MiniLM."""
    tokenizer, _ = minilm.copied(device)
    return PlaceReader(shipped(PART, PlaceEncoder, FIT, device), Marker(tokenizer))


@dataclass
class _Pair:
    """Two places of a statement, the earlier one first."""

    number: int
    places: tuple[str, str]
    says: np.ndarray  # how likely each of `SAYS` is
    word: str  # the direction
    stands: float  # where one stands
    by: str  # over what it leads
    pattern: Link | None  # that a pattern reads of them

    @property
    def lead(self) -> float:
        """By how many nats a link leads."""
        is_open, others = (np.logaddexp.reduce(self.says[[at for at in range(len(SAYS)) if (at in OPEN) == yes]]) for yes in (True, False))
        return float(is_open - others) + BY_PATTERN * ((self.pattern is not None and not self.pattern.closed) - self.is_closed)

    @property
    def is_closed(self) -> bool:
        """Whether a pattern reads that it is closed."""
        return self.pattern is not None and self.pattern.closed

    def observed(self, kind: str) -> Link | None:
        """The link as which it is read."""
        origin, goal = self.places if self.stands > 0 else self.places[::-1]
        if kind == "none":
            return None
        one_way = kind in ("forward", "back")
        if one_way and not self.word:
            origin, goal = self.places if kind == "forward" else self.places[::-1]
        elif not self.word and self.pattern:
            origin, goal = self.pattern.origin, self.pattern.goal
        doubt = DOUBTED if kind == "doubt" else 0.0
        return Link(origin, goal, self.word, self.by, kind == "closed", doubt, one_way)


def read_world(
    texts: Sequence[str], patterns: Sequence[Observation | None], reader: PlaceReader, places: frozenset[str] | None = None
) -> list[list[Observation]]:
    """What the statements of a world say; `patterns` is what patterns read, names are marked in `texts`. `places`: the nouns of all places,
    where these are known; no link leads to any other one then."""
    readings = reader.read(texts, places)
    kept = [pattern if isinstance(pattern, VisitStatement | Route | Walk | Barrier | There) else None for pattern in patterns]
    observations: list[list[Observation]] = [[pattern] if pattern is not None else [] for pattern in kept]
    if any(isinstance(pattern, VisitStatement) for pattern in patterns):
        return observations
    if (steps := _steps(texts, readings)) is not None:
        return [[visit] if visit else [] for visit in steps]
    walks = _walkers(texts, patterns, readings)
    observations = [
        [walks[number]] if number in walks else [observation for observation in own if not isinstance(observation, Walk)]
        for number, own in enumerate(observations)
    ]
    pairs = list(_pairs(texts, patterns, readings, places))
    links = {at: link for at, pair in enumerate(pairs) if (link := pair.observed(_kind(pair)))}
    _connect(pairs, links)
    _turn(pairs, links)
    for at, link in links.items():
        number = pairs[at].number
        observations[number] = [*(observation for observation in observations[number] if not isinstance(observation, There)), link]
    return observations


def _kind(pair: _Pair) -> str:
    """What a statement most likely says of two places."""
    among = [at for at in range(len(SAYS)) if (at in OPEN) == (pair.lead > 0)]
    kind = SAYS[max(among, key=lambda at: pair.says[at] + BY_PATTERN * (SAYS[at] == "closed" and pair.is_closed))]
    if kind in ("forward", "back") and pair.says[SAYS.index(kind)] - pair.says[SAYS.index("link")] < ONE_WAY_MARGIN:
        return "link"
    return kind


def _pairs(
    texts: Sequence[str], patterns: Sequence[Observation | None], readings: Sequence[PlaceReading], places: frozenset[str] | None
) -> Iterator[_Pair]:
    """Each two places of each statement."""
    often = Counter(noun for reading in readings for noun in reading.nouns)
    for number, (text, observation, reading) in enumerate(zip(texts, patterns, readings, strict=True)):
        if isinstance(observation, VisitStatement | Route | Walk | Barrier):
            continue
        chosen = [at for at, noun in enumerate(reading.nouns) if places or often[noun] > 1 or len(reading.nouns) == 2]
        by = observation.by if isinstance(observation, Link) else _through(text, {reading.nouns[at] for at in chosen})
        stated = observation.word if isinstance(observation, Link) else ""
        words = dict.fromkeys(word for word, kind in reading.turns if kind == "gone") or dict.fromkeys([stated] if stated else ())
        word = next(iter(words)) if len(chosen) == 2 and len(words) == 1 else ""
        for i, j in combinations(chosen, 2):
            both = reading.nouns[i], reading.nouns[j]
            pattern = observation if isinstance(observation, Link) and {observation.origin, observation.goal} == {*both} else None
            yield _Pair(number, both, reading.says[i, j], word, float(reading.stands[i, j]), by if len(chosen) == 2 else "", pattern)


def _through(text: str, places: Set[str]) -> str:
    """What a text says that one gets through or over, no place itself; "" where it says nothing of it."""
    nouns = (hit["noun"].lower() for hit in NOUN.finditer(text) if (hit["before"] or "").lower() in THROUGH)
    return next((noun for noun in nouns if noun not in places), "")


def _connect(pairs: Sequence[_Pair], links: dict[int, Link]) -> None:
    """Add the next likely links that connect otherwise separate parts of the map."""
    linked = {place for link in links.values() if not link.closed for place in (link.origin, link.goal)}
    components = DisjointSet([*{place for pair in pairs for place in pair.places}])
    for link in links.values():
        if not link.closed:
            components.merge(link.origin, link.goal)
    for at in sorted(range(len(pairs)), key=lambda at: -pairs[at].lead):
        a, b = pairs[at].places
        if at in links or pairs[at].lead <= -CONNECTIVITY_MARGIN or not {a, b} & linked or components.connected(a, b):
            continue
        link = pairs[at].observed("link")
        assert link
        links[at] = replace(link, doubt=max(0.0, -pairs[at].lead))
        linked |= {a, b}
        components.merge(a, b)


def _turn(pairs: Sequence[_Pair], links: dict[int, Link]) -> None:
    """Reverse links that name a direction, the least certain first, where the layout then fits a grid better."""
    order = sorted((at for at, link in links.items() if link.word and not link.closed), key=lambda at: abs(pairs[at].stands))
    worst = layout_conflicts([links[at] for at in order])
    for at in order:
        if not worst:
            return
        link = links[at]
        links[at] = replace(link, origin=link.goal, goal=link.origin)
        better = layout_conflicts([links[other] for other in order])
        if better < worst:
            worst = better
        else:
            links[at] = link


def layout_conflicts(links: Sequence[Link]) -> int:
    """How many links do not fit the grid layout of the others, and how many places share a cell."""
    near: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for link in links:
        near[link.origin].append((link.word, link.goal))
        near[link.goal].append((OPPOSITE[link.word], link.origin))
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


def _steps(texts: Sequence[str], readings: Sequence[PlaceReading]) -> list[VisitStatement | None] | None:
    """The steps of the walk that a world is; None where it is none. An attempt that failed is no step."""
    is_step = [reading.walk > 0.5 and bool(reading.turns or reading.nouns) for reading in readings]
    if sum(is_step) < WALK_SHARE * len(is_step) or len(is_step) < 3:
        return None
    visits: list[VisitStatement | None] = []
    last: VisitStatement | None = None
    for number, (reading, step) in enumerate(zip(readings, is_step, strict=True)):
        turns: dict[str, list[str]] = defaultdict(list)
        for word, kind in reading.turns:
            turns[kind].append(word)
        role = dict(zip(reading.roles, reading.nouns, strict=True))
        place = role.get("here") or role.get("back") or role.get("stays") or ""
        is_open = frozenset(turns["open"]) if turns["open"] or turns["walled"] else None
        if not step or (turns["fails"] and not turns["gone"]):
            visits.append(None)
            continue
        move = turns["gone"][0] if turns["gone"] else OPPOSITE.get(last.move, "") if last and role.get("back") else ""
        labels = [noun for noun, role_ in zip(reading.nouns, reading.roles, strict=True) if role_ == "seen"]
        last = VisitStatement(
            number, move, _through(texts[number], {*reading.nouns}), place, is_open, dict(zip(turns["seen"], labels, strict=False))
        )
        visits.append(last)
    return visits


def people(world: WordStatistics, spans: Sequence[Sequence[tuple[int, int]]]) -> set[str]:
    """The names of those who walk: words with a capital of which at least half of the statements, two or more, name one direction and no
    other place. `spans`: of the names of places of each statement, as the first token and the one after the last."""
    mentions, alone = Counter[str](), Counter[str]()
    for text, own, some in zip(world.texts, world.tokens, spans, strict=True):
        for token in own:
            if token.capital and token.word not in CLOSED and not directions(token.word):
                name = text[token.start : token.end]
                others = [(start, end) for start, end in some if token not in own[start:end]]
                mentions[name] += 1
                alone[name] += not others and len(directions(text)) == 1
    inside = {text[token.start : token.end] for text, own in zip(world.texts, world.tokens, strict=True) for token in own[1:]}
    often = [name for name in mentions if alone[name] * 2 >= mentions[name] and alone[name] > 1]
    return {name for name in often if name in inside or _begins_walks(name, world)}


def _begins_walks(name: str, world: WordStatistics) -> bool:
    """Whether patterns read statements that begin with a word as steps of one who is called so, and as where that one sets out."""
    walks = [walk for text in world.texts if text.startswith(f"{name} ") and isinstance(walk := read(text), Walk)]
    return len(walks) > 1 and any(walk.place for walk in walks)


def _walkers(texts: Sequence[str], patterns: Sequence[Observation | None], readings: Sequence[PlaceReading]) -> dict[int, Walk]:
    """Where the walkers on a stated map are, and where they go, by the number of the statement."""
    world = WordStatistics(texts)
    spans = []
    for own, reading in zip(world.tokens, readings, strict=True):
        spans.append([(at, at + 1) for at, token in enumerate(own) if token.word in reading.nouns])
    walking, walks = people(world, spans), {}
    for number, (text, seen, pattern) in enumerate(zip(texts, readings, patterns, strict=True)):
        who = next((word for word in CAPITAL.findall(text) if word in walking), "")
        directions_named = list(dict.fromkeys(directions(text)))
        if who and not isinstance(pattern, Link | Route | Barrier) and len(seen.nouns) + len(directions_named) == 1:
            walks[number] = Walk(who, seen.nouns[0] if seen.nouns else "", directions_named[0] if directions_named else "")
    return walks


def likely_question(
    question: str, places: Set[str], walkers: Set[str], reader: PlaceReader, known: MapQuery | None = None
) -> MapQuery | None:
    """What a question asks about these places or walkers; None where it asks nothing about them. `known`: what patterns read."""
    [reading] = reader.read([question], frozenset(places))
    kind = max(reading.asks, key=lambda kind: reading.asks[kind] * (ROUTE_PRIOR if kind == "way" else 1))
    if kind == "where" and (who := next((name for name in walkers if name in question), "")):
        return MapQuery("where", PlaceRef(""), who=who)
    if kind == "side" and len(reading.nouns) == 1 and len(reading.turns) == 1:
        return MapQuery("neighbor", PlaceRef(reading.nouns[0]), word=reading.turns[0][0])
    if (len(reading.nouns), kind) not in KINDS:
        return known
    leads_to = (reading.stands > 0) * 2 - 1.0
    leads_to = np.triu(leads_to, 1) - np.triu(leads_to, 1).T  # of each place how many of the others one goes to from it
    start, *goals = sorted(reading.nouns, key=lambda noun: -leads_to[reading.nouns.index(noun)].sum())
    asked: Kind = known.kind if known and kind == "way" else KINDS[len(reading.nouns), kind]
    rest = [PlaceRef(noun) for noun in goals]
    return MapQuery(
        asked,
        PlaceRef(start),
        rest[0],
        in_places=bool(PLACE_LISTS.search(question)) or not DIRECTED.search(question),
        other=rest[1] if len(rest) > 1 else None,
    )
