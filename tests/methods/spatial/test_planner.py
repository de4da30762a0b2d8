"""Ways on maps that change, what cannot be planned, and the map as a tool."""

from itertools import pairwise
from random import Random

import networkx as nx
import pytest

from hippo_core.methods.spatial.answers import MapAnswerer
from hippo_core.methods.spatial.place_map import PlaceMap, build_map
from hippo_core.methods.spatial.planner import Planner
from hippo_core.methods.spatial.reading import Link
from hippo_core.methods.spatial.tool import SpatialTool
from tests.methods.spatial.test_maps import QUESTION, SQUARE

CLOSED = "The lane between the mill and the well is closed."


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Which directions lead from the mill to the fen?", None),  # a part to which no way was told
        ("Which directions lead from the mill to the mill?", "stay"),
        ("How many steps lead from the mill to the mill?", "zero"),
        ("Which directions lead from the mill to the abbey?", None),  # nobody told of it
    ],
)
def test_what_cannot_be_planned_is_said(question, answer):
    reply = MapAnswerer([*SQUARE, "The fen is north of the dune."]).answer(question)
    assert (reply.answer if reply else None) == answer
    assert reply is None or reply.statements  # it rests on statements


def test_a_way_that_was_told_and_is_closed_is_none():
    texts = [*SQUARE, "The fen is north of the barn.", "The lane between the fen and the barn is closed."]
    assert MapAnswerer(texts).answer("Which directions lead from the mill to the fen?").answer == "none"
    assert SpatialTool(texts).plan("mill", "fen") == "The fen walk goes from the mill: none."
    assert SpatialTool([*SQUARE, "The fen is north of the dune."]).plan("the mill", "fen") == "No way from the mill to the fen was told."


def test_a_one_way_step_is_gone_one_way():
    atlas = MapAnswerer([SQUARE[0], "A hedge blocks the way south of the well."])
    assert atlas.answer("Which directions lead from the mill to the well?").answer == "north"
    assert atlas.answer("Which directions lead from the well to the mill?").answer == "none"


def test_a_tool_plans_reads_and_writes():
    spatial = SpatialTool(SQUARE)
    assert spatial.read("pier") == "The barn is north of the pier. The mill is west of the pier."
    assert spatial.write(CLOSED) == "Remembered: the way from the mill to the well is closed."
    assert spatial.plan("mill", "barn") == "The barn walk goes from the mill: east, north."
    assert spatial.plan("mill", "abbey") == spatial.read("abbey") == "The abbey is not known."
    assert spatial.write("It rained.") == "Nothing of places is read from this."
    assert spatial.write("The old gate is south of the mill.") == "Remembered: the old gate is south of the mill."
    assert spatial.plan("the old gate", "pier") == "The pier walk goes from the old gate: north, east."


def test_a_written_statement_is_as_if_it_had_been_told():
    texts = [
        *SQUARE,
        CLOSED,
        "A hedge blocks the way north of the pier.",
        "The fen is north of the barn.",
        SQUARE[0],
        "There is a lamp at the fen.",
    ]
    atlas = MapAnswerer(SQUARE[:2])
    for number, text in enumerate(texts[2:], 3):
        atlas.write(text)
        anew = MapAnswerer(texts[:number])
        assert atlas.map.steps == anew.map.steps
        assert atlas.answer(QUESTION) == anew.answer(QUESTION)


@pytest.mark.parametrize("seed", range(3))
def test_a_map_that_changes_is_as_one_that_is_built_anew(seed):
    """Links of a random graph, hubs and new places among them, are opened and closed one by one."""
    random, graph, link_map = Random(seed), nx.Graph(), build_map(())
    planner = Planner(link_map)
    for number in range(250):
        a, b = random.sample(range(2 + number // 4), 2)
        a = 0 if random.random() < 0.2 and b else a
        closed = graph.has_edge(a, b) and random.random() < 0.6
        (graph.remove_edge if closed else graph.add_edge)(a, b)
        for _ in range(2):  # told twice, so that what was told before loses
            link_map.observe(number, Link(f"p{a}", f"p{b}", closed=closed))
            planner.update()
        start, goal = random.sample(sorted(graph), 2)
        route = planner.route(f"p{start}", f"p{goal}")
        assert (route is None) == (not nx.has_path(graph, start, goal))
        if route:
            assert len(route.words) == nx.shortest_path_length(graph, start, goal)
            assert all(graph.has_edge(int(place[1:]), int(other[1:])) for place, other in pairwise(route.places))


def test_costs_are_as_networkx_counts_them():
    random, graph, changed = Random(1), nx.DiGraph(), PlaceMap()
    for _ in range(200):
        a, b = random.sample(range(40), 2)
        changed.steps.setdefault(f"{a}", {})[f"{b}"] = f"{b}"
        changed.steps.setdefault(f"{b}", {})
        changed.doubts[f"{a}", f"{b}"] = random.choice((0, 1, 2.5, 7))
        graph.add_edge(f"{a}", f"{b}", weight=changed.cost(f"{a}", f"{b}"))
    planner = Planner(changed)
    for a, b in [random.sample(sorted(graph), 2) for _ in range(60)]:
        route = planner.route(a, b)
        assert (route is None) == (not nx.has_path(graph, a, b))
        if route:
            assert sum(changed.cost(*pair) for pair in pairwise(route.places)) == nx.shortest_path_length(graph, a, b, weight="weight")
