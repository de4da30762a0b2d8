"""Exploration: a walker's reports are enough for a reader that makes the best of them, and every kind of error occurs."""

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from scipy.stats import binom

from hippo_core.errors import LabError
from hippo_core.results.scores import score_item
from hippo_core.spoken import MOVES, OPPOSITE
from hippo_core.suites import lexicon, settings_for
from hippo_core.suites.draw import worlds
from hippo_core.suites.spatial import SPATIAL, draw_map
from hippo_core.suites.spatial.explore import ExploredCell, explore, maps_of_rounds, misreport, walk, walls_of
from hippo_core.suites.spatial.map import Map, read_links
from hippo_core.suites.spatial.path import score_path
from hippo_core.suites.spatial.questions import name
from hippo_core.suites.types import WorldSpec
from tests.suites.mapper import answer, read_walk

PROFILES = ("explore", "explore_hard")
CLEAN = {"noise": 0, "stale": 0, "spurious": 0, "aliases": 0, "unlabeled": 0}
ALPHA = 1e-9


def drawn(profile="explore", n=60, split="test", **overrides):
    return list(worlds("spatial", profile, n, 7, split, overrides=overrides))


@pytest.fixture(scope="module")
def hard_worlds():
    return drawn("explore_hard")


def mean_score(chosen):
    """What the reference reader scores of all items, and of each slice."""
    scores, by_slice = [], {}
    for world in chosen:
        belief = read_walk(world.facts)
        for item in world.items:
            scores.append(score_item(SPATIAL, world, item, answer(belief, item))["score"])
            for label in item.slices:
                by_slice.setdefault(label, []).append(scores[-1])
    return sum(scores) / len(scores), {label: sum(some) / len(some) for label, some in by_slice.items()}


def narration_of(index):
    """An explorer's facts of a map, with all that the suite knows of it."""
    random, settings = Random(index), settings_for("spatial", "explore_hard")
    while True:
        drawn_map, _ = draw_map(random, settings, "test", is_grid=True) or (None, [])
        narration = explore(random, settings, WorldSpec("test", 0, index), drawn_map) if drawn_map else None
        if narration:
            return narration


def test_all_kinds_occur_and_training_sees_no_held_out_form(hard_worlds):
    kinds = {item.kind for world in hard_worlds for item in world.items}
    assert kinds == {"grid_path", "step_count", "neighbor", "exits", "edge_label"}
    assert {name for world in hard_worlds for item in world.items for name in item.slices} == {"new_template", "changed", "alias"}
    train = [item for world in drawn("explore_hard", 100, "train") for item in world.items]
    assert {name for item in train for name in item.slices} == {"changed", "alias"}


# What an ideal reader can know


@pytest.mark.parametrize("overrides", [CLEAN, {**CLEAN, "unlabeled": 0.3}, {**CLEAN, "aliases": 0.3}], ids=["true", "unlabeled", "aliases"])
def test_without_errors_the_reference_reader_answers_everything(overrides):
    assert mean_score(drawn("explore_hard", 40, **overrides))[0] == 1
    assert mean_score(drawn(n=40, **overrides))[0] == 1


def test_much_of_it_wrong_the_reference_reader_still_answers_nearly_everything(hard_worlds):
    score, by_slice = mean_score(hard_worlds)
    assert score >= 0.97 and by_slice["alias"] >= 0.9 and by_slice["changed"] >= 0.9


# The reports


def read_text(text):
    """The slots of a step, from its words alone."""
    first, sides, *sights = text.split(": ", 1)[1].rstrip(".").split(". ")
    move, last = re.search(rf"\b({'|'.join(MOVES)})\b", first), first.split()[-2:]
    by = re.search(r"(?:over|along|through|across|by) the (\w+)\b", first)
    opened, walls = re.fullmatch(r".*?(?:open|free|on|out) to the (.*?)(?:, (?:and|but).*to the (.*))?", sides).groups()
    slots = {"step": re.match(r"Step (\d+)", text)[1], "open": opened, "walls": walls}
    slots |= {"move": move and move[1], "by": by and by[1], "place": last[1] if last[0] == "the" else None}
    for sight in sights:
        (direction,) = re.findall(rf"\b({'|'.join(MOVES)})\b", sight)
        (label,) = (word for word in re.findall(r"[Tt]he (\w+)", sight) if word not in MOVES)
        slots[direction] = label
    return {slot: value for slot, value in slots.items() if value}


@pytest.mark.parametrize("profile", PROFILES)
def test_text_and_slots_agree(profile):
    for world in drawn(profile, 30):
        for number, fact in enumerate(world.facts, 1):
            assert read_text(fact.text) == {slot: value for slot, value in fact.slots.items() if slot != "who"}
            assert fact.slots["step"] == str(number)
            assert fact.slots.get("who", "I") in fact.text or " me " in fact.text or "was in sight" in fact.text


def test_a_walker_speaks_in_the_first_or_in_the_third_person_and_training_hears_no_held_out_name():
    def walkers(split, **overrides):
        return {fact.slots.get("who") for world in drawn(n=100, split=split, **overrides) for fact in world.facts}

    assert walkers("train", first_person=1) == {None}
    assert walkers("train", first_person=0) <= set(lexicon.names(held_out=False))
    assert walkers("test", first_person=0, new_names=1) <= set(lexicon.names(held_out=True))
    assert None in walkers("test") and len(walkers("test")) > 2


def truth(world):
    return next(read_links(item.truth["links"], is_grid=True) for item in world.items if item.truth)


def test_without_noise_the_walk_and_all_that_is_seen_are_those_of_the_true_map():
    for world in drawn(n=60, **CLEAN, path_share=1):
        true_map, here = truth(world), world.facts[0].slots["place"]
        seen_again = Counter()
        for number, fact in enumerate(world.facts):
            here = true_map.steps[here][fact.slots["move"]] if number else here
            seen_again[here] += 1
            near = true_map.steps[here]
            sides = [word for word in MOVES if re.search(rf"\b{word}\b", fact.slots["open"])]
            assert fact.slots["place"] == here and sides == [word for word in MOVES if word in near]
            assert all(near[word] == fact.slots[word] for word in MOVES if word in fact.slots)
        assert set(seen_again) == set(true_map.places) and min(seen_again.values()) >= 2


def test_the_last_report_of_a_place_is_true_and_early_openings_may_be_false():
    """All walls spurious: earlier statements may add openings, never leave one out; the last round's are the truth."""
    extra = 0
    for world in drawn("explore_hard", 60, **{**CLEAN, "spurious": 1, "path_share": 5}):
        true_map = truth(world)
        last = {fact.slots["place"]: fact for fact in world.facts}
        for fact in world.facts:
            sides = {word for word in MOVES if re.search(rf"\b{word}\b", fact.slots["open"])}
            near = set(true_map.steps[fact.slots["place"]])
            assert sides >= near
            extra += len(sides - near)
            assert fact is not last[fact.slots["place"]] or sides == near
    assert extra > 20


def test_changed_questions_are_those_that_an_early_statement_contradicts():
    n_changed = 0
    for world in drawn("explore_hard", 200, **{**CLEAN, "stale": 0.3}):
        for item in (item for item in world.items if item.kind == "exits"):
            sides = [fact.slots["open"] for fact in world.facts if fact.slots["place"] == item.cue["from"]]
            assert sides[-1] in item.answers
            assert ("changed" in item.slices) == (sides[0] != sides[-1])
            n_changed += "changed" in item.slices
    assert n_changed > 5


def test_changes_come_once_between_rounds_and_leave_every_place_in_reach():
    closed = opened = 0
    for index in range(30):
        settings = settings_for("spatial", "explore_hard", {"stale": 0.3, "rounds": 4})
        grid, _ = draw_map(Random(index), settings, "train", is_grid=True)
        maps = maps_of_rounds(Random(index), grid, settings)
        assert len(maps) == 4 and maps[0] == grid
        links = [{frozenset((a, b)) for a, near in grid_map.steps.items() for b in near.values()} for grid_map in maps]
        assert all(max(grid_map.distances[grid_map.places[0]].values()) < float("inf") for grid_map in maps)
        flips = Counter(link for a, b in pairwise(links) for link in a ^ b)
        assert set(flips.values()) <= {1}
        closed, opened = closed + len(links[0] - links[-1]), opened + len(links[-1] - links[0])
        assert all(
            grid_map.steps[b][OPPOSITE[word]] == a for grid_map in maps for a, near in grid_map.steps.items() for word, b in near.items()
        )
    assert closed > 30 and opened > 10


def test_each_round_visits_every_place_and_never_walks_through_a_wall():
    for index in range(20):
        settings = settings_for("spatial", "explore_hard", {"stale": 0.3})
        grid, _ = draw_map(Random(index), settings, "train", is_grid=True)
        maps = maps_of_rounds(Random(index), grid, settings)
        steps = list(walk(Random(index), maps))
        for (_, a, _), (number, b, move) in pairwise(steps):
            assert maps[number].steps[a][move] == b
        for number, grid_map in enumerate(maps):
            assert {place for round_number, place, _ in steps if round_number == number} == set(grid_map.places)


def test_noise_is_as_frequent_as_it_is_set():
    visits = [ExploredCell(0, "mill", "north", None, ("north",), "mill", {"north": "well"})] * 4000
    reported = misreport(Random(3), visits, 0.1, ["barn", "mill", "well"])
    low, high = binom.ppf([ALPHA / 2, 1 - ALPHA / 2], len(visits), 0.1)
    for wrong in (lambda visit: visit.move != "north", lambda visit: visit.label != "mill", lambda visit: visit.seen != {"north": "well"}):
        assert low <= sum(map(wrong, reported)) <= high
    assert all((visit.place, visit.open) == ("mill", ("north",)) for visit in reported)
    assert misreport(Random(3), visits, 0, ["barn", "mill"]) == visits


def test_labels_are_hidden_as_often_as_it_is_set():
    shown = [("place" in fact.slots) for world in drawn(n=300, unlabeled=0.2) for fact in world.facts]
    assert 0.1 < 1 - sum(shown) / len(shown) < 0.21  # a little less: worlds in which a place never shows its label are drawn again
    assert all("place" in fact.slots for world in drawn(unlabeled=0) for fact in world.facts)


def test_places_that_share_a_label_have_no_common_neighbour_and_are_named_by_a_neighbour():
    by_neighbor = 0
    for index in range(20):
        narration = narration_of(index)
        places, labels = narration.map.places, narration.labels
        shared = [(a, b) for a in places for b in places if a < b and labels[a] == labels[b]]
        assert len(shared) == round(0.2 * len(places) / 2)
        assert all(narration.map.distances[a][b] > 2 for a, b in shared)
        for place in places:
            cue = name(narration, place)
            if cue:
                meant = [
                    other
                    for other in places
                    if labels[other] == cue.label
                    and (not cue.neighbor or cue.neighbor in {labels[near] for near in narration.map.steps[other].values()})
                ]
                assert meant == [place]
                assert bool(cue.neighbor) == narration.shares_label(place)
                by_neighbor += bool(cue.neighbor)
    assert by_neighbor > 20


def test_walls_are_between_neighbours_that_are_not_linked():
    square = Map({"a": {"east": "b"}, "b": {"west": "a", "south": "d"}, "c": {"east": "d"}, "d": {"north": "b", "west": "c"}}, True)
    assert walls_of(square) == [("a", "south", "c")]


# Scoring


def test_paths_are_scored_on_the_true_map_whatever_the_facts_are(hard_worlds):
    for world in hard_worlds:
        for item in (item for item in world.items if item.kind == "grid_path"):
            blind = replace(world, facts=())
            true_map, start, goal = read_links(item.truth["links"], is_grid=True), item.truth["from"], item.truth["to"]
            assert score_path(blind, item, item.answers[0]).success == 1
            other = true_map.route(Random(5), start, goal)
            assert score_path(blind, item, ", ".join(other)).suboptimality == 1
            first = next(word for word in MOVES if word in true_map.steps[start])
            there_and_back = ", ".join([first, OPPOSITE[first], *other])
            assert score_path(blind, item, there_and_back).suboptimality == (len(other) + 2) / len(other)
            shut = [word for word in MOVES if word not in true_map.steps[start]]
            assert all(score_path(blind, item, ", ".join([word, OPPOSITE[word], *other])).success == 0 for word in shut)


def test_exits_may_be_named_in_any_order_but_not_in_part():
    for world in drawn(n=60):
        for item in (item for item in world.items if item.kind == "exits"):
            sides = item.answers[0].split(", ")
            backwards = " and ".join([", ".join(sides[:0:-1]), sides[0]])
            for spoken, right in ((", ".join(sides[::-1]), 1), (backwards, 1), (", ".join(sides[1:]), 0), (sides[0], 0)):
                assert score_item(SPATIAL, world, item, spoken)["score"] == right


# Settings


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"graph_share": 0.4}, "set graph_share to 0"), ({"recall_share": 1}, "recall_share"), ({"rounds": 1}, "of 2 or more rounds"),
     ({"rounds": 0}, "set rounds to at least 1"), ({"edge_labels": False}, "edge_label_share asks")],
)  # fmt: skip
def test_incompatible_settings_are_an_error(wrong, message):
    with pytest.raises(LabError, match=message):
        settings_for("spatial", "explore_hard", wrong)
