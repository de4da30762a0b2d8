"""What a map says to a question: in a sentence, with the statements that it rests on."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from hippo_core.methods.relational.mentions import mentions
from hippo_core.methods.spatial.asked import MapQuery, PlaceRef, asked
from hippo_core.methods.spatial.gate import Edges
from hippo_core.methods.spatial.localise import LocalisedWalk, explored_map, localise
from hippo_core.methods.spatial.macros import Trip, of_route, plan
from hippo_core.methods.spatial.names import is_plain, mark, place_names
from hippo_core.methods.spatial.place_map import PlaceMap, ToldMap, beside, build_map, labelled_map
from hippo_core.methods.spatial.planner import PlannedRoute, Planner
from hippo_core.methods.spatial.reading import Barrier, Link, Observation, Route, There, VisitStatement, Walk, read
from hippo_core.methods.spatial.settings import SpatialSection
from hippo_core.spoken import MOVES, NO_PATH, NO_STEPS, NUMBERS

if TYPE_CHECKING:
    from hippo_core.methods.spatial.learned import PlaceReader
    from hippo_core.methods.spatial.policy import MacroPolicy

LANDMARK = re.compile(r"\b[Tt]he (?P<name>(?:[A-Z][\w'’-]* (?:& )?)+[a-z]+)\b")  # "the Marlow company"


@dataclass(frozen=True)
class MapAnswer:
    """A sentence ("": the statements say it themselves), the question that it answers in its own words ("": as it was put), the answer in
    it, if it is known, the numbers of the statements that they rest on, the way, if it is of one, and how that is gone."""

    sentence: str
    question: str
    answer: str
    told: tuple[int, ...]
    way: PlannedRoute | None = None
    trip: Trip | None = None


class MapAnswerer:
    """The map of what was told, and what it says.

    Args:
        texts: the statements of one world, in order of telling; those that tell nothing of places are passed over.
        habits: what a sleep made of its routes; None: nothing.
        reader: the fitted one; None: patterns read.
    """

    def __init__(
        self,
        texts: Sequence[str],
        settings: SpatialSection | None = None,
        habits: "MacroPolicy | None" = None,
        reader: "PlaceReader | None" = None,
    ) -> None:
        self.settings = settings or SpatialSection()
        self.habits = habits if self.settings.macros else None
        self.reader = reader
        self.texts = list(texts)
        self.map = PlaceMap()
        self._build()

    def write(self, text: str) -> Observation | None:
        """One more statement; what is read from it. A link or a barrier between known places changes these places alone; all else is
        mapped anew."""
        self.texts.append(text)
        one = next(reversed(self._read()[-1]), None)
        places = {one.origin, one.goal} if isinstance(one, Link) else {one.place} if isinstance(one, Barrier) else set()
        if one and isinstance(self.map, ToldMap) and places and places <= self.map.labels.keys():
            self.planner.update(*self.map.hear(len(self.texts) - 1, one))
            return one
        self._build()
        return next((one for number, one in self.told if number == len(self.texts) - 1), None)

    def price(self, a: str, b: str, cost: float) -> None:
        """Say what the steps between two places of a told map cost, both ways. LabError where that is below 0, infinite or no number."""
        for ends in ((a, b), (b, a)):
            self.map.price(*ends, cost)
        self.planner.update(a, b)

    def _build(self) -> None:
        plain = [text for text in self.texts if is_plain(text)]
        found = self.reader.names(plain) if plain and self.reader else None
        self.names = found.names if found else place_names(plain)
        self.places = found.places if found else None  # the nouns of all places; None: each noun behind "the" may be one
        self.told = told = [(number, one) for number, said in enumerate(self._read()) for one in said]
        self.routes = {one.name: (number, one) for number, one in told if isinstance(one, Route)}
        self.there: dict[str, list[tuple[int, str]]] = {}
        self.walks: dict[str, list[tuple[int, Walk]]] = {}
        for number, one in told:
            if isinstance(one, There):
                self.there.setdefault(one.place, []).append((number, one.thing))
            elif isinstance(one, Walk):
                self.walks.setdefault(one.who, []).append((number, one))
        self.landmarks = dict(self._landmarks())
        costs, self.map = self.map.costs, self._map(told)
        self.map.costs = costs
        self.planner = Planner(self.map)

    def _read(self) -> list[list[Observation]]:
        """What is read from each statement."""
        from hippo_core.methods.spatial.learned import read_world

        texts = [mark(text, self.names) for text in self.texts]
        found = [read(text) for text in texts]
        return read_world(texts, found, self.reader, self.places) if self.reader else [[one] if one is not None else [] for one in found]

    def _map(self, told: Sequence[tuple[int, Observation]]) -> PlaceMap:
        self.visits = visits = [(number, one) for number, one in told if isinstance(one, VisitStatement)]
        self.walked: LocalisedWalk | None = None  # of an explorer, if its place is filtered
        if not visits:
            return build_map(told, Edges(self.settings.keep))  # who tells a map knows it: nothing is weighed
        edges = Edges(self.settings.keep, self.settings.gate)
        if not self.settings.path_integration:
            return labelled_map(visits, edges)
        self.walked = localise([visit for _, visit in visits], self.settings.particles)
        return explored_map(visits, self.walked, edges)

    def called(self, place: str) -> str:
        """The name of a place, as it was told."""
        label = self.map.labels[place]
        return self.names.get(label, label)

    def way(self, start: str, goal: str) -> MapAnswer | None:
        """A way between the places of two labels; None where one is not known, or has no way that could be said."""
        origin, end = self.map.find(start), self.map.find(goal)
        return self._way(MapQuery("way", PlaceRef(start), PlaceRef(goal)), origin, end) if origin and end else None

    def _landmarks(self) -> Iterator[tuple[str, tuple[str, int]]]:
        """What has a name and is told to be at a place, no place itself: its name, the place, and the number of the statement."""
        for number, text in enumerate(self.texts):
            if (hit := LANDMARK.search(text)) and read(text) is None:
                there = read(text.replace(hit[0], "it"))
                if isinstance(there, There):
                    yield hit["name"], (there.place, number)

    def say(self, question: str) -> MapAnswer | None:
        """What the map says to a question; None where it does not ask of the map, or the map does not know. What is at a place stands for
        that."""
        for name, (place, number) in self.landmarks.items():
            if (plain := re.sub(rf"\b[Tt]he {re.escape(name)}(?!\w)", f"the {place}", question)) != question:
                said = self._say(plain)
                return replace(said, told=(*said.told, number)) if said else None
        return self._say(question)

    def lacks(self, question: str, said: MapAnswer | None) -> bool:
        """Whether a question, to which the map says this, asks what it does not hold: a way, a side, a walk, what is at a place, or where
        somebody is of whom nothing was told. Where no link was told there is no map to ask."""
        plain = mark(question, self.names)
        wanted = asked(plain, self.walks.keys(), self.routes.keys())
        if wanted is None or not self.map.links or (said and said.answer):
            return False
        if wanted.kind == "there" and not wanted.thing:
            return any(not any(name.key in text.casefold() for text in self.texts) for name in mentions(plain))
        return said is None and (wanted.kind != "there" or self._place(wanted.start) is not None)

    def _say(self, question: str) -> MapAnswer | None:
        wanted = self.asked(question)
        if wanted is None:
            return None
        if wanted.kind == "route":
            number, told = self.routes[wanted.start.label]
            trip = of_route(len(told.steps), self.habits is not None and told.name in self.habits.routes)
            return MapAnswer("", f"How does the {told.name} go from the {told.origin}?" if told.origin else "", "", (number,), trip=trip)
        if wanted.kind == "there":
            return self._there(wanted)
        if wanted.kind == "where":
            return self._where(wanted)
        start = self._place(wanted.start)
        if start is None:
            return None
        if wanted.kind in ("neighbor", "exits"):
            return self._around(wanted, start)
        goal = self._place(wanted.goal) if wanted.goal else None
        other = self._place(wanted.other) if wanted.other else None
        if wanted.kind == "nearer":
            return self._nearer(start, goal, other) if goal and other else None
        return self._way(wanted, start, goal) if goal else None

    def asked(self, question: str) -> MapQuery | None:
        """What a question asks of this map; None where it asks nothing of one."""
        plain = mark(question, self.names)
        wanted = asked(plain, self.walks.keys(), self.routes.keys())
        if not self.reader or (wanted and (not wanted.goal or wanted.start.next_to or wanted.goal.next_to)):
            return wanted
        known = wanted if wanted and self._is_known(wanted) else None
        if known and known.kind != "way":
            return known
        from hippo_core.methods.spatial.learned import likely_question

        return likely_question(plain, set(self.map.labels.values()), self.walks.keys(), self.reader, known)

    def _is_known(self, wanted: MapQuery) -> bool:
        """Whether both places of a question are on the map and, where it asks by what one gets there, that was told."""
        ends = [self._place(place) for place in (wanted.start, wanted.goal) if place]
        link = self.map.links.get(frozenset(end for end in ends if end))
        return None not in ends and (wanted.kind != "by" or bool(link and link.by))

    def _there(self, wanted: MapQuery) -> MapAnswer | None:
        """What was told of a place: the thing that is there, where that is asked for and it alone was told of; else the statements."""
        label, told = wanted.start.label, self.there.get(wanted.start.label, ())
        numbers = tuple(number for number, _ in told)
        if not wanted.thing or len(told) != 1 or not told[0][1]:
            return MapAnswer("", "", "", numbers) if numbers else None
        thing, name = told[0][1], self.names.get(label, label)
        return MapAnswer(f"The {name} holds {thing}.", f"What does the {name} hold?", thing.split()[1], numbers)

    def _place(self, place: PlaceRef) -> str | None:
        return self.map.find(place.label, place.next_to)

    def _way(self, wanted: MapQuery, origin: str, end: str) -> MapAnswer | None:
        planned = plan(self.planner, origin, end, self.habits if wanted.kind == "way" else None)
        way, trip = planned or (None, None)
        labels = [self.called(place) for place in (way.places if way else (origin, end))]
        start, goal = labels[0], labels[-1]
        if way is None and not self.map.ever_joined(origin, end):
            return None
        if wanted.kind == "reach" and way is None:
            return MapAnswer(f"No way leads from the {start} to the {goal}.", "", "no", self._statements_of_places(origin, end))
        if way is None:  # what bars it was told of the places, if it was
            return MapAnswer(*route(goal, start, NO_PATH[0]), NO_PATH[0], self._statements_of_places(origin, end))
        told = self._statements_of(way) or tuple(self.map.told[origin][-1:])
        if wanted.kind == "reach":
            return MapAnswer(f"A way leads from the {start} to the {goal}.", "", "yes", told, way, trip)
        if wanted.kind == "next":
            if not way.words:
                return None
            return MapAnswer(f"On the way from the {start} to the {goal} the {labels[1]} comes first.", "", labels[1], told, way, trip)
        in_places = wanted.in_places or not self.map.is_grid
        if wanted.kind == "count":
            spoken = NUMBERS[len(way.words)] if len(way.words) < len(NUMBERS) else str(len(way.words))
        elif wanted.kind == "by":
            over = self.map.links[frozenset(way.places)].by if len(way.places) == 2 else None
            spoken = over.most_common(1)[0][0] if over else ""
        else:
            spoken = ", ".join(labels[1:] if in_places else way.words) or NO_STEPS
        return MapAnswer(*route(goal, start, spoken), spoken, told, way, trip) if spoken else None

    def _statements_of_places(self, *places: str) -> tuple[int, ...]:
        """The numbers of what was told last of these places."""
        return tuple(dict.fromkeys(number for place in places for number in self.map.told[place][-1:]))

    def _statements_of(self, way: PlannedRoute) -> tuple[int, ...]:
        """The numbers of what was told last of the links of a way."""
        return tuple(dict.fromkeys(self.map.links[frozenset(pair)].told[-1] for pair in pairwise(way.places)))

    def _nearer(self, start: str, one: str, other: str) -> MapAnswer | None:
        """Which of two places has the shorter way from a start; None where neither has."""
        ways = [self.planner.way(start, goal) for goal in (one, other)]
        steps = [len(way.words) if way else math.inf for way in ways]
        if steps[0] == steps[1]:
            return None
        goal = one if steps[0] < steps[1] else other
        told = tuple(dict.fromkeys(number for way in ways if way for number in self._statements_of(way)))
        return MapAnswer(f"From the {self.called(start)} the {self.called(goal)} is nearer.", "", self.called(goal), told)

    def _around(self, wanted: MapQuery, place: str) -> MapAnswer | None:
        near, label = self.map.steps[place], self.map.labels[place]
        if wanted.kind == "exits":
            spoken = ", ".join(word for word in MOVES if word in near)
            return MapAnswer(*route(label, label, spoken), spoken, tuple(self.map.told[place][-1:])) if spoken else None
        label = self.called(place)
        if wanted.word not in near or not (other := self.map.labels[near[wanted.word]]):
            return None
        told = tuple(self.map.links[frozenset((place, near[wanted.word]))].told[-1:])
        sentence = f"The {label} has a {other} in the {wanted.word}."
        return MapAnswer(sentence, f"What does the {label} have in the {wanted.word}?", other, told)

    def _where(self, wanted: MapQuery) -> MapAnswer | None:
        """Where a walker is: the steps summed, put right by the links that are known."""
        walk, cells = self.walks[wanted.who], self.map.cells
        here: str | None = None
        told: list[int] = []
        for number, step in walk:
            told.append(number)
            if step.place:
                here = self.map.find(step.place)
            elif here is not None:
                near = self.map.steps[here].get(step.word)
                if near is None and here in cells:
                    cell = beside(cells[here], step.word)
                    near = next((place for place, at in cells.items() if at == cell), None)
                if near and (link := self.map.links.get(frozenset((here, near)))):
                    told.append(link.told[-1])
                here = near
        if here is None:
            return None
        label = self.map.labels[here]
        return MapAnswer(f"{wanted.who} is at the {label} now.", "", label, tuple(dict.fromkeys(told)))


def route(name: str, start: str, spoken: str) -> tuple[str, str]:
    """A sentence in the wording of a told route, and its question."""
    return f"The {name} walk goes from the {start}: {spoken}.", f"How does the {name} walk go from the {start}?"
