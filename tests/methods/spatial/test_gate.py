"""The gate of the map: which links that are told of become edges."""

import pytest

from hippo_core.methods.spatial.answers import MapAnswerer
from hippo_core.methods.spatial.gate import Edges
from hippo_core.methods.spatial.settings import BlockSettings, SpatialSection
from hippo_core.suites.draw import worlds
from tests.methods.spatial.test_maps import SQUARE

OPEN, CLOSED = True, False


def edges_of(tellings, threshold=1.2):
    """The edges after what was told of links, each "ab" a link of a and b."""
    edges = Edges(gate=BlockSettings(enabled=threshold is not None, block_threshold=threshold or 1.2))
    for number, (link, is_open) in enumerate(tellings):
        edges.observe(frozenset(link), number, is_open)
    return edges


def stored(tellings, threshold=1.2):
    return {"".join(sorted(link)) for link in edges_of(tellings, threshold).stored}


def test_each_threshold_makes_another_map():
    around = [(link, OPEN) for link in ("ab", "ac", "ad") for _ in range(2)]
    once, twice = [("xy", OPEN)], [("ae", OPEN), ("ae", CLOSED), ("ae", OPEN)]
    wrong = [("pq", OPEN), ("pq", CLOSED)]
    around_edges = {"ab", "ac", "ad"}
    tellings = [*around, *once, *twice, *wrong]
    assert stored(tellings, None) == around_edges | {"xy", "ae", "pq"}
    assert stored(tellings, 1.2) == around_edges | {"xy", "ae"}
    assert stored(tellings, 1.0) == around_edges | {"ae"}
    assert stored(tellings, 0.8) == around_edges


def test_what_is_blocked_adds_to_its_evidence_and_passes_once_it_is_told_again():
    edges = edges_of([("ab", CLOSED), ("ab", OPEN)])
    assert (edges.stored, edges.decisions) == (set(), {"block": 1})
    assert edges.evidence[frozenset("ab")].statements == [0, 1]
    edges.observe(frozenset("ab"), 2, OPEN)
    edges.observe(frozenset("ab"), 3, OPEN)
    assert edges.decisions == {"block": 1, "insert": 1, "aggregate": 1}
    assert edges.open[frozenset("ab")].open == 1.625  # all four count, the latest most


def test_an_edge_that_is_held_to_be_closed_is_dropped_and_without_a_gate_it_stays_but_is_not_gone():
    tellings = [("ab", OPEN), ("ab", CLOSED)]
    dropped, kept = edges_of(tellings), edges_of(tellings, None)
    assert (dropped.stored, dropped.degrees["a"]) == (set(), 0)
    assert kept.stored == {frozenset("ab")}
    assert kept.open == {}


def test_a_place_with_many_edges_takes_a_new_one_less_easily():
    full = [(link, OPEN) for link in ("ab", "ac", "ad", "af")]
    assert "ae" not in stored([*full, ("ae", OPEN)])
    assert "ae" in stored([*full[:3], ("ae", OPEN)])


def test_who_tells_a_map_is_not_weighed():
    strict = SpatialSection(gate=BlockSettings(block_threshold=0.0))
    assert MapAnswerer(SQUARE, strict).map.steps == MapAnswerer(SQUARE).map.steps
    assert MapAnswerer(SQUARE, strict).map.edges.decisions["block"] == 0


@pytest.mark.parametrize("integrated", [True, False])
def test_an_explorers_map_keeps_its_ways_and_loses_edges_that_are_not_there(integrated):
    [world] = worlds("spatial", "explore_hard", 5, split="val")
    texts = [fact.text for fact in world.facts]
    gated = MapAnswerer(texts, SpatialSection(path_integration=integrated)).map
    plain = MapAnswerer(texts, SpatialSection(path_integration=integrated, gate=BlockSettings(enabled=False))).map
    assert gated.edges.stored < plain.edges.stored
    assert gated.edges.decisions["aggregate"] > 0
    if integrated:
        assert gated.steps == plain.steps
