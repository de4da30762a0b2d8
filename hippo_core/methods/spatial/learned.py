"""Place statements and questions read by the fitted encoder (encoder.py), and what a world's statements say together.

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
from hippo_core.methods.spatial.asked import PLACES, Kind, MapQuery, PlaceRef
from hippo_core.methods.spatial.encoder import ASKS, ROLES, SAYS, TELLS, TURNS, PlaceEncoder
from hippo_core.methods.spatial.names import CLOSED
from hippo_core.methods.spatial.place_map import Cell, beside
from hippo_core.methods.spatial.reading import (
    DIRECTION,
    GENERIC,
    NOUN,
    THROUGH,
    Barrier,
    Link,
    Observation,
    Route,
    There,
    VisitStatement,
    Walk,
    directions,
    read,
)
from hippo_core.methods.spatial.spans import Found, WordStatistics, best_spans, consensus_names, without_means
from hippo_core.models import minilm
from hippo_core.models.adapted_minilm import shipped
from hippo_core.spoken import MOVES, OPPOSITE

PART, FIT = "places", "python -m recipes.place_encoder"
Spans = tuple[tuple[int, int, int, str], ...]  # (start, end, number, noun) of each time that a text names a place
BATCH = 32
RECURRING = 0.25  # how likely a noun of several statements is a place, at least, to be one: "the spring", which is most often a season
NO_NAME = (0.0, -20.0, -20.0)  # of a word that was not read, the text being too long
CAPITAL = re.compile(r"\b[A-Z][\w'’-]*\b")
OPEN = tuple(SAYS.index(one) for one in ("link", "forward", "back", "opened"))
BY_PATTERN = 1.0  # nats by which what a pattern reads counts more
ONE_WAY = 2.0  # nats by which a link that leads one way must be likelier than one that leads both
CONNECTIVITY_MARGIN = 2.0  # nats by which another reading may lead where without a link the map would not hang together
WALKED = 0.6  # of the statements of a world that are steps, from which on it is a walk
KINDS: Mapping[tuple[int, str], Kind] = {  # by how many places a question names, and what it asks
    (2, "way"): "way",
    (2, "distance"): "count",
    (2, "next"): "next",
    (2, "reach"): "reach",
    (3, "nearer"): "nearer",
}
WAYS = 10.0  # how much likelier a way is asked for than what the lessons, of each kind as many, make of a question
DIRECTED = re.compile(r"\b(?:directions?|compass|turns?|which way|moves?|steps?|north|east|south|west)\b", re.IGNORECASE)
DOUBTED = 4.0  # how much more a step costs that somebody supposes


@dataclass(frozen=True)
class PlaceReading:
    """What a text says of its `nouns`, in order of appearance: `says`, logarithms of `SAYS` [P, P, S], the earlier place first; `stands`
    [P, P], above 0: a direction leads from the earlier one; the `roles` of the places; the `turns` of its directions, as (word, what it
    is); how likely it is a step of a walk (`walk`); what it `asks`, and how likely each of `ASKS` is."""

    nouns: tuple[str, ...]
    says: np.ndarray
    stands: np.ndarray
    roles: tuple[str, ...]
    turns: tuple[tuple[str, str], ...]
    walk: float
    asks: Mapping[str, float]


@dataclass
class PlaceReader:
    """The fitted encoder. What was read is kept."""

    model: PlaceEncoder
    marker: Marker
    tagged: dict[str, dict[int, np.ndarray]] = field(default_factory=dict)
    kept: dict[tuple[str, Spans], PlaceReading] = field(default_factory=dict)

    def names(self, texts: Sequence[str]) -> Found:
        """The names of the places of a world, which its statements bear out together."""
        world, tagged = WordStatistics(texts), self._tags(texts)
        scores = [np.array([of.get(token.start, NO_NAME) for token in own]) for own, of in zip(world.tokens, tagged, strict=True)]
        spans = [best_spans(own, one) for own, one in zip(world.tokens, scores, strict=True)]
        walking = people(world, spans)
        spans = [
            [(start, end) for start, end in some if not {texts[number][one.start : one.end] for one in own[start:end]} & walking]
            for number, (own, some) in enumerate(zip(world.tokens, spans, strict=True))
        ]
        found = consensus_names(world, spans)
        inside = {word for name in found.names.values() for word in name.lower().split()}
        likely = defaultdict[str, list[float]](list)  # of each noun behind "the" that it is a place, statement by statement
        for own, one in zip(world.tokens, scores, strict=True):
            for at in range(1, len(own)):
                if own[at - 1].word == "the" and own[at].word.isalpha() and own[at].word not in inside:
                    likely[own[at].word].append(1 - float(np.exp(one[at][0])))
        more = {noun for noun, values in likely.items() if sum(values) >= RECURRING * len(values) and len(values) > 1}
        return without_means(Found(found.names, found.places | more - GENERIC - MOVES.keys()), world)

    @torch.inference_mode()
    def _tags(self, texts: Sequence[str]) -> list[dict[int, np.ndarray]]:
        """Of each piece by where it begins how likely it is of no name of a place, begins one, or goes on with it, as logarithms."""
        new = sorted({text for text in texts if text not in self.tagged}, key=lambda text: (len(text), text))
        for first in range(0, len(new), BATCH):
            part = self.marker.unmarked(new[first : first + BATCH])
            for text, one, logits in zip(new[first : first + BATCH], part, self.model.name(part), strict=True):
                self.tagged[text] = dict(zip(one.starts, logits.log_softmax(-1).numpy(), strict=True))
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
                [(one.starts.index(start), word) for start, word in own if start in one.starts]
                for one, own in zip(marked, words, strict=True)
            ]
            read = self.model(marked, [[place for place, _ in own] for own in at])
            for key, turns, one in zip(part, at, read, strict=True):
                nouns = tuple(dict.fromkeys(noun for *_, noun in key[1]))
                kinds = one.turns.argmax(-1).tolist() if turns else []
                self.kept[key] = PlaceReading(
                    nouns[: len(one.roles)],
                    one.says.log_softmax(-1).numpy(),
                    one.stands.numpy(),
                    tuple(ROLES[role] for role in one.roles.argmax(-1).tolist()) if len(one.roles) else (),
                    tuple((word, TURNS[kind]) for (_, word), kind in zip(turns, kinds, strict=True)),
                    float(one.tells.softmax(-1)[TELLS.index("walk")]),
                    dict(zip(ASKS, one.asks.softmax(-1).tolist(), strict=True)),
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
    """Two places of a statement (`number`), the earlier one first: how likely each of `SAYS` is, the direction, where one stands, over what
    it leads, and whether a pattern reads a link of them."""

    number: int
    places: tuple[str, str]
    says: np.ndarray
    word: str
    stands: float
    by: str
    pattern: Link | None

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
    texts: Sequence[str], found: Sequence[Observation | None], reader: PlaceReader, places: frozenset[str] | None = None
) -> list[list[Observation]]:
    """What the statements of a world say; `found` is what patterns read, names are marked in `texts`. `places`: the nouns of all places,
    where these are known; no link leads to any other one then."""
    readings = reader.read(texts, places)
    kept = [one if isinstance(one, VisitStatement | Route | Walk | Barrier | There) else None for one in found]
    said: list[list[Observation]] = [[one] if one is not None else [] for one in kept]
    if any(isinstance(one, VisitStatement) for one in found):
        return said
    if (steps := _steps(texts, readings)) is not None:
        return [[visit] if visit else [] for visit in steps]
    walks = _walkers(texts, found, readings)
    said = [[walks[number]] if number in walks else [one for one in own if not isinstance(one, Walk)] for number, own in enumerate(said)]
    pairs = list(_pairs(texts, found, readings, places))
    links = {at: link for at, pair in enumerate(pairs) if (link := pair.observed(_kind(pair)))}
    _mend(pairs, links)
    _turn(pairs, links)
    for at, link in links.items():
        number = pairs[at].number
        said[number] = [*(one for one in said[number] if not isinstance(one, There)), link]
    return said


def _kind(pair: _Pair) -> str:
    """What a statement most likely says of two places."""
    among = [at for at in range(len(SAYS)) if (at in OPEN) == (pair.lead > 0)]
    kind = SAYS[max(among, key=lambda at: pair.says[at] + BY_PATTERN * (SAYS[at] == "closed" and pair.is_closed))]
    if kind in ("forward", "back") and pair.says[SAYS.index(kind)] - pair.says[SAYS.index("link")] < ONE_WAY:
        return "link"
    return kind


def _pairs(
    texts: Sequence[str], found: Sequence[Observation | None], readings: Sequence[PlaceReading], places: frozenset[str] | None
) -> Iterator[_Pair]:
    """Each two places of each statement."""
    often = Counter(noun for one in readings for noun in one.nouns)
    for number, (text, one, reading) in enumerate(zip(texts, found, readings, strict=True)):
        if isinstance(one, VisitStatement | Route | Walk | Barrier):
            continue
        chosen = [at for at, noun in enumerate(reading.nouns) if places or often[noun] > 1 or len(reading.nouns) == 2]
        by = one.by if isinstance(one, Link) else _through(text, {reading.nouns[at] for at in chosen})
        told = one.word if isinstance(one, Link) else ""
        words = dict.fromkeys(word for word, kind in reading.turns if kind == "gone") or dict.fromkeys([told] if told else ())
        word = next(iter(words)) if len(chosen) == 2 and len(words) == 1 else ""
        for i, j in combinations(chosen, 2):
            both = reading.nouns[i], reading.nouns[j]
            pattern = one if isinstance(one, Link) and {one.origin, one.goal} == {*both} else None
            yield _Pair(number, both, reading.says[i, j], word, float(reading.stands[i, j]), by if len(chosen) == 2 else "", pattern)


def _through(text: str, places: Set[str]) -> str:
    """What a text says that one gets through or over, no place itself; "" where it says nothing of it."""
    nouns = (hit["noun"].lower() for hit in NOUN.finditer(text) if (hit["before"] or "").lower() in THROUGH)
    return next((noun for noun in nouns if noun not in places), "")


def _mend(pairs: Sequence[_Pair], links: dict[int, Link]) -> None:
    """Take as links those next likely without which the places of a map would not hang together."""
    linked = {place for link in links.values() if not link.closed for place in (link.origin, link.goal)}
    whole = DisjointSet([*{place for pair in pairs for place in pair.places}])
    for link in links.values():
        if not link.closed:
            whole.merge(link.origin, link.goal)
    for at in sorted(range(len(pairs)), key=lambda at: -pairs[at].lead):
        a, b = pairs[at].places
        if at in links or pairs[at].lead <= -CONNECTIVITY_MARGIN or not {a, b} & linked or whole.connected(a, b):
            continue
        link = pairs[at].observed("link")
        assert link
        links[at] = replace(link, doubt=max(0.0, -pairs[at].lead))
        linked |= {a, b}
        whole.merge(a, b)


def _turn(pairs: Sequence[_Pair], links: dict[int, Link]) -> None:
    """Turn round links that name a direction, the least sure first, as far as they then fit together better on a grid."""
    order = sorted((at for at, link in links.items() if link.word and not link.closed), key=lambda at: abs(pairs[at].stands))
    worst = layout_conflicts([links[at] for at in order])
    for at in order:
        if not worst:
            return
        link = links[at]
        links[at] = replace(link, origin=link.goal, goal=link.origin)
        better = layout_conflicts([links[one] for one in order])
        if better < worst:
            worst = better
        else:
            links[at] = link


def layout_conflicts(links: Sequence[Link]) -> int:
    """How many links do not fit where places lie by the others on a grid, and how many places lie where another one does."""
    near: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for one in links:
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


def _steps(texts: Sequence[str], readings: Sequence[PlaceReading]) -> list[VisitStatement | None] | None:
    """The steps of the walk that a world is; None where it is none. An attempt that failed is no step."""
    walked = [one.walk > 0.5 and bool(one.turns or one.nouns) for one in readings]
    if sum(walked) < WALKED * len(walked) or len(walked) < 3:
        return None
    visits: list[VisitStatement | None] = []
    last: VisitStatement | None = None
    for number, (one, step) in enumerate(zip(readings, walked, strict=True)):
        turns: dict[str, list[str]] = defaultdict(list)
        for word, kind in one.turns:
            turns[kind].append(word)
        role = dict(zip(one.roles, one.nouns, strict=True))
        place = role.get("here") or role.get("back") or role.get("stays") or ""
        is_open = frozenset(turns["open"]) if turns["open"] or turns["walled"] else None
        if not step or (turns["fails"] and not turns["gone"]):
            visits.append(None)
            continue
        move = turns["gone"][0] if turns["gone"] else OPPOSITE.get(last.move, "") if last and role.get("back") else ""
        labels = [noun for noun, role_ in zip(one.nouns, one.roles, strict=True) if role_ == "seen"]
        last = VisitStatement(
            number, move, _through(texts[number], {*one.nouns}), place, is_open, dict(zip(turns["seen"], labels, strict=False))
        )
        visits.append(last)
    return visits


def people(world: WordStatistics, spans: Sequence[Sequence[tuple[int, int]]]) -> set[str]:
    """The names of those who walk: words with a capital of which at least half of the statements, two or more, name one direction and no
    other place. `spans`: of the names of places of each statement, as the first token and the one after the last."""
    told, alone = Counter[str](), Counter[str]()
    for text, own, some in zip(world.texts, world.tokens, spans, strict=True):
        for token in own:
            if token.capital and token.word not in CLOSED and not directions(token.word):
                name = text[token.start : token.end]
                others = [(start, end) for start, end in some if token not in own[start:end]]
                told[name] += 1
                alone[name] += not others and len(directions(text)) == 1
    inside = {text[one.start : one.end] for text, own in zip(world.texts, world.tokens, strict=True) for one in own[1:]}
    often = [name for name in told if alone[name] * 2 >= told[name] and alone[name] > 1]
    return {name for name in often if name in inside or _begins_walks(name, world)}


def _begins_walks(name: str, world: WordStatistics) -> bool:
    """Whether patterns read statements that begin with a word as steps of one who is called so, and as where that one sets out."""
    walks = [one for text in world.texts if text.startswith(f"{name} ") and isinstance(one := read(text), Walk)]
    return len(walks) > 1 and any(one.place for one in walks)


def _walkers(texts: Sequence[str], found: Sequence[Observation | None], readings: Sequence[PlaceReading]) -> dict[int, Walk]:
    """Where those who walk on a map that is told are, and where they go, by the number of the statement."""
    world = WordStatistics(texts)
    spans = []
    for own, reading in zip(world.tokens, readings, strict=True):
        spans.append([(at, at + 1) for at, one in enumerate(own) if one.word in reading.nouns])
    walking, walks = people(world, spans), {}
    for number, (text, one, pattern) in enumerate(zip(texts, readings, found, strict=True)):
        who = next((word for word in CAPITAL.findall(text) if word in walking), "")
        gone = list(dict.fromkeys(directions(text)))
        if who and not isinstance(pattern, Link | Route | Barrier) and len(one.nouns) + len(gone) == 1:
            walks[number] = Walk(who, one.nouns[0] if one.nouns else "", gone[0] if gone else "")
    return walks


def likely_question(
    question: str, places: Set[str], walkers: Set[str], reader: PlaceReader, found: MapQuery | None = None
) -> MapQuery | None:
    """What a question asks of these places, or of those who walk; None where it asks nothing of them. `found`: what patterns read."""
    [one] = reader.read([question], frozenset(places))
    kind = max(one.asks, key=lambda kind: one.asks[kind] * (WAYS if kind == "way" else 1))
    if kind == "where" and (who := next((name for name in walkers if name in question), "")):
        return MapQuery("where", PlaceRef(""), who=who)
    if kind == "side" and len(one.nouns) == 1 and len(one.turns) == 1:
        return MapQuery("neighbor", PlaceRef(one.nouns[0]), word=one.turns[0][0])
    if (len(one.nouns), kind) not in KINDS:
        return found
    ahead = (one.stands > 0) * 2 - 1.0
    ahead = np.triu(ahead, 1) - np.triu(ahead, 1).T  # of each place how many of the others one goes to from it
    start, *goals = sorted(one.nouns, key=lambda noun: -ahead[one.nouns.index(noun)].sum())
    asked: Kind = found.kind if found and kind == "way" else KINDS[len(one.nouns), kind]
    rest = [PlaceRef(noun) for noun in goals]
    return MapQuery(
        asked,
        PlaceRef(start),
        rest[0],
        in_places=bool(PLACES.search(question)) or not DIRECTED.search(question),
        other=rest[1] if len(rest) > 1 else None,
    )
