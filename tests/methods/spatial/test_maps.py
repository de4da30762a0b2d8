"""Maps that are remembered, where an explorer is on them, and ways."""

from random import Random

import networkx as nx
import pytest

from hippo_core.methods.spatial.answers import MapAnswerer
from hippo_core.methods.spatial.localise import integrate, localise
from hippo_core.methods.spatial.place_map import build_map
from hippo_core.methods.spatial.planner import Planner
from hippo_core.methods.spatial.reading import Link, VisitStatement, read
from hippo_core.methods.spatial.settings import SpatialSection
from hippo_core.suites.draw import worlds

SQUARE = [
    "The well is north of the mill.",
    "The barn lies east of the well.",
    "The pier is south of the barn.",
    "The pier is east of the mill.",
]
QUESTION = "Which directions lead from the mill to the barn?"


def answer(texts, question, **settings):
    reply = MapAnswerer(texts, SpatialSection(**settings)).answer(question)
    return reply.answer if reply else None


def test_a_closed_link_changes_the_way_and_an_opened_one_changes_it_back():
    assert answer(SQUARE, QUESTION) in ("north, east", "east, north")
    closed = [*SQUARE, "The lane between the mill and the well is closed."]
    assert MapAnswerer(closed).map.steps["mill"] == {"east": "pier"}
    assert answer(closed, QUESTION) == "east, north"
    assert answer([*SQUARE, "The lane between the mill and the pier is closed."], QUESTION) == "north, east"
    assert answer([*closed, SQUARE[0], "The lane between the mill and the pier is closed."], QUESTION) == "north, east"


def test_what_is_said_rests_on_the_statement_that_holds():
    closed = "The lane between the mill and the well is closed."
    atlas = MapAnswerer([closed, *SQUARE[:3], "Lea starts at the mill.", "Lea walks north."])
    for question in (QUESTION, "What does the mill have in the north?", "Where is Lea now, having left the mill?"):
        reply = atlas.answer(question)
        assert reply and 1 in reply.statements and 0 not in reply.statements, question


def test_what_was_told_more_often_loses_to_what_is_told_last():
    texts = [SQUARE[0], *SQUARE, "The lane between the mill and the well is closed."]
    assert answer(texts, QUESTION) == "east, north"
    assert answer(texts, QUESTION, keep=1.0) in ("north, east", "east, north")  # here all count alike, and it was told twice


def test_a_barrier_bars_one_side():
    barred = MapAnswerer([*SQUARE, "A hedge blocks the way north of the mill."])
    assert barred.map.steps["mill"] == {"east": "pier"}
    assert barred.map.steps["well"] == {"south": "mill", "east": "barn"}


def test_a_walker_is_where_the_steps_lead():
    texts = [*SQUARE, "Lea starts at the mill.", "Lea walks north.", "Lea strolls east."]
    assert answer(texts, "Where is Lea now, having left the mill?") == "barn"
    assert answer([*texts, "Lea runs south."], "Where is Lea now, having left the mill?") == "pier"


@pytest.mark.parametrize("seed", range(5))
def test_ways_are_as_long_as_those_of_networkx(seed):
    random = Random(seed)
    cells = [(row, column) for row in range(8) for column in range(8)]
    told, graph = [], nx.Graph()
    for row, column in cells:
        for word, near in (("south", (row + 1, column)), ("east", (row, column + 1))):
            if near in cells and random.random() < 0.6:
                told.append(Link(f"p{row}{column}", f"p{near[0]}{near[1]}", word))
                graph.add_edge(told[-1].origin, told[-1].goal)
    planner = Planner(build_map(enumerate(told)))
    for a, b in [random.sample(sorted(graph), 2) for _ in range(40)]:
        route = planner.route(a, b)
        if route is None:
            assert not nx.has_path(graph, a, b)
        else:
            assert len(route.words) == nx.shortest_path_length(graph, a, b)
            assert all(graph.has_edge(*pair) for pair in zip(route.places, route.places[1:], strict=False))


@pytest.fixture(scope="module")
def walk():
    [world] = worlds("spatial", "explore_hard", 5, seed=3, split="val")
    return [fact.text for fact in world.facts], world


def test_an_explorer_finds_itself_where_moves_are_told_wrong(walk):
    visits = [read(text) for text in walk[0]]
    localised, alone = localise(visits), integrate(visits)
    true = MapAnswerer(walk[0]).map
    assert len(set(localised.cells)) == len(true.steps) < len(set(alone.cells))  # alone, one place is drawn several times
    assert max(localised.spread) > 0


def explored(*steps):
    """The cells of a walk of steps: the told move, the label, the open sides."""
    return localise(
        [VisitStatement(number, move, "", place, frozenset(sides.split())) for number, (move, place, sides) in enumerate(steps)]
    ).cells


HOME = ("", "mill", "north east"), ("north", "well", "south east"), ("east", "barn", "west south"), ("south", "pier", "north west south")


def test_a_known_label_is_the_known_place_though_the_move_there_was_told_wrong():
    assert explored(*HOME, ("south", "mill", "north east"))[-1] == (0, 0)  # it went west
    assert explored(*HOME, ("south", "ford", "north east"))[-1] == (1, 1)


def test_a_told_move_is_believed_sooner_than_that_no_side_has_changed():
    start = ("", "", "north east"), ("north", "", "south"), ("south", "", "north east")
    assert explored(*start, ("north", "", "south west"))[-1] == (-1, 0)  # its west has opened; by the sides alone it went east
    assert explored(*start, ("north", "", "west"))[-1] == (0, 1)  # no way leads back to where it came from: too much to have changed


def test_without_path_integration_places_of_one_label_are_one(walk):
    labels = [label for label in MapAnswerer(walk[0]).map.labels.values() if label]
    assert len(set(labels)) < len(labels)
    flat = MapAnswerer(walk[0], SpatialSection(path_integration=False)).map
    assert set(flat.steps) <= set(labels)


def test_the_map_of_a_walk_answers_all_its_questions(walk):
    texts, world = walk
    atlas = MapAnswerer(texts)
    for item in world.items:
        assert atlas.answer(item.question).answer.replace(" and ", ", ") in [
            one.replace(" and ", ", ") for one in item.answers
        ] or item.kind.endswith("path")


def test_what_is_at_a_place_stands_for_it():
    texts = ["The well is north of the mill.", "The barn lies east of the well.", "You find the Marlow company at the barn."]
    reply = MapAnswerer(texts).answer("Which directions lead from the mill to the Marlow company?")
    assert reply is not None and reply.answer == "north, east" and set(reply.statements) == {0, 1, 2}
    assert MapAnswerer(texts[:2]).answer("Which directions lead from the mill to the Marlow company?") is None
