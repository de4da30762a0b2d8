"""Every suite keeps the rules, and each rule catches the worlds that break it."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hippo_core.suites import PROFILES, drawn_suites, get_suite, settings_for
from hippo_core.suites.datasets.validate import rules, shared_facts
from hippo_core.suites.draw import worlds
from hippo_core.suites.lookup import TextLookup, cached_by_identity, positions
from hippo_core.suites.types import Fact, Item, World

OWN = get_suite("episodic")
FEWER = {"mixed": 20, "spatial": 40}  # questions, of what takes long to draw
SUITE_PROFILES = [
    *product(drawn_suites(), PROFILES),
    *(("semantic", profile) for profile in ("hedged", "reworded", "reworded_hard")),
    *(("spatial", f"{of}{profile}") for of in ("", "reworded_") for profile in ("paths_5", "explore", "explore_hard")),
    *(("spatial", profile) for profile in ("paths_6", "paths_7", "paths_8", "paths_9", "labeled", "reworded")),
    *(("episodic", "surprising"), ("mixed", "reworded"), ("relations", "updates")),
]


@pytest.mark.parametrize(("suite", "profile"), SUITE_PROFILES)
def test_every_world_keeps_the_rules(suite, profile):
    least = settings_for(suite, profile).n_competitors
    for split in ("train", "val", "test"):
        assert rules(list(worlds(suite, profile, FEWER.get(suite, 60), 11, split)), get_suite(suite), least) == []


@pytest.mark.parametrize(("suite", "profile"), SUITE_PROFILES)
def test_splits_share_no_fact_across_seeds(suite, profile):
    count = FEWER.get(suite, 90)
    train = [world for seed in (1, 2) for world in worlds(suite, profile, count, seed, "train")]
    kept = {split: list(worlds(suite, profile, count, 1337, split)) for split in ("val", "test")}
    assert shared_facts(get_suite(suite), train=train, **kept) == []


def fact(number, text, **slots):
    return Fact(f"f{number}", "w", text, slots, number)


FACTS = (
    fact(0, "Ada sold a lamp.", who="Ada", what="lamp"),
    fact(1, "Ada lost a ring.", who="Ada", what="ring"),
    fact(2, "Ada found a coin.", who="Ada", what="coin"),
    fact(3, "Ada hid a lamp.", who="Ada", what="lamp"),
)
ALL = tuple(fact.id for fact in FACTS)
ITEM = Item("q0", "w", "What did Ada sell?", ("lamp",), ("f0",), "what", distance=3, cue={"who": "Ada"}, window=ALL, taught=ALL)
GOOD = World("w", FACTS, (ITEM,))


def broken(world, n_competitors=3):
    return {finding.rule for finding in rules([world], OWN, n_competitors)}


def test_a_good_world_has_no_findings():
    assert rules([GOOD], OWN, 3) == []


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"gold_facts": ("f9",)}, "known facts"),
        ({"gold_facts": ()}, "known facts"),
        ({"taught": ("f1", "f2", "f3"), "window": ()}, "known facts"),
        ({"taught": ("f0",)}, "known facts"),
        ({"window": ("f3", "f0"), "distance": 0}, "known facts"),
        ({"distance": 2}, "distance"),
        ({"answers": ("key",)}, "answer told"),
        ({"answers": ("Ada",)}, "answer hidden"),
        ({"answers": ("lamp", " ")}, "answer hidden"),
        ({"question": "Ada sold a lamp. What did she sell?"}, "leak"),
        ({"cue": {"what": "lamp"}}, "competitors"),
        ({"world": "v"}, "ids"),
    ],
)
def test_a_broken_item_is_reported(change, rule):
    assert rule in broken(World("w", FACTS, (replace(ITEM, **change),)))


def test_part_of_a_word_is_not_the_word():
    assert "answer hidden" not in broken(World("w", FACTS, (replace(ITEM, question="What did Ada sell, by lamplight?"),)))


def test_two_golds_for_one_question_are_reported():
    other = replace(ITEM, id="q1", answers=("ring",), gold_facts=("f1",), distance=2)
    assert broken(World("w", FACTS, (ITEM, other))) == {"one gold"}


def test_ids_must_differ():
    assert broken(World("w", FACTS, (ITEM, ITEM))) == {"ids"}
    assert {finding.rule for finding in rules([GOOD, GOOD], OWN, 3)} == {"ids"}
    assert {finding.rule for finding in rules([GOOD, replace(GOOD, id="v")], OWN, 3)} == {"ids"}


def test_a_suite_is_exempt_only_from_the_rules_on_its_card():
    other = replace(ITEM, id="q1", answers=("ring",), gold_facts=("f1",), distance=1)
    broken_rules = {finding.rule for finding in rules([World("w", FACTS, (ITEM, other))], get_suite("babi"), 9)}
    assert broken_rules == {"distance"}


def test_shared_facts_are_reported_by_text():
    assert [finding.rule for finding in shared_facts(OWN, val=[GOOD], test=[GOOD])] == ["no shared facts"] * len(FACTS)
    assert shared_facts(OWN, val=[GOOD]) == []
    assert shared_facts(get_suite("babi"), val=[GOOD], test=[GOOD]) == []


# Look-ups in large worlds


WORDS = st.text(st.sampled_from("ab "), max_size=20)


@given(st.lists(WORDS, max_size=8), WORDS)
def test_texts_inside_another_text_are_detected(texts, text):
    named = {str(number): known_text for number, known_text in enumerate(texts)}
    assert TextLookup(named).inside(text) == [name for name, known_text in named.items() if known_text in text]


@given(st.lists(st.sampled_from("abcdef")))
def test_positions_are_those_of_a_search(ids):
    assert positions(tuple(ids)) == {name: ids.index(name) for name in ids}


def test_a_shared_list_is_worked_out_once():
    seen = []
    work = cached_by_identity(lambda ids: seen.append(ids) or len(ids))
    shared, equal = tuple("abc"), tuple("abc")
    assert [work(ids) for ids in (shared, shared, equal, shared)] == [3, 3, 3, 3]
    assert [id(ids) for ids in seen] == [id(shared), id(equal)]
