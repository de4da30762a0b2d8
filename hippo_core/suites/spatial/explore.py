"""Exploration: a walker goes round a grid and reports, step by step, where it is, which sides are open, and what is beyond them.

    told     Step 7: I went north and came to the mill. It was open to the east and south, and blocked to the north and west. ...
    slots    {step: 7, move: north, place: mill, open: east and south, walls: north and west, <direction>: a label seen there}

Each round visits every place. Between rounds links may close and walls open, so that an early observation is *stale*. A wall may once be
reported open (*spurious*), but not in the last round. Labels and moves may be wrong (*noise*); places may share a label (*aliases*) or
show none. The truth is the map of the last round, which reports all sides of all places correctly.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hippo_core.spoken import MOVES, OPPOSITE
from hippo_core.suites import lexicon
from hippo_core.suites.reworded import sentence
from hippo_core.suites.spatial import words as words
from hippo_core.suites.spatial.facts import MapNarration, Sentence, SpatialSettings, draw_edge_labels
from hippo_core.suites.spatial.map import Link, Map
from hippo_core.suites.splits import belongs
from hippo_core.suites.types import Split, WorldSpec

WORDINGS = 60  # tries to word a step such that it belongs to the split


@dataclass(frozen=True)
class ExploredCell:
    """A step of the walk: the round, the place, the move that led there (None at first), its open sides, and the labels beyond some."""

    round: int
    place: str
    move: str | None
    by: str | None
    open: tuple[str, ...]
    label: str | None
    seen: dict[str, str]


def explore(random: Random, settings: SpatialSettings, spec: WorldSpec, drawn: Map) -> MapNarration | None:
    """All facts of an explored world. None where no wording belongs to the split, or a place's own label does not prevail."""
    maps = maps_of_rounds(random, drawn, settings)
    labels = draw_aliases(random, maps[-1], settings.aliases)
    edge_labels = draw_edge_labels(random, union(maps)) if settings.edge_labels else {}
    visits = observe(random, settings, maps, labels, edge_labels)
    reported = misreport(random, visits, settings.noise, sorted(set(labels.values())))
    if not labels_prevail(reported, labels):
        return None
    new = spec.split != "train" and random.random() < settings.new_names
    who = None if random.random() < settings.first_person else random.choice(lexicon.names(held_out=new))
    sentences = [render_visit(random, number, visit, who, spec.split) for number, visit in enumerate(reported, 1)]
    if None in sentences:
        return None
    about = {"context_key": "the walk", "provenance": "observed"}
    facts = tuple(spec.fact(number, step.text, step.slots, **about) for number, step in enumerate(sentences) if step)
    right = [visit.label == labels[visit.place] for visit in reported]
    by_trust = sorted(zip(right, visits, facts, strict=True), key=lambda entry: (entry[1].round == len(maps) - 1, entry[0]))
    last = {visit.place: fact.id for _, visit, fact in by_trust}
    order = {fact.id: fact.time for fact in facts}
    links = {link: max((last[place] for place in link), key=order.__getitem__) for link in maps[-1].links}
    crossings = {
        frozenset((visits[number - 1].place, visits[number].place)): (facts[number - 1].id, facts[number].id)
        for number in range(1, len(visits))
        if right[number - 1] and right[number] and reported[number].move == visits[number].move
    }
    crossings = {link: crossings[link] for link in crossings.keys() & links}
    changed = maps[0].links ^ maps[-1].links
    about = {"edge_labels": edge_labels, "crossings": crossings, "labels": labels, "visits": last}
    return MapNarration(maps[-1], facts, links, **about, first=maps[0], changed=changed)


def union(maps: list[Map]) -> Map:
    """The map with the links of all of these."""
    return Map({place: {word: b for part in maps for word, b in part.steps[place].items()} for place in maps[0].steps}, is_grid=True)


def walls_of(drawn: Map) -> list[tuple[str, str, str]]:
    """(place, direction, place beyond) for every two neighbouring places of a connected grid without a link, seen from one of them."""
    start = drawn.places[0]
    cells, waiting = {start: (0, 0)}, [start]
    while waiting:
        here = waiting.pop()
        for word, near in drawn.steps[here].items():
            if near not in cells:
                cells[near] = beside(cells[here], word)
                waiting.append(near)
    place_at = {cell: place for place, cell in cells.items()}
    sides = ((place, word, place_at.get(beside(cells[place], word))) for place in drawn.places for word in MOVES)
    return [(place, word, near) for place, word, near in sides if near and place < near and word not in drawn.steps[place]]


def beside(cell: tuple[int, int], word: str) -> tuple[int, int]:
    """The cell that a step leads to."""
    down, right = MOVES[word]
    return cell[0] + down, cell[1] + right


def maps_of_rounds(random: Random, drawn: Map, settings: SpatialSettings) -> list[Map]:
    """The map in each round: each side changes once at most, by the probability `stale`. All places stay in reach."""
    sides = [(a, word, b) for a, near in drawn.steps.items() for word, b in near.items() if a < b] + walls_of(drawn)
    changes = {side: random.randrange(1, settings.rounds) for side in sides if settings.stale and random.random() < settings.stale}
    maps = [drawn]
    for number in range(1, settings.rounds):
        now = maps[-1]
        for a, word, b in (edge for edge, first in changes.items() if first == number):
            if word not in now.steps[a]:
                steps = {**now.steps, a: {**now.steps[a], word: b}, b: {**now.steps[b], OPPOSITE[word]: a}}
                now = Map(steps, is_grid=True)
            elif max((closed := now.without([frozenset((a, b))])).distances[a].values()) < float("inf"):
                now = closed
        maps.append(now)
    return maps


def draw_aliases(random: Random, drawn: Map, share: float) -> dict[str, str]:
    """The label of each place: its own name, or, for about this share of them, one name for two that have no neighbour in common."""
    labels = {place: place for place in drawn.places}
    free = random.sample(drawn.places, len(drawn.places))
    for _ in range(round(share * len(free) / 2)):
        first = free.pop()
        far = [place for place in free if drawn.distances[first][place] > 2]
        if far:
            labels[far[0]] = first
            free.remove(far[0])
    return labels


def walk(random: Random, maps: list[Map]) -> Iterator[tuple[int, str, str | None]]:
    """(round, place, move) step by step: a short route leads to the nearest place that this round has not visited yet."""
    here = random.choice(maps[0].places)
    yield 0, here, None
    for number, now in enumerate(maps):
        waiting = set(now.places) - ({here} if number == 0 else set())
        while waiting:
            away = now.distances[here]
            nearest = min(away[place] for place in waiting if place != here)
            goal = random.choice(sorted(place for place in waiting if away[place] == nearest))
            for move in now.route(random, here, goal):
                here = now.steps[here][move]
                waiting.discard(here)
                yield number, here, move


def observe(
    random: Random, settings: SpatialSettings, maps: list[Map], labels: dict[str, str], edge_labels: dict[Link, str]
) -> list[ExploredCell]:
    """The walk with its observations, and the spurious openings: a wall that never opens is reported open on one early visit."""
    visits: list[ExploredCell] = []
    for number, place, move in walk(random, maps):
        by = edge_labels.get(frozenset((visits[-1].place, place))) if move else None
        label = None if random.random() < settings.unlabeled else labels[place]
        near = maps[number].steps[place]
        seen = {word: labels[near[word]] for word in MOVES if word in near and random.random() < settings.sight}
        visits.append(ExploredCell(number, place, move, by, tuple(word for word in MOVES if word in near), label, seen))
    for a, word, b in walls_of(union(maps)) if settings.spurious else []:
        early = [number for number, visit in enumerate(visits) if visit.place in (a, b) and visit.round < len(maps) - 1]
        if random.random() < settings.spurious:
            number = random.choice(early)
            visit = visits[number]
            side, beyond = (word, b) if visit.place == a else (OPPOSITE[word], a)
            seen = {**visit.seen, **({side: labels[beyond]} if random.random() < settings.sight else {})}
            visits[number] = replace(visit, open=tuple(word for word in MOVES if word in (*visit.open, side)), seen=seen)
    return visits


def misreport(random: Random, visits: list[ExploredCell], noise: float, labels: list[str]) -> list[ExploredCell]:
    """The visits with each move, label and sight wrong with probability `noise`: another direction, another place's label."""

    def wrong(value: str, among: list[str]) -> str:
        return random.choice([option for option in among if option != value]) if random.random() < noise else value

    return [
        replace(
            visit,
            move=visit.move and wrong(visit.move, list(MOVES)),
            label=visit.label and wrong(visit.label, labels),
            seen={word: wrong(label, labels) for word, label in visit.seen.items()},
        )
        for visit in visits
    ]


def labels_prevail(visits: list[ExploredCell], labels: dict[str, str]) -> bool:
    """Whether each place shows its own label on more of its visits than any other."""
    shown: dict[str, Counter[str]] = {place: Counter() for place in labels}
    for visit in visits:
        if visit.label:
            shown[visit.place][visit.label] += 1
    return all(counts[labels[place]] > sum(counts.values()) / 2 for place, counts in shown.items())


def render_visit(random: Random, number: int, visit: ExploredCell, who: str | None, split: Split) -> Sentence | None:
    """A visit in words whose hash says this split; None where there are none. `who`: the walker's name; None says "I"."""
    walls = [word for word in MOVES if word not in visit.open]
    slots = {"step": str(number), "move": visit.move, "by": visit.by, "place": visit.label, "who": who}
    slots |= {"open": words.listed(visit.open), "walls": words.listed(walls), **visit.seen}
    filled = {name: value for name, value in slots.items() if value}
    for _ in range(WORDINGS):
        text = word_visit(random, filled, visit.seen)
        if belongs(text, split):
            return Sentence(text, filled)
    return None


def word_visit(
    random: Random,
    slots: Mapping[str, str],
    seen: Iterable[str],
    forms: Mapping[str, Sequence[Any]] = words.FORMS,
    marker: str = "Step {step}: ",
    sights_first: bool = False,
) -> str:
    """A step in words, from its slots and the directions in which something was seen. `forms`: of its parts, by kind."""
    step, who = int(slots["step"]), slots.get("who")
    speaker = {"who": who, "whom": who, "whose": f"{who}'s"} if who else {"who": "I", "whom": "me", "whose": "my"}
    place = f"the {slots['place']}" if "place" in slots else random.choice(forms["unlabeled"])
    move = " ".join(filter(None, [slots.get("move"), words.edge_phrase(slots["by"]) if "by" in slots else ""]))
    came = random.choice(forms["arrival" if move else "first_step"]).format(move=move, place=place, **speaker)
    sides = random.choice(forms["sides"])["walls" in slots].format(open=slots["open"], walls=slots.get("walls"), **speaker)
    sights = [random.choice(forms["sight"]).format(direction=word, place=slots[word], **speaker) for word in seen]
    beginning = marker.format(step=step, nth=ordinal(step))
    rest = [*sights, sides] if sights_first else [sides, *sights]
    return " ".join([beginning + (came if beginning.endswith(", ") else sentence(came)), *map(sentence, rest)])


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, ..."""
    last = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else last}"
