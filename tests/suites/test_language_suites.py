"""The suites in words: a question has one answer, held-out words stay out, flags correlate as set."""

from dataclasses import replace
from itertools import pairwise, product
from random import Random

import numpy as np
import pytest

from hippo_core.errors import LabError
from hippo_core.suites import drawn_suites, episodic, get_suite, lexicon, multi, settings_for
from hippo_core.suites.draw import worlds
from hippo_core.suites.splits import SPLITS, split_of
from hippo_core.suites.types import RUNGS, Fact, World, WorldSpec

NAMES = ("episodic", "episodic_multi", "episodic_cross", "episodic_capacity", "semantic")
FLAGGED = ("episodic", "episodic_cross", "episodic_capacity")  # suites whose tellers reward facts, or ask to keep them


def some(name: str, n: int = 200, split: str = "test", profile: str = "default", **overrides) -> list[World]:
    return list(worlds(name, profile, n, 7, split, 512, overrides))


@pytest.mark.parametrize("split", ["train", "val", "test"])
@pytest.mark.parametrize("motion", [False, True])
def test_an_event_is_in_its_own_split_alone(split, motion):
    """There are so many events that two splits would hardly ever draw the same one: so the split of each is checked."""
    for index in range(20):
        drawn = episodic.make_events(Random(index), settings_for("episodic"), WorldSpec(split, 1, index), motion)
        assert {split_of(event.key) for event in drawn} == {split}


def test_splits_of_a_seed_draw_apart():
    people = [[{fact.slots["who"] for fact in world.facts} for world in some("episodic", 100, split)] for split in ("val", "test")]
    assert np.mean([len(people_here & other) / len(people_here) for people_here, other in zip(*people, strict=True)]) < 0.2


@pytest.mark.parametrize("name", NAMES)
def test_training_never_sees_what_is_held_out(name):
    new = set(lexicon.names(held_out=True))
    for world in some(name, 300, "train"):
        assert not any(item.slices for item in world.items)
        for text in (*(fact.text for fact in world.facts), *(item.question for item in world.items if item.rung != "noisy")):
            assert not new & set(text.replace(",", " ").replace(".", " ").split())
            assert not any(f" {word} " in f" {text.strip('?.')} " for word in lexicon.HELD_OUT)
            assert not text.startswith(("Tell me", "Do you recall"))


@pytest.mark.parametrize("name", NAMES)
def test_tests_do_see_new_names_and_new_wordings(name):
    slices = [part for world in some(name, 400) for item in world.items for part in item.slices]
    assert {"new_name", "new_template"} <= set(slices)


@pytest.mark.parametrize(("name", "rungs"), [("episodic", 4), ("episodic_cross", 4), ("episodic_capacity", 4), ("episodic_multi", 3)])
def test_rungs_are_evenly_mixed(name, rungs):
    counts = np.unique([item.rung for world in some(name, 240) for item in world.items], return_counts=True)[1]
    assert len(counts) == rungs
    assert counts.max() - counts.min() <= 5


def unflagged(world: World) -> World:
    """The world without what only its teller knows of a fact."""
    return replace(world, facts=tuple(replace(fact, reward=False, pin=False) for fact in world.facts))


@pytest.mark.parametrize("name", FLAGGED)
@pytest.mark.parametrize("split", SPLITS)
def test_along_flag_correlation_worlds_differ_in_nothing_but_their_flags(name, split):
    drawn = [some(name, 60, split, flag_correlation=phi) for phi in (0.0, 0.3, 0.7, 1.0)]
    for none, *others in zip(*drawn, strict=True):
        assert all(unflagged(other) == unflagged(none) for other in others)
    flags = [[(fact.reward, fact.pin) for world in worlds for fact in world.facts] for worlds in drawn]
    assert all(flags_here != another for flags_here, another in pairwise(flags))


@pytest.mark.parametrize("name", [name for name in drawn_suites() if name not in FLAGGED])
def test_no_other_suite_flags_anything(name):
    assert not any(fact.reward or fact.pin for world in some(name, 60) for fact in world.facts)


@pytest.mark.parametrize("phi", [0.0, 0.3, 0.7, 1.0])
def test_flags_correlate_with_later_questions_as_set(phi):
    facts = [fact for world in some("episodic", 1000, flag_correlation=phi) for fact in world.facts]
    asked = np.array([fact.asked for fact in facts])
    flagged = np.array([fact.reward or fact.pin for fact in facts])
    share = asked.mean()
    rates = {share: share + phi * (1 - share), 1 - share: share * (1 - phi)}  # of flags, by the share of facts that have this rate
    error = np.sqrt(sum(rate * (1 - rate) / part for part, rate in rates.items()) / len(facts))  # of the difference of the two rates
    assert np.corrcoef(asked, flagged)[0, 1] == pytest.approx(phi, abs=4 * error + 1e-9)
    assert sum(fact.pin for fact in facts) == pytest.approx(flagged.sum() / 2, abs=4 * np.sqrt(flagged.sum() / 4))
    assert not any(fact.pin and fact.reward for fact in facts)


def is_about_a_stranger(fact: Fact) -> bool:
    return lexicon.is_invented(fact.slots["who"])


@pytest.mark.parametrize("name", FLAGGED)
def test_nobody_has_an_invented_name_unless_it_is_asked_for(name):
    assert not any(is_about_a_stranger(fact) for world in some(name, 60) for fact in world.facts)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(("share", "phi"), [(0.25, 0.0), (0.25, 0.35), (0.25, 0.7), (0.25, 1.0), (0.5, 0.5)])
def test_questions_correlate_with_invented_names_as_set(split, share, phi):
    drawn = some("episodic", 320, split, "surprising", invented_names=share, invented_correlation=phi)
    facts = [fact for world in drawn for fact in world.facts]
    about = np.array([is_about_a_stranger(fact) for fact in facts])
    asked = np.array([fact.asked for fact in facts])
    assert all(sum(map(is_about_a_stranger, world.facts)) == 32 * share for world in drawn)
    rounded = 0.5 * np.sqrt(len(drawn))  # a world's count of facts that are both is rounded by chance
    error = rounded / len(facts) / (about.std() * asked.std())
    assert np.corrcoef(about, asked)[0, 1] == pytest.approx(phi, abs=4 * error)


@pytest.mark.parametrize("split", ["val", "test"])
def test_a_question_about_an_unseen_name_is_marked_where_names_are_mixed(split):
    new = set(lexicon.names(held_out=True))
    drawn = [world for world in some("episodic", 320, split, "surprising") if not new & {fact.slots["who"] for fact in world.facts}]
    gold = [(item, fact) for world in drawn for item in world.items for fact in world.facts if fact.id in item.gold_facts]
    assert all(("new_name" in item.slices) == is_about_a_stranger(fact) for item, fact in gold)
    assert {(item.rung, is_about_a_stranger(fact)) for item, fact in gold} == set(product(RUNGS, (True, False)))


def test_lessons_and_tests_invent_different_names():
    facts = {split: [fact for world in some("episodic", 320, split, "surprising") for fact in world.facts] for split in SPLITS}
    people = {split: {fact.slots["who"] for fact in split_facts if is_about_a_stranger(fact)} for split, split_facts in facts.items()}
    assert not people["train"] & (people["val"] | people["test"])
    assert not any(lexicon.is_held_out(name) for name in people["train"])
    assert all(lexicon.is_held_out(name) for name in people["val"] | people["test"])


@pytest.mark.parametrize("overrides", [{"n_items": 2}, {"invented_names": 0.0}, {"invented_names": 1.0}, {"n_facts": 128}])
def test_a_correlation_that_no_world_can_have_is_an_error(overrides):
    with pytest.raises(LabError, match=r"invented_correlation: .* cannot go together so far"):
        settings_for("episodic", "surprising", overrides)


@pytest.mark.parametrize("limit", [256, 512, 1024])
def test_what_follows_a_capacity_question_s_fact_is_longer_than_the_context(limit):
    for world in worlds("episodic_capacity", "default", 40, 7, "test", limit):
        number = {fact.id: index for index, fact in enumerate(world.facts)}
        for item in world.items:
            later = world.facts[number[item.gold_facts[0]] + 1 :]
            assert sum(len(fact.text.split()) for fact in later) >= limit


def test_cross_items_have_no_window_and_several_sessions():
    for world in some("episodic_cross", 60):
        assert not any(item.window for item in world.items)
        assert len({fact.context_key for fact in world.facts}) == 4
    assert not get_suite("episodic_cross").has_window


@pytest.mark.parametrize(("profile", "fewest", "most"), [("default", 7, 11), ("hard", 2, 6)])
def test_hard_journeys_are_those_of_a_few_people_and_places(profile, fewest, most):
    group = {word: words[0] for words in lexicon.PLACES for word in words}
    for world in some("episodic_cross", 40, profile=profile):
        assert fewest <= len({fact.slots["who"] for fact in world.facts}) <= most
        assert fewest <= len({group[fact.slots["where"]] for fact in world.facts}) <= most


def test_the_last_mention_is_gold():
    for world in some("episodic_multi", 300):
        for item in world.items:
            mentions = [
                fact for fact in world.facts if fact.slots["who"] == item.cue["who"] and fact.slots["relation"] == item.cue["relation"]
            ]
            assert mentions[-1].slots["value"] == item.answers[0]
            assert item.kind == ("corrected" if len(mentions) > 1 else "plain")
            assert all("ctually" in f.text or "orrection" in f.text or "changed" in f.text or "wrong" in f.text for f in mentions[1:])


def is_rumor(fact):
    return "Rumor has it" in fact.text or "nobody confirmed it" in fact.text


def city_of(world: World, firm: str) -> str:
    """Where a firm is, by the suite's rules: the majority of last statements; without tellers the latest fact that is no rumor."""
    sites = [f for f in world.facts if f.slots.get("firm") == firm and "city" in f.slots and f.schema_fit and not is_rumor(f)]
    last = {f.slots["teller"]: f.slots["city"] for f in sites if "teller" in f.slots}
    return max(last.values(), key=list(last.values()).count) if last else sites[-1].slots["city"]


@pytest.mark.parametrize("profile", ["base", "default", "hard"])
def test_a_join_over_the_facts_gives_the_gold_city_and_no_other(profile):
    for world in some("semantic", 200, profile=profile):
        for item in world.items:
            cue = dict(item.cue)
            if friend := cue.pop("friend", None):
                bonds = [
                    f.slots for f in world.facts if f.slots.get("relation") == "friend" and friend in (f.slots["who"], f.slots["friend"])
                ]
                bond = bonds[0]
                assert all(other == bond for other in bonds)
                cue["who"] = bond["who"] if bond["friend"] == friend else bond["friend"]
            links = [f for f in world.facts if f.schema_fit and all(f.slots.get(slot) == value for slot, value in cue.items())]
            assert {city_of(world, link.slots["firm"]) for link in links} == {item.answers[0]}
            assert len(item.gold_facts) == item.hops


@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_a_world_of_thousands_of_facts_can_be_drawn_in_every_split(split):
    world = episodic.make_world(Random(0), episodic.EpisodicSettings(n_facts=5000, n_items=25), WorldSpec(split, 0, 0))
    assert len({fact.text for fact in world.facts}) == 5000
    assert len(world.items) == 25


def test_an_article_fits_its_noun():
    assert [lexicon.article(word) for word in ("lamp", "umbrella", "hat", "organ")] == ["a lamp", "an umbrella", "a hat", "an organ"]


def test_large_worlds_of_corrections_are_drawn_at_once_and_keep_to_their_split():
    settings = settings_for("episodic_multi", "default", {"n_facts": 128, "n_items": 10})
    worlds = {
        split: get_suite("episodic_multi").make_world(Random(split), settings, WorldSpec(split, 0, 0)) for split in ("train", "val", "test")
    }
    texts = {split: {fact.text for fact in world.facts} for split, world in worlds.items()}
    assert all(len(world.facts) == 128 and len(world.items) == 10 for world in worlds.values())
    assert not texts["train"] & texts["test"] and not texts["val"] & texts["test"]
    few = settings_for("episodic_multi", "default", {"n_facts": 20_000, "n_items": 10})
    with pytest.raises(LabError, match="has names for"):
        multi.make_world(Random(0), few, WorldSpec("val", 0, 0))
