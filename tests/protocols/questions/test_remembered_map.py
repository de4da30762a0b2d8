"""The remembered map over the true one."""

import pytest
from matplotlib.figure import Figure

from hippo_core.methods.presets import load_preset
from hippo_core.methods.spatial.answers import MapAnswerer
from hippo_core.protocols.questions.figures import remembered_map
from hippo_core.protocols.questions.figures.remembered_map import compared, over_the_true_map, pictures
from hippo_core.suites.draw import worlds
from hippo_core.suites.spatial.map import Map

TRUE = Map(
    {
        "mill": {"north": "well", "east": "pier"},
        "well": {"south": "mill"},
        "pier": {"west": "mill", "north": "barn"},
        "barn": {"south": "pier"},
    },
    is_grid=True,
)
WALK = [
    "Step 1: I began at the mill. One could go on to the north and east, but not to the south and west.",
    "Step 2: I went north and came to the well. One could go on to the east and south, but not to the north and west.",
    "Step 3: I went east and came to the barn. One could go on to the west, but not to the north, east and south.",
]
NORTH_WEST, NORTH_EAST, SOUTH_WEST, SOUTH_EAST = (-1, 0), (-1, 1), (0, 0), (0, 1)


def test_links_are_told_apart():
    explored = compared(MapAnswerer(WALK), TRUE)
    assert explored["right"] == {frozenset((SOUTH_WEST, NORTH_WEST))}
    assert explored["stale"] == {frozenset((NORTH_WEST, NORTH_EAST))}  # it was crossed
    assert explored["missing"] == {frozenset((SOUTH_WEST, SOUTH_EAST)), frozenset((SOUTH_EAST, NORTH_EAST))}
    described = compared(MapAnswerer(["The well is north of the mill.", "The barn is east of the well."]), TRUE)
    assert (described["invented"], described["stale"]) == (explored["stale"], set())


def test_a_place_that_no_direction_leads_to_is_in_no_cell_and_the_rest_is_drawn():
    atlas = MapAnswerer(["The well is north of the mill.", "The shed is next to the mill.", "A lane joins the shed and the shop."])
    assert "shop" in atlas.map.steps["shed"] and "shop" not in atlas.map.cells
    assert compared(atlas, TRUE)["right"] == {frozenset((SOUTH_WEST, NORTH_WEST))}
    answer = atlas.answer("Which places does the shortest way from the well to the shop lead through?")
    assert over_the_true_map(atlas, TRUE, answer.route if answer else None).texts[0].get_text() == "1 of 3 links are remembered"


def test_the_figure_says_what_is_right_and_has_a_drift_for_an_explorer():
    explored = over_the_true_map(MapAnswerer(WALK), TRUE)
    assert explored.texts[0].get_text() == "1 of 3 links are remembered, and 1 that is not there"
    assert [axes.get_ylabel() for axes in explored.axes] == ["", "cells"]
    assert [text.get_text() for text in explored.axes[0].get_legend().get_texts()] == [
        "right (1)",
        "missing (2)",
        "stale (1)",
        "invented (0)",
    ]


def test_a_map_that_puts_two_places_on_one_cell_is_drawn():
    panel = Figure().subplots()
    remembered_map._map(panel, {kind: set() for kind in remembered_map.LINKS} | {"invented": {frozenset((SOUTH_WEST,))}}, {}, [])
    assert [list(line.get_xdata()) for line in panel.lines if len(line.get_xdata())] == [[0, 0]]


@pytest.mark.parametrize(("preset", "count"), [("memory/smpd", 1), ("memory/hei_nw", 0)])
def test_a_notebook_draws_the_maps_of_a_spatial_memory(preset, count):
    chosen = load_preset(preset, {"encoder": "own"})
    drawn = pictures(chosen.method(None, chosen.settings), list(worlds("spatial", "paths_5", 2, split="val"))[:1])
    assert [picture[:4] for picture in drawn] == [b"\x89PNG"] * count
