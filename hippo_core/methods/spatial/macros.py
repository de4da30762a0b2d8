"""Macros: sequences of steps that recur in the stated routes, each taken as one step, and how they are learnt.

Routes are replayed on the map. Sequences of 4 to 6 steps that several successful ones share become macros. A policy (policy.py) learns
which to take on the way to a goal. This is replay on a model of the world, as in Dyna (Sutton 1991), and macros are options with a fixed
sequence (Sutton, Precup & Singh 1999). A macro is one decision, a step of the planner another.
"""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hippo_core.methods.spatial.place_map import PlaceMap
from hippo_core.methods.spatial.planner import PlannedRoute, Planner
from hippo_core.methods.spatial.reading import Route

LENGTHS = range(4, 7)  # steps of a macro
REPEATS = 2  # routes that have it in common, at least
Key = tuple[str, tuple[str, ...]]  # a place, and the steps from there
Example = tuple[str, str, int]  # a place, a goal, and the number of the macro that was taken there; -1: none


@dataclass(frozen=True, slots=True)
class Macro:
    """Steps from one place to another; how many routes have them (`total`), and how many of these succeeded in replay."""

    start: str
    goal: str
    words: tuple[str, ...]
    success: int
    total: int

    @property
    def rank(self) -> float:
        """How likely it succeeds: Laplace's rule of succession."""
        return (self.success + 1) / (self.total + 2)


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A route replayed on the map: the places as far as it leads, all its steps; `leads`: to its end; `succeeds`: and no way is shorter."""

    name: str
    places: tuple[str, ...]
    words: tuple[str, ...]
    leads: bool
    succeeds: bool


class Proposer(Protocol):
    """What knows macros."""

    def propose(self, here: str, goal: str) -> Macro | None:
        """The macro to take here on the way to a goal; None: none."""
        ...


@dataclass(frozen=True, slots=True)
class Trip:
    """The cost of a route: its moves, the decisions that it takes, and how many of the moves are steps of macros."""

    moves: int
    decisions: int
    macro_moves: int = 0

    @property
    def steps(self) -> int:
        """Moves and decisions."""
        return self.moves + self.decisions


def follow(place_map: PlaceMap, start: str, words: Sequence[str]) -> tuple[str, ...]:
    """The places that steps lead through on a map, from the start on, as far as they lead."""
    places = [start]
    for word in words:
        if (near := place_map.steps.get(places[-1], {}).get(word)) is None:
            break
        places.append(near)
    return tuple(places)


def replayed(route: Route, planner: Planner) -> Trajectory | None:
    """A route replayed on a map; None where its origin is not known there."""
    start = planner.map.find(route.origin)
    if start is None or not route.steps:
        return None
    places = follow(planner.map, start, route.steps)
    leads = len(places) == len(route.steps) + 1
    shortest = planner.route(start, places[-1]) if leads else None
    succeeds = shortest is not None and len(shortest.words) == len(route.steps)
    return Trajectory(route.name, places, route.steps, leads, succeeds)


def mined(trajectories: Sequence[Trajectory]) -> list[Macro]:
    """The macros that trajectories have in common, the best first: of the sequences that several have, those which cut them into the fewest
    decisions."""
    totals, successes, ends = Counter[Key](), Counter[Key](), dict[Key, str]()
    for trajectory in trajectories:
        windows = dict(_windows(trajectory))
        totals.update(windows.keys())
        if trajectory.succeeds:
            successes.update(windows.keys())
            ends |= windows
    common = {key for key, count in successes.items() if count >= REPEATS}
    used = Counter[Key]()
    for trajectory in trajectories:
        if trajectory.succeeds:
            used.update(set(_cut(trajectory, 0, len(trajectory.words), common)))
    macros = [Macro(key[0], ends[key], key[1], successes[key], totals[key]) for key, count in used.items() if count >= REPEATS]
    good = (macro for macro in macros if macro.rank >= 0.5)
    return sorted(good, key=lambda macro: (-macro.rank, -len(macro.words), macro.start, macro.words))


def _windows(trajectory: Trajectory) -> Iterator[tuple[Key, str]]:
    """The parts of a trajectory that are as long as macros are, and where they end ("": where it does not lead any more)."""
    for first, here in enumerate(trajectory.places):
        for count in LENGTHS:
            if first + count <= len(trajectory.words):
                yield (
                    (here, trajectory.words[first : first + count]),
                    trajectory.places[first + count] if first + count < len(trajectory.places) else "",
                )


def _cut(trajectory: Trajectory, first: int, last: int, known: Container[Key]) -> list[Key]:
    """The macros by which one gets from one place of a trajectory to another in the fewest decisions; the longest first among equals."""
    best: dict[int, tuple[int, list[Key]]] = {last: (0, [])}
    for here in range(last - 1, first - 1, -1):
        options = [(best[here + 1][0] + 1, best[here + 1][1])]
        for count in LENGTHS:
            key = (trajectory.places[here], trajectory.words[here : here + count])
            if here + count <= last and key in known:
                options.append((best[here + count][0] + 1, [key, *best[here + count][1]]))
        best[here] = min(options[::-1], key=lambda option: option[0])
    return best[first][1]


def examples(trajectories: Sequence[Trajectory], macros: Sequence[Macro]) -> Counter[Example]:
    """What was done at each place of the successful trajectories, on the way to each later one, with counts."""
    number = {(macro.start, macro.words): index for index, macro in enumerate(macros)}
    counts = Counter[Example]()
    for trajectory in trajectories:
        for first, here in enumerate(trajectory.places if trajectory.succeeds else ()):
            for last in range(first + 1, len(trajectory.places)):
                used = [key for key in _cut(trajectory, first, last, number)[:1] if key[0] == here]
                counts[here, trajectory.places[last], number[used[0]] if used else -1] += 1
    return counts


@dataclass
class Guide:
    """What answers "what next?" on the way to a goal: a macro where one is proposed, else the planner's next step. A macro is taken once at
    most, only where the map says that it leads to its end, and not beyond the goal."""

    planner: Planner
    goal: str
    proposer: Proposer | None = None
    used: set[Macro] = field(default_factory=set)
    rest: PlannedRoute | None = None  # what the planner has planned, from the last step that it gave

    def next(self, here: str) -> tuple[tuple[str, ...], bool]:
        """The next steps from here, and whether they are a macro's; none where no way is known."""
        macro = self.proposer.propose(here, self.goal) if self.proposer else None
        if macro and macro not in self.used:
            passed = follow(self.planner.map, here, macro.words)
            if len(passed) == len(macro.words) + 1:
                self.used.add(macro)
                return macro.words[: passed.index(self.goal) if self.goal in passed else None], True
        if self.rest is None or self.rest.places[0] != here:
            self.rest = self.planner.route(here, self.goal)
        if self.rest is None:
            return (), False
        word, self.rest = self.rest.words[0], PlannedRoute(self.rest.places[1:], self.rest.words[1:])
        return (word,), False


def plan(planner: Planner, start: str, goal: str, proposer: Proposer | None = None) -> tuple[PlannedRoute, Trip] | None:
    """The way from a place to a goal on the map, as a guide leads; None where none is known."""
    guide, places, words, decisions, by_macros = Guide(planner, goal, proposer), [start], list[str](), 0, 0
    while places[-1] != goal:
        steps, is_macro = guide.next(places[-1])
        if not steps:
            return None
        words += steps
        places += follow(planner.map, places[-1], steps)[1:]
        decisions, by_macros = decisions + 1, by_macros + is_macro * len(steps)
    return PlannedRoute(tuple(places), tuple(words)), Trip(len(words), decisions, by_macros)


def of_route(steps: int, is_known: bool) -> Trip:
    """The trip of a route that is asked for by its name: a decision a step, or where it was replayed one for as many as a macro has."""
    return Trip(steps, -(-steps // LENGTHS[-1]), steps) if is_known else Trip(steps, steps)
