"""What a map answers: a sentence, with the statements that it rests on."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from hippo_core.methods.relational.mentions import mentions
from hippo_core.methods.spatial.gate import Edges
from hippo_core.methods.spatial.localise import LocalisedWalk, explored_map, localise
from hippo_core.methods.spatial.macros import Trip, of_route, plan
from hippo_core.methods.spatial.place_map import LinkMap, PlaceMap, beside, build_map, labelled_map
from hippo_core.methods.spatial.planner import PlannedRoute, Planner
from hippo_core.methods.spatial.reading import (
    Barrier,
    Link,
    MapQuery,
    Observation,
    PlaceRef,
    Route,
    There,
    VisitStatement,
    Walk,
    asked,
    is_plain,
    mark,
    place_names,
    read,
)
from hippo_core.methods.spatial.settings import SpatialSection
from hippo_core.spoken import MOVES, NO_PATH, NO_STEPS, NUMBERS

if TYPE_CHECKING:
    from hippo_core.methods.spatial.learned import PlaceReader
    from hippo_core.methods.spatial.policy import MacroPolicy

LANDMARK = re.compile(r"\b[Tt]he (?P<name>(?:[A-Z][\w'’-]* (?:& )?)+[a-z]+)\b")  # "the Marlow company"


@dataclass(frozen=True)
class MapAnswer:
    """An answer as a sentence in the words of what was told."""

    sentence: str  # "": the statements say it themselves
    question: str  # that it answers in its own words; "": as it was asked
    answer: str  # in the sentence, if known
    statements: tuple[int, ...]  # the numbers of those behind it
    route: PlannedRoute | None = None
    trip: Trip | None = None  # the cost of the route in decisions


class MapAnswerer:
    """The map of a world's statements, and its answers.

    Args:
        texts: the statements of one world, in order of telling; those that tell nothing of places are passed over.
        policy: the macros that a sleep learnt from its routes; None: none.
        reader: the fitted one; None: patterns read.
    """

    def __init__(
        self,
        texts: Sequence[str],
        settings: SpatialSection | None = None,
        policy: "MacroPolicy | None" = None,
        reader: "PlaceReader | None" = None,
    ) -> None:
        self.settings = settings or SpatialSection()
        self.policy = policy if self.settings.macros else None
        self.reader = reader
        self.texts = list(texts)
        self.map = PlaceMap()
        self._build()

    def write(self, text: str) -> Observation | None:
        """Add a statement; returns what is read from it. A link or a barrier between known places changes these places alone; for all else
        the map is built again."""
        self.texts.append(text)
        observation = next(reversed(self._read()[-1]), None)
        ends = {observation.origin, observation.goal} if isinstance(observation, Link) else set[str]()
        ends |= {observation.place} if isinstance(observation, Barrier) else set()
        if observation and isinstance(self.map, LinkMap) and ends and ends <= self.map.labels.keys():
            self.map.observe(len(self.texts) - 1, observation)
            self.planner.update()
            return observation
        self._build()
        return next((observation for number, observation in self.observations if number == len(self.texts) - 1), None)

    def _build(self) -> None:
        plain = [text for text in self.texts if is_plain(text)]
        tagged = self.reader.names(plain) if plain and self.reader else None
        self.names = tagged.names if tagged else place_names(plain)
        self.places = tagged.places if tagged else None  # the nouns of all places; None: each noun behind "the" may be one
        self.observations = observations = [(number, observation) for number, read in enumerate(self._read()) for observation in read]
        self.routes = {observation.name: (number, observation) for number, observation in observations if isinstance(observation, Route)}
        self.there: dict[str, list[tuple[int, str]]] = {}
        self.walks: dict[str, list[tuple[int, Walk]]] = {}
        for number, observation in observations:
            if isinstance(observation, There):
                self.there.setdefault(observation.place, []).append((number, observation.thing))
            elif isinstance(observation, Walk):
                self.walks.setdefault(observation.who, []).append((number, observation))
        self.landmarks = dict(self._landmarks())
        self.map = self._map(observations)
        self.planner = Planner(self.map)

    def _read(self) -> list[list[Observation]]:
        """What is read from each statement."""
        from hippo_core.methods.spatial.learned import read_world

        texts = [mark(text, self.names) for text in self.texts]
        patterns = [read(text) for text in texts]
        return (
            read_world(texts, patterns, self.reader, self.places)
            if self.reader
            else [[observation] if observation is not None else [] for observation in patterns]
        )

    def _map(self, observations: Sequence[tuple[int, Observation]]) -> PlaceMap:
        self.visits = visits = [(number, observation) for number, observation in observations if isinstance(observation, VisitStatement)]
        self.localised: LocalisedWalk | None = None  # of an explorer, if its place is filtered
        if not visits:
            return build_map(observations, Edges(self.settings.keep))  # who tells a map knows it: nothing is weighed
        edges = Edges(self.settings.keep, self.settings.gate)
        if not self.settings.path_integration:
            return labelled_map(visits, edges)
        self.localised = localise([visit for _, visit in visits], self.settings.particles)
        return explored_map(visits, self.localised, edges)

    def called(self, place: str) -> str:
        """The name of a place, as the statements have it."""
        label = self.map.labels[place]
        return self.names.get(label, label)

    def route(self, start: str, goal: str) -> MapAnswer | None:
        """A route between the places of two labels; None where one is not known, or no route can be expressed."""
        origin, end = self.map.find(start), self.map.find(goal)
        return self._route(MapQuery("way", PlaceRef(start), PlaceRef(goal)), origin, end) if origin and end else None

    def _landmarks(self) -> Iterator[tuple[str, tuple[str, int]]]:
        """Named things at places, no places themselves: the name, the place, and the number of the statement."""
        for number, text in enumerate(self.texts):
            if (hit := LANDMARK.search(text)) and read(text) is None:
                there = read(text.replace(hit[0], "it"))
                if isinstance(there, There):
                    yield hit["name"], (there.place, number)

    def answer(self, question: str) -> MapAnswer | None:
        """The map's answer to a question; None where the question is not about the map, or the map does not know. A thing at a place stands
        for the place."""
        for name, (place, number) in self.landmarks.items():
            if (plain := re.sub(rf"\b[Tt]he {re.escape(name)}(?!\w)", f"the {place}", question)) != question:
                reply = self._answer(plain)
                return replace(reply, statements=(*reply.statements, number)) if reply else None
        return self._answer(question)

    def lacks(self, question: str, reply: MapAnswer | None) -> bool:
        """Whether a question, given the map's reply, asks for what the map lacks: a route, a direction, a walk, a thing at a place, or
        where an unknown person is. Without any link there is no map to ask."""
        plain = mark(question, self.names)
        wanted = asked(plain, self.walks.keys(), self.routes.keys())
        if wanted is None or not self.map.links or (reply and reply.answer):
            return False
        if wanted.kind == "there" and not wanted.thing:
            return any(not any(name.key in text.casefold() for text in self.texts) for name in mentions(plain))
        return reply is None and (wanted.kind != "there" or self._place(wanted.start) is not None)

    def _answer(self, question: str) -> MapAnswer | None:
        wanted = self.asked(question)
        if wanted is None:
            return None
        if wanted.kind == "route":
            number, route = self.routes[wanted.start.label]
            trip = of_route(len(route.steps), self.policy is not None and route.name in self.policy.routes)
            return MapAnswer("", f"How does the {route.name} go from the {route.origin}?" if route.origin else "", "", (number,), trip=trip)
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
        return self._route(wanted, start, goal) if goal else None

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
        """Whether both places of a question are on the map, and where it asks what the link leads over, that too."""
        ends = [self._place(place) for place in (wanted.start, wanted.goal) if place]
        link = self.map.links.get(frozenset(end for end in ends if end))
        return None not in ends and (wanted.kind != "by" or bool(link and link.by))

    def _there(self, wanted: MapQuery) -> MapAnswer | None:
        """The thing at a place, where the question asks for it and the map has one alone; else the statements about the place."""
        label, observed = wanted.start.label, self.there.get(wanted.start.label, ())
        numbers = tuple(number for number, _ in observed)
        if not wanted.thing or len(observed) != 1 or not observed[0][1]:
            return MapAnswer("", "", "", numbers) if numbers else None
        thing, name = observed[0][1], self.names.get(label, label)
        return MapAnswer(f"The {name} holds {thing}.", f"What does the {name} hold?", thing.split()[1], numbers)

    def _place(self, place: PlaceRef) -> str | None:
        return self.map.find(place.label, place.next_to)

    def _route(self, wanted: MapQuery, origin: str, end: str) -> MapAnswer | None:
        planned = plan(self.planner, origin, end, self.policy if wanted.kind == "way" else None)
        route, trip = planned or (None, None)
        labels = [self.called(place) for place in (route.places if route else (origin, end))]
        start, goal = labels[0], labels[-1]
        if route is None and not self.map.ever_joined(origin, end):
            return None
        if wanted.kind == "reach" and route is None:
            return MapAnswer(f"No way leads from the {start} to the {goal}.", "", "no", self._latest_statements(origin, end))
        if route is None:  # the latest statements about the places may say what bars it
            return MapAnswer(*route_sentence(goal, start, NO_PATH[0]), NO_PATH[0], self._latest_statements(origin, end))
        statements = self._statements_of(route) or tuple(self.map.statements[origin][-1:])
        if wanted.kind == "reach":
            return MapAnswer(f"A way leads from the {start} to the {goal}.", "", "yes", statements, route, trip)
        if wanted.kind == "next":
            if not route.words:
                return None
            return MapAnswer(
                f"On the way from the {start} to the {goal} the {labels[1]} comes first.", "", labels[1], statements, route, trip
            )
        in_places = wanted.in_places or not self.map.is_grid
        if wanted.kind == "count":
            spoken = NUMBERS[len(route.words)] if len(route.words) < len(NUMBERS) else str(len(route.words))
        elif wanted.kind == "by":
            over = self.map.links[frozenset(route.places)].by if len(route.places) == 2 else None
            spoken = over.most_common(1)[0][0] if over else ""
        else:
            spoken = ", ".join(labels[1:] if in_places else route.words) or NO_STEPS
        return MapAnswer(*route_sentence(goal, start, spoken), spoken, statements, route, trip) if spoken else None

    def _latest_statements(self, *places: str) -> tuple[int, ...]:
        """The numbers of the latest statement about each of these places."""
        return tuple(dict.fromkeys(number for place in places for number in self.map.statements[place][-1:]))

    def _statements_of(self, route: PlannedRoute) -> tuple[int, ...]:
        """The numbers of the latest statement about each link of a route."""
        return tuple(dict.fromkeys(self.map.links[frozenset(pair)].statements[-1] for pair in pairwise(route.places)))

    def _nearer(self, start: str, first: str, second: str) -> MapAnswer | None:
        """Which of two places has the shorter route from a start; None where neither has."""
        routes = [self.planner.route(start, goal) for goal in (first, second)]
        steps = [len(route.words) if route else math.inf for route in routes]
        if steps[0] == steps[1]:
            return None
        goal = first if steps[0] < steps[1] else second
        statements = tuple(dict.fromkeys(number for route in routes if route for number in self._statements_of(route)))
        return MapAnswer(f"From the {self.called(start)} the {self.called(goal)} is nearer.", "", self.called(goal), statements)

    def _around(self, wanted: MapQuery, place: str) -> MapAnswer | None:
        near, label = self.map.steps[place], self.map.labels[place]
        if wanted.kind == "exits":
            spoken = ", ".join(word for word in MOVES if word in near)
            return MapAnswer(*route_sentence(label, label, spoken), spoken, tuple(self.map.statements[place][-1:])) if spoken else None
        label = self.called(place)
        if wanted.word not in near or not (other := self.map.labels[near[wanted.word]]):
            return None
        statements = tuple(self.map.links[frozenset((place, near[wanted.word]))].statements[-1:])
        sentence = f"The {label} has a {other} in the {wanted.word}."
        return MapAnswer(sentence, f"What does the {label} have in the {wanted.word}?", other, statements)

    def _where(self, wanted: MapQuery) -> MapAnswer | None:
        """Where a walker is: the steps summed, put right by the links that are known."""
        walk, cells = self.walks[wanted.who], self.map.cells
        here: str | None = None
        statements: list[int] = []
        for number, step in walk:
            statements.append(number)
            if step.place:
                here = self.map.find(step.place)
            elif here is not None:
                near = self.map.steps[here].get(step.word)
                if near is None and here in cells:
                    cell = beside(cells[here], step.word)
                    near = next((place for place, at in cells.items() if at == cell), None)
                if near and (link := self.map.links.get(frozenset((here, near)))):
                    statements.append(link.statements[-1])
                here = near
        if here is None:
            return None
        label = self.map.labels[here]
        return MapAnswer(f"{wanted.who} is at the {label} now.", "", label, tuple(dict.fromkeys(statements)))


def route_sentence(name: str, start: str, spoken: str) -> tuple[str, str]:
    """A sentence in the wording of a stated route, and its question."""
    return f"The {name} walk goes from the {start}: {spoken}.", f"How does the {name} walk go from the {start}?"
