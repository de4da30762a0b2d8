"""The altered store: other facts under the same ids and questions; its answers are right there alone."""

from dataclasses import replace

import pytest

from hippo_core.results.scores import score_item
from hippo_core.suites import get_suite
from hippo_core.suites.altering import exchanged, other_answers, with_counterfactual_answers
from hippo_core.suites.draw import worlds
from hippo_core.suites.semantic.conflict import Testimony, last_words, settled, settled_by_confidence
from hippo_core.suites.spatial.altering import leads_on_both
from hippo_core.suites.spatial.map import Map, read_map
from hippo_core.suites.types import Fact, Item, World
from tests.suites import mapper

PROFILES = [
    *(("semantic", profile) for profile in ("base", "default", "hard", "hedged", "reworded")),
    *(("spatial", profile) for profile in ("default", "hard", "paths_5", "labeled", "lookups", "explore", "explore_hard", "reworded")),
    *(("mixed", profile) for profile in ("default", "hard", "reworded")),
    ("episodic", "default"),
]
UNANSWERED = 0.25  # share of a profile's questions to which no other map answers: of places that share a label


def pairs(suite, profile, n=15):
    """The drawn worlds with the altered ones."""
    drawn = list(worlds(suite, profile, n, 7, "val", 512))
    return list(zip(drawn, with_counterfactual_answers(get_suite(suite), drawn), strict=True))


@pytest.mark.parametrize(("name", "profile"), PROFILES)
def test_another_answer_is_right_in_the_altered_world_and_wrong_in_the_true_world(name, profile):
    suite, n, kept = get_suite(name), 0, 0
    for world, other in pairs(name, profile, 15):
        assert [(fact.id, fact.time, fact.teller) for fact in world.facts] == [(fact.id, fact.time, fact.teller) for fact in other.facts]
        for was, now in zip(world.facts, other.facts, strict=True):
            assert all(value.lower() in now.text.lower() for slot, value in now.slots.items() if value != was.slots[slot])
        items = {item.id: item for item in world.items}
        n, kept = n + len(items), kept + len(other.items)
        for item in other.items:
            true = items[item.id]
            assert (item.question, item.taught, item.cue, item.chance) == (true.question, true.taught, true.cue, true.chance)
            assert score_item(suite, other, item, item.answers[0])["score"] == 1
            assert score_item(suite, world, true, item.answers[0])["score"] == 0
            assert score_item(suite, other, item, true.answers[0])["score"] == 0
    assert kept >= (1 - UNANSWERED) * n and (kept == n or profile == "explore_hard")


def test_a_fact_that_repeats_the_answer_gets_the_other_answer_too():
    """In each world one statement says where the lamp is, and another repeats it."""

    def house(name, place):
        texts = (f"The lamp is at the {place}.", f"At the {place} the lamp is, as was said.")
        facts = tuple(Fact(f"{name}.{n}", name, text, {"place": place}, n) for n, text in enumerate(texts))
        item = Item(f"{name}.q", name, "Where is the lamp?", (place,), (f"{name}.0",), "place", retold={f"{name}.1": f"{name}.0"})
        return World(name, facts, (item,))

    others = [house("b", "dairy"), *(house(f"c{n}", "barn") for n in range(9))]
    for name in ("a", "d", "e", "f", "g"):
        world = house(name, "mill")
        ring = Fact(f"{name}.ring", name, "The ring is at the barn.", {"place": "barn"}, 2)
        known = other_answers(replace(world, facts=(*world.facts, ring)), others)
        assert known.items[0].answers == ("dairy",)  # the barn is where something is
    first = other_answers(house("a", "mill"), [house("b", "dairy")])
    assert [fact.text for fact in first.facts] == ["The lamp is at the dairy.", "At the dairy the lamp is, as was said."]
    assert first.items[0].answers == ("dairy",)


@pytest.mark.parametrize(("profile", "n", "least"), [("default", 50, 1), ("hard", 100, 1 / 6), ("hedged", 50, 1)])
def test_of_contradictions_the_last_words_are_of_another_city(profile, n, least):
    """`least`: the share of contradictions by people; in `hard` most are a rumor or a move, which name nobody."""
    asked = contested = 0
    for world, other in pairs("semantic", profile, n):
        cities = {fact.slots["city"] for fact in world.facts if "city" in fact.slots}
        assert cities.isdisjoint(fact.slots["city"] for fact in other.facts if "city" in fact.slots)
        facts = {fact.id: fact for fact in other.facts}
        for item in (item for item in other.items if item.kind == "contradiction"):
            deciding = next(facts[gold] for gold in item.gold_facts if "city" in facts[gold].slots)
            testimonies = [
                Testimony(fact.teller, fact.slots["city"], fact.confidence)
                for fact in other.facts
                if fact.teller and fact.slots["firm"] == deciding.slots["firm"]
            ]
            asked += 1
            if testimonies:
                contested += 1
                assert (settled_by_confidence(testimonies) if profile == "hedged" else settled(last_words(testimonies))) == item.answers[0]
                assert set(item.refuted) == {testimony.city for testimony in testimonies} - {item.answers[0]}
    assert contested >= least * asked > 0


def test_an_explorer_reports_another_map():
    """By the reference reader of explorations, which sees the facts and nothing else."""
    suite = get_suite("spatial")
    scores = [
        score_item(suite, other, item, mapper.answer(read, item))["score"]
        for _, other in pairs("spatial", "explore", 10)
        for read in [mapper.read_walk(other.facts)]
        for item in other.items
    ]
    assert sum(scores) == len(scores) == 10


def test_procedures_walks_and_objects_change_with_the_map():
    for world, other in pairs("spatial", "default", 25):
        true, drawn = read_map(world.facts), read_map(other.facts)
        assert drawn.places == true.places and drawn.steps != true.steps
        for was, now in zip(world.facts, other.facts, strict=True):
            assert all(value in now.text for slot, value in now.slots.items() if slot != "object") and was.slots.keys() == now.slots.keys()
            if "steps" in now.slots:
                assert drawn.walk(now.slots["from"], now.slots["steps"].split(", ")) and now.slots["from"] == was.slots["from"]


def test_a_route_that_is_right_on_both_maps_is_detected():
    line = {"a": {"east": "b"}, "b": {"west": "a", "east": "c"}, "c": {"west": "b"}}
    bent = {"a": {"east": "c"}, "c": {"west": "a"}, "b": {}}
    assert leads_on_both(Map(line, True), Map(line, True), "a", "c")
    assert not leads_on_both(Map(line, True), Map(bent, True), "a", "c")


def test_full_words_are_exchanged_all_at_once():
    fact = Fact("f", "w", "From the mill to the mills: the inn.", {"from": "mill", "to": "inn"}, 0)
    other = exchanged(fact, {"mill": "inn", "inn": "mill"})
    assert (other.text, other.slots) == ("From the inn to the mills: the mill.", {"from": "inn", "to": "mill"})
