"""Properties of the spatial suite: the told map is the true one, shortest routes are shortest, paths are scored by walking them."""

import math
from random import Random

import networkx
import pytest

from hippo_core.files import LabError
from hippo_core.suites import settings_for
from hippo_core.suites.datasets.build import worlds
from hippo_core.suites.spatial import SPATIAL
from hippo_core.suites.spatial import words as words
from hippo_core.suites.spatial.items import share_out
from hippo_core.suites.spatial.map import MOVES, OPPOSITE, read_map
from hippo_core.suites.spatial.path import FILLER, score_path

PROFILES = ("base", "default", "hard")


def drawn(profile="default", n=300, split="test", **overrides):
    return list(worlds("spatial", profile, n, 7, split, overrides=overrides))


@pytest.fixture(scope="module")
def default_worlds():
    return drawn()


def as_graph(world):
    """The world's map in networkx, from the slots of its facts."""
    ends = [(fact.slots["from"], fact.slots["to"]) for fact in world.facts if "to" in fact.slots]
    ends += [(fact.slots["a"], fact.slots["b"]) for fact in world.facts if "a" in fact.slots]
    return networkx.Graph(ends)


def of_kind(chosen, *kinds):
    return [(world, item) for world in chosen for item in world.items if item.kind in kinds]


def test_every_kind_of_question_occurs(default_worlds):
    kinds = {item.kind for world in default_worlds for item in world.items}
    assert kinds == {"grid_path", "graph_path", "recall", "procedure", "trajectory"}


def test_word_lists_are_disjoint_single_words():
    lists = [words.PLACES, words.OBJECTS, words.OBSTACLES, tuple(MOVES), tuple(FILLER)]
    everything = [word for one in lists for word in one]
    assert len(everything) == len(set(everything))
    assert all(word.isalpha() and word.islower() for word in everything)
    assert len(words.PLACES) >= 40


@pytest.mark.parametrize("profile", PROFILES)
def test_gold_paths_are_shortest_by_networkx(profile):
    for world, item in of_kind(drawn(profile, 150), "grid_path", "graph_path"):
        shortest = networkx.shortest_path_length(as_graph(world), item.cue["from"], item.cue["to"])
        assert len(item.answers[0].split(", ")) == shortest == item.hops == len(item.gold_facts)
        score = score_path(world, item, item.answers[0])
        assert (score.success, score.suboptimality) == (1.0, 1.0)


def test_all_distances_agree_with_networkx(default_worlds):
    for world in default_worlds[:20]:
        true = dict(networkx.all_pairs_shortest_path_length(as_graph(world)))
        assert read_map(world.facts).distances == true


def test_gold_facts_are_the_links_of_the_gold_path(default_worlds):
    for world, item in of_kind(default_worlds, "grid_path", "graph_path"):
        only = [fact for fact in world.facts if fact.id in item.gold_facts]
        assert read_map(only).walk(item.cue["from"], item.answers[0].split(", "))[-1] == item.cue["to"]


def test_slots_stand_in_the_text(default_worlds):
    for world in default_worlds:
        for fact in world.facts:
            assert all(value in fact.text for value in fact.slots.values())
            assert len(fact.text.split()) <= 13


@pytest.mark.parametrize(("profile", "most"), [("base", 250), ("default", 350)])
def test_worlds_are_short(profile, most):
    assert max(sum(len(fact.text.split()) for fact in world.facts) for world in drawn(profile)) <= most


def test_grid_directions_are_those_of_a_plane(default_worlds):
    """Every place gets coordinates by walking; all links agree with them, and no two places share a cell."""
    for world in default_worlds:
        told = read_map(world.facts)
        if not told.is_grid:
            continue
        cell, waiting = {told.places[0]: (0, 0)}, [told.places[0]]
        while waiting:
            here = waiting.pop()
            for direction, near in told.steps[here].items():
                down, right = MOVES[direction]
                expected = cell[here][0] + down, cell[here][1] + right
                if near not in cell:
                    waiting.append(near)
                assert cell.setdefault(near, expected) == expected
                assert told.steps[near][OPPOSITE[direction]] == here
        assert len(cell) == len(told.places) == len(set(cell.values()))


def test_obstacles_bar_ways_that_nobody_can_take(default_worlds):
    barred = [(world, fact) for world in default_worlds for fact in world.facts if "obstacle" in fact.slots]
    assert len(barred) > 50
    for world, fact in barred:
        assert fact.slots["direction"] not in read_map(world.facts).steps[fact.slots["from"]]


def test_trajectories_end_where_the_steps_lead(default_worlds):
    found = of_kind(default_worlds, "trajectory")
    for world, item in found:
        steps = [fact.slots["direction"] for fact in world.facts if fact.slots.get("who") == item.cue["who"] and "direction" in fact.slots]
        assert read_map(world.facts).walk(item.cue["from"], steps)[-1] == item.answers[0]
        assert item.answers[0] != item.cue["from"]
    assert found


def test_procedures_are_legal_walks_of_four_to_six_steps_and_are_repeated(default_worlds):
    repeated = 0
    for world in default_worlds:
        asked = [item for item in world.items if item.kind == "procedure"]
        for item in asked:
            steps = item.answers[0].split(", ")
            assert 4 <= len(steps) <= 6
            assert read_map(world.facts).walk(item.cue["from"], steps)
        repeated += len(asked) == 2 and asked[0].gold_facts == asked[1].gold_facts and asked[0].question != asked[1].question
    assert repeated > len(default_worlds) / 2


def test_a_procedure_must_be_exact(default_worlds):
    world, item = of_kind(default_worlds, "procedure")[0]
    assert score_path(world, item, item.answers[0]).success == 1
    there_and_back = item.answers[0].split(", ")
    assert score_path(world, item, ", ".join([*there_and_back, there_and_back[-1]])).success == 0
    assert score_path(world, item, ", ".join(there_and_back[:-1])).success == 0


def test_hard_worlds_have_dead_ends_and_alternative_routes():
    for world, item in of_kind(drawn("hard", 100), "grid_path", "graph_path"):
        graph = as_graph(world)
        assert any(degree == 1 for _, degree in graph.degree)
        assert networkx.edge_connectivity(graph, item.cue["from"], item.cue["to"]) >= 2


def first_grid_path(chosen):
    return next((world, item) for world, item in of_kind(chosen, "grid_path") if item.hops >= 3)


@pytest.mark.parametrize(
    "style",
    [
        lambda steps: ", ".join(steps).upper(),
        lambda steps: "Go " + " then ".join(steps) + ".",
        lambda steps: " ".join(steps),
        lambda steps: "\n".join(f"- {step}" for step in steps),
    ],
)
def test_the_way_of_speaking_does_not_matter(default_worlds, style):
    world, item = first_grid_path(default_worlds)
    assert score_path(world, item, style(item.answers[0].split(", "))).success == 1


def test_other_words_are_no_path(default_worlds):
    world, item = first_grid_path(default_worlds)
    for spoken in ("", "unknown", "I cannot say", f"not {item.answers[0]}", f"the owl {item.answers[0]}", "0, 1, 2"):
        score = score_path(world, item, spoken)
        assert score.success == 0
        assert math.isnan(score.suboptimality)


def test_a_detour_succeeds_and_costs(default_worlds):
    world, item = first_grid_path(default_worlds)
    steps = item.answers[0].split(", ")
    detour = [steps[0], OPPOSITE[steps[0]], *steps]
    score = score_path(world, item, ", ".join(detour))
    assert (score.success, score.suboptimality) == (1.0, (len(steps) + 2) / len(steps))


def test_an_illegal_step_or_another_end_fails(default_worlds):
    for world, item in of_kind(default_worlds, "grid_path"):
        told, steps = read_map(world.facts), item.answers[0].split(", ")
        blocked = [direction for direction in MOVES if direction not in told.steps[item.cue["from"]]]
        for direction in blocked:
            assert score_path(world, item, ", ".join([direction, OPPOSITE[direction], *steps])).success == 0
        assert score_path(world, item, ", ".join(steps[:-1])).success == 0


def test_on_a_graph_the_start_may_be_named(default_worlds):
    world, item = of_kind(default_worlds, "graph_path")[0]
    score = score_path(world, item, f"{item.cue['from']}, {item.answers[0]}")
    assert (score.success, score.suboptimality) == (1.0, 1.0)
    assert score_path(world, item, item.cue["from"]).success == 0


def test_recall_and_trajectory_are_no_paths(default_worlds):
    for world, item in of_kind(default_worlds, "recall", "trajectory"):
        assert score_path(world, item, item.answers[0]) is None


def test_a_blind_guesser_gets_the_stated_chance():
    """Random directions of the right number: the success rate is the items' mean chance, within four standard errors."""
    random = Random(0)
    tries, hits, expected, variance = 0, 0.0, 0.0, 0.0
    for world, item in of_kind(drawn(n=600), "grid_path"):
        for _ in range(20):
            guess = ", ".join(random.choice(list(MOVES)) for _ in range(item.hops))
            hits += score_path(world, item, guess).success
            expected += item.chance
            variance += item.chance * (1 - item.chance)
            tries += 1
    assert abs(hits - expected) < 4 * math.sqrt(variance)
    assert hits / tries < 0.1


def test_chance_of_a_graph_path_is_that_of_random_places():
    random = Random(0)
    hits, expected, variance = 0.0, 0.0, 0.0
    for world, item in of_kind(drawn(n=600, graph_share=1), "graph_path"):
        places = read_map(world.facts).places
        for _ in range(20):
            guess = [random.choice(places) for _ in range(item.hops - 1)]
            passed = read_map(world.facts).walk(item.cue["from"], [*guess, item.cue["to"]])
            hits += passed is not None
            expected += item.chance
            variance += item.chance * (1 - item.chance)
    assert abs(hits - expected) < 4 * math.sqrt(variance)


def test_questions_hold_no_numbers(default_worlds):
    assert not any(character.isdigit() for world in default_worlds for item in world.items for character in item.question)


def test_train_uses_no_held_out_form_and_no_new_name():
    assert not any(item.slices for world in drawn(split="train") for item in world.items)
    assert {name for world in drawn() for item in world.items for name in item.slices} == {"new_template", "new_name"}


@pytest.mark.parametrize(
    ("key", "value"),
    [("grid_size", 5), ("obstacles", 0.3), ("graph_share", 1.0), ("graph_places", 8), ("graph_extra", 6), ("dead_ends", 1),
     ("alternative_routes", True), ("min_steps", 3), ("max_steps", 2), ("n_objects", 3), ("n_procedures", 3), ("min_procedure", 6),
     ("max_procedure", 4), ("n_walkers", 3), ("trajectory_steps", 6), ("new_names", 1.0), ("path_share", 2.0), ("recall_share", 1.0),
     ("procedure_share", 0.0), ("trajectory_share", 0.0), ("n_items", 3), ("n_competitors", 5)],
)  # fmt: skip
def test_every_setting_changes_the_worlds(default_worlds, key, value):
    assert drawn(n=40, **{key: value}) != default_worlds[:8]


def test_impossible_settings_say_so():
    with pytest.raises(LabError, match="lower n_items"):
        drawn(n=5, n_items=200)


@pytest.mark.parametrize("total", [1, 5, 25])
def test_shares_add_up_and_are_right_on_average(total):
    random, shares = Random(3), {"a": 0.3, "b": 0.1, "c": 0.4, "d": 0.2, "e": 0.0}
    counts = [share_out(random, shares, total) for _ in range(2000)]
    assert all(sum(one.values()) == total for one in counts)
    for name, share in shares.items():
        assert sum(one[name] for one in counts) / 2000 == pytest.approx(share * total, abs=0.06)


def test_settings_refuse_a_number_of_facts():
    with pytest.raises(LabError, match="n_facts"):
        settings_for("spatial", "default", {"n_facts": 128})


def test_the_suite_is_judged_by_success():
    assert (SPATIAL.primary, SPATIAL.answer_budget, SPATIAL.score_path) == ("success", 40, score_path)
