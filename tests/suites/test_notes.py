"""Notes written by hand: every question has one answer, in its note, nothing is trained on, unanswerable ones are marked."""

from collections import Counter

import pytest

from hippo_core.suites import get_suite, notes
from hippo_core.suites.datasets.validate import rules
from hippo_core.suites.draw import worlds
from hippo_core.suites.types import RUNGS


def every(profile="default", **overrides):
    return {split: list(worlds("notes", profile, None, 1337, split, overrides=overrides)) for split in ("train", "val", "test")}


def test_five_worlds_validate_the_rest_is_tested_and_nothing_is_trained_on():
    by_split = every()
    assert by_split["train"] == []
    assert {world.id for world in by_split["val"]} == set(notes.VALIDATION)
    assert {world.id for world in by_split["test"]} == set(notes.names()) - set(notes.VALIDATION)


@pytest.mark.parametrize("profile", ["default", "together"])
def test_they_keep_the_rules_of_every_suite(profile):
    for some in every(profile).values():
        assert rules(some, get_suite("notes"), 0) == []


def test_each_note_is_asked_about_on_two_rungs_and_contains_the_answers():
    for world in every()["test"]:
        texts, asked = {fact.id: fact.text for fact in world.facts}, Counter()
        for item in world.items:
            if item.gold_facts:
                assert item.answers[0].lower() in texts[item.gold_facts[0]].lower(), item.id
                asked[item.gold_facts[0], item.rung] += 1
            else:
                assert item.answers == ("unknown",) and item.slices == ("unanswerable",)
        assert set(asked.values()) == {1} and Counter(fact for fact, _ in asked) == dict.fromkeys(texts, 2)


def test_rungs_corrections_and_unanswerable_questions_are_as_many_as_they_should_be():
    items = [item for some in every().values() for world in some for item in world.items]
    rungs = Counter(item.rung for item in items if item.gold_facts)
    assert set(rungs) == set(RUNGS) and max(rungs.values()) < 1.2 * min(rungs.values())
    slices = Counter(name for item in items for name in item.slices)
    assert slices["correction"] + slices["near_duplicate"] >= len(items) / 6
    assert slices["unanswerable"] >= len(items) / 12


def test_answerable_leaves_the_others_out():
    assert all(item.gold_facts for world in every(answerable=True)["test"] for item in world.items)


def test_a_note_that_is_changed_makes_another_data_set(monkeypatch):
    from hippo_core.suites.datasets import card

    suite = get_suite("notes")
    before = card.source(suite, suite.settings())
    monkeypatch.setattr(card, "sha256", lambda path: "0" * 64)
    assert card.source(suite, suite.settings()) != before
