"""Properties of the spatial suite: the facts' map is the true one, shortest routes are shortest, paths are scored by walking them."""

import math
from dataclasses import replace
from itertools import pairwise
from random import Random

import networkx
import pytest

from hippo_core.errors import LabError
from hippo_core.spoken import MOVES, NUMBERS, OPPOSITE
from hippo_core.suites import settings_for
from hippo_core.suites.draw import worlds
from hippo_core.suites.spatial import allowed_labels, draw_map
from hippo_core.suites.spatial import words as words
from hippo_core.suites.spatial.map import build_walls, draw_grid, name_places, read_links, read_map, write_links
from hippo_core.suites.spatial.path import FILLER, localisation_error, score_path
from hippo_core.suites.spatial.questions import share_out

PROFILES = ("base", "default", "hard")
PATHS = tuple(f"paths_{size}" for size in (5, 6, 7, 8, 9))


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


def test_word_lists_are_disjoint_single_words():
    lists = [words.PLACES, words.OBJECTS, words.OBSTACLES, tuple(words.EDGE_LABELS), tuple(MOVES), tuple(FILLER)]
    everything = [word for word_list in lists for word in word_list]
    assert len(everything) == len(set(everything))
    assert all(word.isalpha() and word.islower() for word in everything)
    assert len(words.PLACES) >= 40


@pytest.mark.parametrize("profile", [*PROFILES, *PATHS, "labeled"])
def test_gold_paths_are_shortest_by_networkx(profile):
    for world, item in of_kind(drawn(profile, 50 if profile in PATHS else 150), "grid_path", "graph_path"):
        shortest = networkx.shortest_path_length(as_graph(world), item.cue["from"], item.cue["to"])
        assert len(item.answers[0].split(", ")) == shortest == item.hops == len(item.gold_facts)
        score = score_path(world, item, item.answers[0])
        assert (score.success, score.suboptimality) == (1.0, 1.0)


def test_a_path_that_reaches_its_goal_and_walks_on_fails_unless_it_comes_back(default_worlds):
    asked = of_kind(default_worlds, "grid_path", "graph_path")
    for world, item in asked[:60]:
        there, goal, steps = read_map(world.facts), item.cue["to"], item.answers[0]
        on, to = next(iter(there.steps[goal].items())) if there.is_grid else (next(iter(there.steps[goal].values())),) * 2
        back = next(word for word, near in there.steps[to].items() if near == goal) if there.is_grid else goal
        assert score_path(world, item, f"{steps}, {on}").success == 0
        assert score_path(world, item, f"{steps}, {on}, {back}").suboptimality == (item.hops + 2) / item.hops


def test_gold_facts_are_the_links_of_the_gold_path(default_worlds):
    for world, item in of_kind(default_worlds, "grid_path", "graph_path"):
        only = [fact for fact in world.facts if fact.id in item.gold_facts]
        assert read_map(only).walk(item.cue["from"], item.answers[0].split(", "))[-1] == item.cue["to"]


def test_slots_stand_in_the_text(default_worlds):
    for world in default_worlds:
        for fact in world.facts:
            assert all(value in fact.text for value in fact.slots.values())
            assert len(fact.text.split()) <= 13


def test_grid_directions_are_those_of_a_plane(default_worlds):
    """Every place gets coordinates by walking; all links agree with them, and no two places share a cell."""
    for world in default_worlds:
        true_map = read_map(world.facts)
        if not true_map.is_grid:
            continue
        cell, waiting = {true_map.places[0]: (0, 0)}, [true_map.places[0]]
        while waiting:
            here = waiting.pop()
            for direction, near in true_map.steps[here].items():
                down, right = MOVES[direction]
                expected = cell[here][0] + down, cell[here][1] + right
                if near not in cell:
                    waiting.append(near)
                assert cell.setdefault(near, expected) == expected
                assert true_map.steps[near][OPPOSITE[direction]] == here
        assert len(cell) == len(true_map.places) == len(set(cell.values()))


def test_obstacles_bar_steps_that_nobody_can_take(default_worlds):
    barred = [(world, fact) for world in default_worlds for fact in world.facts if "obstacle" in fact.slots]
    assert len(barred) > 50
    for world, fact in barred:
        assert fact.slots["direction"] not in read_map(world.facts).steps[fact.slots["from"]]


def test_trajectories_end_where_the_steps_lead(default_worlds):
    asked = of_kind(default_worlds, "trajectory")
    for world, item in asked:
        steps = [fact.slots["direction"] for fact in world.facts if fact.slots.get("who") == item.cue["who"] and "direction" in fact.slots]
        assert read_map(world.facts).walk(item.cue["from"], steps)[-1] == item.answers[0]
        assert item.answers[0] != item.cue["from"]
        far = read_map(world.facts).distances[item.answers[0]]
        said = [item.answers[0], f"The {item.cue['from']}.", "unknown"]
        off = [0, far[item.cue["from"]], far[item.cue["from"]]]
        assert [localisation_error(world, item, words) for words in said] == off
    assert asked
    assert all(math.isnan(localisation_error(world, item, "north")) for world, item in of_kind(default_worlds, "recall"))


def test_a_route_is_off_by_the_steps_from_its_end_to_the_goal(default_worlds):
    asked = of_kind([*default_worlds, *drawn("explore_hard", n=10)], "grid_path", "graph_path")
    for world, item in asked:
        steps = item.answers[0].split(", ")
        said = [
            item.answers[0],
            "unknown",
            ", ".join(steps[:-1]) or "unknown",
            ", ".join([*steps, "north"]) if steps[-1] == "south" else "unknown",
        ]
        assert [localisation_error(world, item, words) for words in said[:3]] == [0, len(steps), 1]
        assert localisation_error(world, item, said[3]) == (1 if steps[-1] == "south" else len(steps))
    assert asked


@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_linked_places_have_labels_that_the_split_may_link(split):
    number = {label: index for index, label in enumerate(words.PLACES)}
    allowed = allowed_labels(split)
    for index in range(5):
        drawn_map, _ = draw_map(Random(index), settings_for("spatial", "paths_9"), split, is_grid=True)
        assert all(number[b] in allowed[number[a]] for a, near in drawn_map.steps.items() for b in near.values())


def test_a_map_finds_names_where_the_first_choice_ends_dead():
    """The label a goes with none, so that a place that takes it first must give it back."""
    links = {0: {"east": 1}, 1: {"west": 0}}
    allowed = [frozenset(), frozenset({2}), frozenset({1})]  # of three labels the first goes with none
    named = [name_places(Random(seed), links, "abc", allowed, True, dead_ends=9) for seed in range(20)]
    assert all(grid_map and set(grid_map.steps) == {"b", "c"} for grid_map in named)
    assert None in [name_places(Random(seed), links, "abc", allowed, True, dead_ends=0) for seed in range(20)]
    assert name_places(Random(0), links, "abc", [frozenset()] * 3, True, dead_ends=999) is None


def test_walls_cut_links_and_leave_the_grid_connected():
    for index in range(10):
        links, _ = draw_grid(Random(index), 5, 0.1)
        before = sum(map(len, links.values())) // 2
        build_walls(Random(index), links, 0.2)
        graph = networkx.Graph([(a, b) for a, near in links.items() for b in near.values()])
        assert networkx.is_connected(graph) and len(graph) == len(links)
        assert 0.7 * before < graph.number_of_edges() < before


def test_a_map_is_written_and_read_again():
    for profile in ("paths_5", "labeled"):
        for world in drawn(profile, 20):
            true_map = read_map(world.facts)
            assert read_links(write_links(true_map), true_map.is_grid) == true_map


# Links with labels


def edge_labels_of(world):
    ends = {True: ("from", "to"), False: ("a", "b")}[read_map(world.facts).is_grid]
    return {frozenset(fact.slots[end] for end in ends): fact.slots["by"] for fact in world.facts if "by" in fact.slots}


def test_labels_of_links_that_meet_differ_and_are_asked_for():
    chosen = drawn("labeled", 100)
    for world in chosen:
        labels = edge_labels_of(world)
        for place, near in read_map(world.facts).steps.items():
            assert len({labels[frozenset((place, other))] for other in near.values()}) == len(near)
    asked = of_kind(chosen, "edge_label")
    for world, item in asked:
        labels = edge_labels_of(world)
        assert item.answers == (labels[frozenset(item.cue.values())], words.edge_phrase(item.answers[0]))
        assert item.chance == 1 / len(set(labels.values()))
    assert len(asked) > 10


def test_a_path_may_be_spoken_by_the_labels_of_its_links():
    for world, item in of_kind(drawn("labeled", 100), "grid_path", "graph_path"):
        passed = read_map(world.facts).walk(item.cue["from"], item.answers[0].split(", "))
        labels = [edge_labels_of(world)[frozenset(pair)] for pair in pairwise(passed)]
        beside = ", ".join(f"{step} {words.edge_phrase(label)}" for step, label in zip(item.answers[0].split(", "), labels, strict=True))
        for spoken in (", ".join(labels), ", then ".join(map(words.edge_phrase, labels)), beside):
            assert score_path(world, item, spoken) == score_path(world, item, item.answers[0])
        missing = next(label for label in words.EDGE_LABELS if label not in edge_labels_of(world).values())
        assert score_path(world, item, ", ".join([missing, *labels])).success == 0
        assert score_path(world, item, ", ".join(labels[:-1])).success == 0


# Questions that are asked where a profile says so


def test_steps_are_counted_along_a_shortest_route():
    asked = of_kind(drawn(n=100, step_count_share=2), "step_count")
    for world, item in asked:
        assert item.answers[1] == str(networkx.shortest_path_length(as_graph(world), item.cue["from"], item.cue["to"]))
        assert item.answers[0] == NUMBERS[int(item.answers[1])] and 2 <= int(item.answers[1]) <= 4
        far = {steps for row in read_map(world.facts).distances.values() for steps in row.values() if 2 <= steps <= 4}
        assert item.chance == 1 / len(far)
    assert len(asked) > 20


def test_neighbors_are_those_of_the_map():
    asked = of_kind(drawn(n=100, neighbor_share=1), "neighbor")
    for world, item in asked:
        true_map = read_map(world.facts)
        assert item.answers == (true_map.steps[item.cue["from"]][item.cue["direction"]],)
        assert item.chance == 1 / (len(true_map.places) - 1)
    assert len(asked) > 15
    assert not of_kind(drawn(n=100, neighbor_share=1, graph_share=1), "neighbor")


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


def test_the_style_of_a_spoken_path_does_not_matter(default_worlds):
    world, item = first_grid_path(default_worlds)
    steps = item.answers[0].split(", ")
    for spoken in (", ".join(steps).upper(), f"Go {' then '.join(steps)}.", " ".join(steps), "- " + "\n- ".join(steps)):
        assert score_path(world, item, spoken).success == 1


def test_other_words_are_no_path(default_worlds):
    world, item = first_grid_path(default_worlds)
    of_a_labelled_link = f"{item.answers[0]} over the footbridge"
    for spoken in ("", "unknown", "I cannot say", f"not {item.answers[0]}", f"the owl {item.answers[0]}", "0, 1, 2", of_a_labelled_link):
        score = score_path(world, item, spoken)
        assert score.success == 0
        assert math.isnan(score.suboptimality)


def test_for_a_goal_out_of_reach_the_answer_is_no_path(default_worlds):
    world, item = next(iter(of_kind(default_worlds, "grid_path")))
    cut = replace(item, truth={"links": "mill north well; well south mill; dune north fen; fen south dune", "from": "mill", "to": "fen"})
    assert [score_path(world, cut, spoken).success for spoken in ("No path.", "none", "north", "unknown")] == [1, 1, 0, 0]


def test_an_illegal_step_or_another_end_fails(default_worlds):
    for world, item in of_kind(default_worlds, "grid_path"):
        true_map, steps = read_map(world.facts), item.answers[0].split(", ")
        blocked = [direction for direction in MOVES if direction not in true_map.steps[item.cue["from"]]]
        for direction in blocked:
            assert score_path(world, item, ", ".join([direction, OPPOSITE[direction], *steps])).success == 0
        assert score_path(world, item, ", ".join(steps[:-1])).success == 0


def test_on_a_graph_the_start_may_be_named(default_worlds):
    world, item = of_kind(default_worlds, "graph_path")[0]
    score = score_path(world, item, f"{item.cue['from']}, {item.answers[0]}")
    assert (score.success, score.suboptimality) == (1.0, 1.0)
    assert score_path(world, item, item.cue["from"]).success == 0


@pytest.mark.parametrize("kind", ["grid_path", "graph_path"])
def test_a_blind_guesser_gets_the_stated_chance(kind):
    """Random steps of the right number, on a graph the goal last: the success rate is the mean chance, within four standard errors."""
    random = Random(0)
    hits, expected, variance = 0.0, 0.0, 0.0
    for world, item in of_kind(drawn(n=250, graph_share=float(kind == "graph_path")), kind):
        true_map = read_map(world.facts)
        last = [] if true_map.is_grid else [item.cue["to"]]
        for _ in range(20):
            guess = random.choices([*MOVES] if true_map.is_grid else true_map.places, k=item.hops - len(last))
            hits += (true_map.walk(item.cue["from"], [*guess, *last]) or [""])[-1] == item.cue["to"]
            expected += item.chance
            variance += item.chance * (1 - item.chance)
    assert abs(hits - expected) < 4 * math.sqrt(variance)


def test_train_uses_no_held_out_form_and_no_new_name():
    assert not any(item.slices for world in drawn(split="train") for item in world.items)
    assert {name for world in drawn() for item in world.items for name in item.slices} == {"new_template", "new_name"}


def test_impossible_settings_are_an_error():
    with pytest.raises(LabError, match="lower n_items"):
        drawn(n=5, n_items=200)


@pytest.mark.parametrize("total", [1, 5, 25])
def test_shares_add_up_and_are_right_on_average(total):
    random, shares = Random(3), {"a": 0.3, "b": 0.1, "c": 0.4, "d": 0.2, "e": 0.0}
    counts = [share_out(random, shares, total) for _ in range(2000)]
    assert all(sum(drawn_counts.values()) == total for drawn_counts in counts)
    for name, share in shares.items():
        assert sum(drawn_counts[name] for drawn_counts in counts) / 2000 == pytest.approx(share * total, abs=0.06)


def test_all_distances_agree_with_networkx(default_worlds):
    for world in default_worlds[:20]:
        true = dict(networkx.all_pairs_shortest_path_length(as_graph(world)))
        assert read_map(world.facts).distances == true
