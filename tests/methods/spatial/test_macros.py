"""Macros: what is learnt from routes that were told, and how it is used on the way."""

from itertools import pairwise

import pytest

from hippo_core.errors import LabError
from hippo_core.methods.base import Observation, Query
from hippo_core.methods.spatial.answers import MapAnswerer
from hippo_core.methods.spatial.macros import Macro, mined, of_route, plan, replayed
from hippo_core.methods.spatial.policy import MacroPolicy, MacroPolicyCodec, learn
from hippo_core.methods.spatial.reading import Route
from hippo_core.store import TraceStore
from hippo_core.store.trace import Statement
from tests.methods.asking import bound

NAMES = ("mill", "well", "barn", "pier", "cabin", "fen", "dune", "abbey", "quay")
LINE = [f"The {b} lies east of the {a}." for a, b in pairwise(NAMES)]
LOOP = ["The forge is south of the mill.", "The shed is east of the forge.", "The shed is south of the well."]
ALONG = "The quay walk goes from the mill: " + ", ".join(["east"] * 8) + "."
QUESTION = "Which directions lead from the mill to the quay?"


def trajectories(*texts):
    atlas = MapAnswerer([*LINE, *LOOP, *texts])
    return atlas, [replayed(trajectory, atlas.planner) for _, trajectory in atlas.observations if isinstance(trajectory, Route)]


class Always:
    """Proposes one macro wherever it starts."""

    def __init__(self, macro):
        self.macro = macro

    def propose(self, here, goal):
        return self.macro if here == self.macro.start else None


def test_what_routes_have_in_common_is_cut_into_the_fewest_decisions():
    _, routes = trajectories(ALONG, ALONG)
    macros = [(macro.start, macro.goal, len(macro.words), macro.success, macro.total) for macro in mined(routes)]
    assert macros == [("cabin", "quay", 4, 2, 2), ("mill", "cabin", 4, 2, 2)]
    assert mined(routes[:1]) == []


def test_a_route_succeeds_where_it_leads_to_its_end_and_no_way_is_shorter():
    _, [round_about, beyond, lost] = trajectories(
        "The well walk goes from the mill: south, east, north.",
        "The moor walk goes from the quay: west, west, west, west, north.",
        "The moor walk goes from the moor: west.",
    )
    assert (round_about.leads, round_about.succeeds) == (True, False)
    assert (beyond.leads, beyond.places) == (False, NAMES[:3:-1])
    assert lost is None
    _, [closed] = trajectories(ALONG, "The lane between the fen and the dune is closed.")
    assert (closed.leads, closed.succeeds) == (False, False)


def test_failures_count_against_a_macro():
    _, routes = trajectories(ALONG, ALONG)
    failed = [MapAnswerer([*LINE, ALONG, "The lane between the dune and the abbey is closed."])]
    broken = [
        replayed(trajectory, atlas.planner) for atlas in failed for _, trajectory in atlas.observations if isinstance(trajectory, Route)
    ]
    assert {trajectory.start: trajectory.rank for trajectory in mined([*routes, *broken])} == {"mill": 3 / 5, "cabin": 3 / 5}
    assert mined([*routes, *broken * 3]) == []


def test_the_policy_does_what_was_done_and_nothing_where_nobody_went():
    _, routes = trajectories(ALONG, ALONG)
    policy = learn(routes)
    assert policy.propose("mill", "quay").goal == "cabin"
    assert policy.propose("cabin", "quay").goal == "quay"
    assert [policy.propose("mill", goal) for goal in ("barn", "forge", "moor")] == [None] * 3
    assert policy.propose("well", "quay") is None  # no macro starts there


def test_the_policy_follows_what_it_is_taught():
    _, routes = trajectories(ALONG, ALONG, ALONG.replace(" quay ", " dune ").replace("east, east, east.", "east."))
    first = learn(routes[:2])
    other = learn([*routes[:2], *[routes[2]] * 6])  # six steps at once now, more often than four and four
    assert [trajectory.words for trajectory in first.macros] != [trajectory.words for trajectory in other.macros]
    assert other.propose("mill", "dune").goal == "dune"
    assert first.propose("mill", "dune").goal == "cabin"


def test_the_same_routes_and_seed_give_the_same_bytes_and_these_come_back():
    _, routes = trajectories(ALONG, ALONG)
    policy = learn(routes)
    assert policy.to_bytes() == learn(routes).to_bytes()
    assert policy.to_bytes() != learn(routes, seed=1).to_bytes()
    back = MacroPolicyCodec().from_json(MacroPolicyCodec().to_json(policy))
    assert (back.macros, back.places, back.routes, back.to_bytes()) == (policy.macros, policy.places, policy.routes, policy.to_bytes())
    assert learn([]).to_bytes() == MacroPolicy.from_bytes(learn([]).to_bytes()).to_bytes()
    codec = MacroPolicyCodec()
    assert codec.decode(codec.encode(None)) is None
    for wrong in (b"weights", policy.to_bytes()[:-8]):
        with pytest.raises(LabError, match="safetensors"):
            codec.decode(wrong)
    with pytest.raises(LabError, match="spatial memory sleep"):
        codec.check("macro")
    with pytest.raises(LabError, match="has weights"):
        MacroPolicy(policy.macros, policy.places[1:], policy.routes, policy.weights)


def test_a_macro_is_one_decision():
    atlas, routes = trajectories(ALONG, ALONG)
    route, trip = plan(atlas.planner, "mill", "quay", learn(routes))
    assert (route.words, trip.moves, trip.decisions, trip.macro_moves, trip.steps) == (("east",) * 8, 8, 2, 8, 10)
    same, without = plan(atlas.planner, "mill", "quay")
    assert (same, without.decisions, without.steps) == (route, 8, 16)
    assert [of_route(count, True).decisions for count in (4, 6, 7)] == [1, 1, 2]
    assert of_route(5, False).steps == 10


def test_a_macro_stops_at_the_goal_and_is_not_taken_where_it_does_not_lead():
    atlas, _ = trajectories()
    past = Always(Macro("mill", "cabin", ("east",) * 4, 2, 2))
    route, trip = plan(atlas.planner, "mill", "pier", past)
    assert (route.words, trip.decisions) == (("east",) * 3, 1)
    into_the_wall = Always(Macro("mill", "cabin", ("north",) * 4, 2, 2))
    assert plan(atlas.planner, "mill", "pier", into_the_wall)[1].macro_moves == 0


@pytest.fixture
def slept(tiny, tmp_path):
    """A store that was told a line and its way twice, before and after a sleep, and what brings an answer from its traces."""
    memory = bound("memory/smpd", tiny, encoder="own")
    with TraceStore.create(tmp_path, "s", memory.identity()) as store:
        texts = [*LINE, ALONG, ALONG]
        memory.teach([Observation(Statement(f"f{number}", "w", text, number)) for number, text in enumerate(texts)], store)
        yield memory, store, list(memory.replay("w", store))


def retrieve(tiny, store, question=QUESTION, **overrides):
    method, traces = bound("memory/smpd", tiny, **{"encoder": "own", **overrides}), store.traces("w")
    return method.open(traces)(Query(question, tuple(trace.source for trace in traces)))


def test_a_sleep_makes_macros_that_save_decisions_and_change_no_answer(tiny, slept):
    _, store, rows = slept
    assert [(row["recalled"], row["cycle"]) for row in rows] == [(1.0, 1)] * 2
    on, off = retrieve(tiny, store), retrieve(tiny, store, **{"spatial.macros": False})
    assert on.restated == off.restated
    assert [on.columns[name] for name in ("steps", "decisions", "macro_steps")] == [10, 2, 8]
    assert [off.columns[name] for name in ("steps", "decisions", "macro_steps")] == [16, 8, 0]
    named = retrieve(tiny, store, "How does the quay walk go from the mill?")
    assert (named.columns["steps"], named.shown[0].uses) == (10, 1)
    assert "steps" not in retrieve(tiny, store, "Who is Ben?").columns
    counted = retrieve(tiny, store, "How many steps does the way from the mill to the quay take?")
    assert counted.columns["macro_steps"] == 0  # the number of a shortest way is the planner's


def test_a_route_that_no_longer_leads_to_its_end_is_replayed_and_was_not_recalled(tiny, slept):
    memory, store, _ = slept
    closed = Observation(Statement("closed", "w", "The lane between the fen and the dune is closed.", 99))
    memory.teach([closed], store)
    assert [row["recalled"] for row in memory.replay("w", store)] == [0.0, 0.0]
    uses = {trace.source: trace.uses for trace in store.traces("w")}
    assert [uses[source] for source in (f"f{len(LINE)}", f"f{len(LINE) + 1}")] == [1, 1]  # those of the first sleep


def test_nothing_is_learnt_before_a_sleep_or_from_one_that_is_off(tiny, slept, tmp_path):
    memory, store, _ = slept
    assert len([trace for trace in store.traces("w") if trace.payload]) == 1
    list(memory.replay("w", store))
    assert len([trace for trace in store.traces("w") if trace.payload]) == 1  # the next sleep takes its place
    store.rollback()
    store.rollback()
    assert retrieve(tiny, store).columns["decisions"] == 8
    off = bound("memory/smpd", tiny, encoder="own", **{"replay.enabled": False})
    assert list(off.replay("w", store)) == []
    few = bound("memory/smpd", tiny, encoder="own", **{"replay.max_items": 1})
    assert len(list(few.replay("w", store))) == 1
    assert retrieve(tiny, store).columns["decisions"] == 8  # once is no habit


def test_what_is_deleted_is_no_habit_any_more(tiny, slept):
    memory, store, _ = slept
    memory.delete(store, [trace.id for trace in store.traces("w") if trace.text == ALONG][:1])
    assert not [trace for trace in store.traces("w") if trace.payload]
    assert retrieve(tiny, store).columns["decisions"] == 8
