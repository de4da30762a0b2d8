"""Macros: what was gone again and again, as one step, and how they are learnt from routes that were told.

A route that was told is replayed on the map as it is now. It succeeds where it still leads to its end and no known way is shorter. Of
those that succeed, the sequences of 4 to 6 steps that several have in common become macros, each from one place to another. A policy
(policy.py) learns which macro to take on the way to a goal. This is replay on a model of the world, as in Dyna (Sutton 1991), and macros
are options with a fixed sequence (Sutton, Precup & Singh 1999).

One decision is one question "what next?", to the policy or to the planner. A macro is one decision, a step of the planner another.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hippo_core.methods.spatial.place_map import PlaceMap
from hippo_core.methods.spatial.planner import Planner, Way
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
    """A way as it is gone: its moves, the decisions that it takes, and how many of the moves are steps of macros."""

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
    shortest = planner.way(start, places[-1]) if leads else None
    succeeds = shortest is not None and len(shortest.words) == len(route.steps)
    return Trajectory(route.name, places, route.steps, leads, succeeds)


def mined(trajectories: Sequence[Trajectory]) -> list[Macro]:
    """The macros that trajectories have in common, the best first; none that is part of a longer one with as many successes."""
    totals, successes, longer = Counter[Key](), Counter[Key](), dict[Key, set[Key]]()
    ends: dict[Key, str] = {}
    for one in trajectories:
        windows = dict(_windows(one))
        totals.update(set(windows.values()))
        if not one.succeeds:
            continue
        successes.update(set(windows.values()))
        for (first, last), key in windows.items():
            ends[key] = one.places[last]
            around = (windows.get((first - 1, last)), windows.get((first, last + 1)))
            longer.setdefault(key, set()).update(filter(None, around))
    found = [
        Macro(key[0], ends[key], key[1], count, totals[key])
        for key, count in successes.items()
        if count >= REPEATS and all(successes[other] < count for other in longer[key])
    ]
    return sorted(
        (macro for macro in found if macro.rank >= 0.5), key=lambda macro: (-macro.rank, -len(macro.words), macro.start, macro.words)
    )


def _windows(one: Trajectory) -> Iterator[tuple[tuple[int, int], Key]]:
    """The parts of a trajectory that are as long as macros are: the numbers of their first and last place, and what they are."""
    for first in range(len(one.places)):
        for count in LENGTHS:
            if first + count <= len(one.words):
                yield (first, first + count), (one.places[first], one.words[first : first + count])


def examples(trajectories: Sequence[Trajectory], macros: Sequence[Macro]) -> Counter[Example]:
    """What was done at each place of the trajectories that succeeded, on the way to each later one, by how often."""
    number = {(macro.start, macro.words): index for index, macro in enumerate(macros)}
    found = Counter[Example]()
    for one in trajectories:
        for first, here in enumerate(one.places if one.succeeds else ()):
            for last in range(first + 1, len(one.places)):
                counts = [count for count in LENGTHS if first + count <= last and (here, one.words[first : first + count]) in number]
                taken = number[here, one.words[first : first + counts[-1]]] if counts else -1
                found[here, one.places[last], taken] += 1
    return found


def plan(planner: Planner, start: str, goal: str, habits: Proposer | None = None) -> tuple[Way, Trip] | None:
    """The way from a place to a goal, by macros where they are proposed and by the planner elsewhere; None where none is known.

    A macro is taken once at most, only as far as the map says that it leads on to its end, and not beyond the goal.
    """
    places, words, decisions, by_macros = [start], list[str](), 0, 0
    rest: Way | None = None
    taken: set[Macro] = set()
    while places[-1] != goal:
        here, decisions = places[-1], decisions + 1
        macro = habits.propose(here, goal) if habits else None
        passed = follow(planner.map, here, macro.words) if macro and macro not in taken else ()
        if macro and len(passed) == len(macro.words) + 1:
            taken.add(macro)
            count = passed.index(goal) if goal in passed else len(macro.words)
            places, words, by_macros, rest = [*places, *passed[1 : count + 1]], [*words, *macro.words[:count]], by_macros + count, None
            continue
        rest = rest or planner.way(here, goal)
        if rest is None:
            return None
        places, words = [*places, rest.places[1]], [*words, rest.words[0]]
        rest = Way(rest.places[1:], rest.words[1:])
    return Way(tuple(places), tuple(words)), Trip(len(words), decisions, by_macros)


def of_route(steps: int, is_known: bool) -> Trip:
    """The trip of a route that is asked for by its name: a decision a step, or where it was replayed one for as many as a macro has."""
    return Trip(steps, -(-steps // LENGTHS[-1]), steps) if is_known else Trip(steps, steps)


def table_of(told: Mapping[Example, int], macros: Sequence[Macro]) -> dict[tuple[str, str], Macro]:
    """What a table of the examples proposes, without a policy: at a place and for a goal that it has, what was done there most often."""
    best: dict[tuple[str, str], tuple[int, int]] = {}
    for (here, goal, taken), count in told.items():
        best[here, goal] = max(best.get((here, goal), (0, -1)), (count, taken))
    return {where: macros[taken] for where, (_, taken) in best.items() if taken >= 0}
