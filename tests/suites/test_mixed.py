"""Mixed worlds: facts join two parts, every joined question needs facts of both, and no name is in two of them."""

import pytest

from hippo_core.suites.draw import worlds
from hippo_core.suites.mixed import KINDS, score_path

WORLDS = list(worlds("mixed", "default", 60, 7, "val"))
PARTS = {"event": {"action"}, "relation": {"relation", "city"}, "way": {"direction", "b", "to"}}


def asked(kind):
    return [(world, item) for world in WORLDS for item in world.items if item.kind == kind]


def gold(world, item):
    facts = {fact.id: fact for fact in world.facts}
    return [facts[name] for name in item.gold_facts]


def test_all_kinds_are_asked_as_often():
    assert {len(world.items) for world in WORLDS} == {5}
    assert all(len(asked(kind)) == 10 for kind in KINDS[3:])


@pytest.mark.parametrize("kind", KINDS[3:])
def test_a_joined_question_hides_what_joins_its_parts(kind):
    for world, item in asked(kind):
        gold_facts = gold(world, item)
        links = [fact for fact in gold_facts if fact.slots.get("relation") in ("works for", "studies at")]
        assert len(links) == 1 and links[0].slots["firm"] not in item.question
        if kind.startswith("event"):
            [event] = [fact for fact in gold_facts if "action" in fact.slots]
            assert event.slots["who"] == links[0].slots["who"] and event.slots["who"] not in item.question
        if kind.endswith("way"):
            [at] = [fact for fact in gold_facts if fact.slots.get("relation") == "is at"]
            assert at.slots == {"firm": links[0].slots["firm"], "relation": "is at", "place": item.truth["to"]}
            assert item.truth["to"] not in item.question


def test_a_person_who_is_named_by_a_deed_did_it_alone():
    for world, item in (*asked("event_relation"), *asked("event_way")):
        [event] = [fact for fact in gold(world, item) if "action" in fact.slots]
        named = {slot: value for slot, value in event.slots.items() if slot in item.cue and slot != "from"}
        matching = [fact for fact in world.facts if "action" in fact.slots and named.items() <= fact.slots.items()]
        assert matching == [event]


def test_a_city_is_that_of_the_firm_and_a_route_leads_to_its_place():
    for world, item in asked("event_relation"):
        assert [fact.slots["city"] for fact in gold(world, item) if "city" in fact.slots] == [item.answers[0]]
    for kind in ("relation_way", "event_way"):
        for world, item in asked(kind):
            assert score_path(world, item, item.answers[0]).success == 1
            assert score_path(world, item, item.answers[0].rpartition(", ")[0]).success == 0


def test_no_name_of_an_event_stands_in_another_part():
    for world in WORLDS:
        joins = {fact.id for item in world.items for fact in gold(world, item)}
        events = {fact.slots["who"] for fact in world.facts if "action" in fact.slots}
        others = " ".join(fact.text for fact in world.facts if "action" not in fact.slots and fact.id not in joins)
        assert not any(f" {name} " in f" {others} ".replace(".", " ") for name in events)


def test_a_firm_has_a_single_place_and_a_worker_a_single_firm():
    for world in WORLDS:
        at = [fact.slots["firm"] for fact in world.facts if fact.slots.get("relation") == "is at"]
        events = {fact.slots["who"] for fact in world.facts if "action" in fact.slots}
        hired = [fact.slots["who"] for fact in world.facts if "firm" in fact.slots and fact.slots.get("who") in events]
        assert len(at) == len(set(at)) and len(hired) == len(set(hired))
