"""Facts of many worlds that one model is to learn: no question fits two of them."""

import pytest

from hippo_core.errors import LabError
from hippo_core.suites import consolidation
from hippo_core.suites.draw import worlds
from hippo_core.training.consolidation.rehearsal import read_event


@pytest.fixture(scope="module")
def drawn():
    return list(worlds("consolidation", "default", 200, 1337, "test"))


def pair(fact):
    event, _ = read_event(fact.text)
    return event.action, event.what


def test_every_fact_is_asked_about_once(drawn):
    assert sorted(gold for world in drawn for item in world.items for gold in item.gold_facts) == sorted(
        fact.id for world in drawn for fact in world.facts
    )
    assert sum(len(world.facts) for world in drawn) == 200


def test_no_person_and_no_deed_occurs_twice(drawn):
    facts = [fact for world in drawn for fact in world.facts]
    assert len({fact.slots["who"] for fact in facts}) == len({pair(fact) for fact in facts}) == len(facts)


def test_questions_are_unique_and_name_what_only_their_fact_has(drawn):
    items = [(item, world.facts[number]) for world in drawn for number, item in enumerate(world.items)]
    assert len({item.question for item, _ in items}) == len(items)
    for item, fact in items:
        assert item.answers == (fact.slots[item.kind],)
        assert item.kind == "who" or fact.slots["who"] in item.question
        assert item.rung == "paraphrase" or item.kind != "who" or fact.slots["what"] in item.question


def test_both_rungs_come_equally_often(drawn):
    rungs = [item.rung for world in drawn for item in world.items]
    assert {rung: rungs.count(rung) for rung in set(rungs)} == {"exact": 100, "paraphrase": 100}


def test_more_facts_than_there_are_people_or_deeds_are_refused():
    most = consolidation.most_facts()
    assert most >= 200
    with pytest.raises(LabError, match=f"has {most} facts that no other resembles; ask for fewer"):
        list(worlds("consolidation", "base", most + 1, 1337, "test"))


def test_other_questions_than_facts_are_refused():
    with pytest.raises(LabError, match="give n_items = n_facts, got 1 and 2"):
        list(worlds("consolidation", "default", 2, 1337, "test", overrides={"n_items": 1}))
