"""Plain statements that disagree: the rule decides, simpler ones do not, and the words do not show who is right."""

import re
from collections import Counter, defaultdict
from functools import cache
from random import Random

import numpy as np
import pytest

from hippo_core.errors import LabError
from hippo_core.suites import semantic, settings_for
from hippo_core.suites.draw import worlds
from hippo_core.suites.semantic import conflict
from hippo_core.suites.semantic.conflict import Testimony, most_common, most_confident, settled, settled_by_confidence
from hippo_core.suites.types import WorldSpec


@cache
def some(n=300, profile="default", split="test", **overrides):
    return list(worlds("semantic", profile, n, 7, split, 512, overrides))


def statements(world):
    """The tellers' statements of each firm's city, in order."""
    by_firm = defaultdict(list)
    for fact in world.facts:
        if "teller" in fact.slots:
            by_firm[fact.slots["firm"]].append(Testimony(fact.teller, fact.slots["city"], fact.confidence))
    return by_firm


@pytest.mark.parametrize("profile", ["default", "hard", "hedged"])
def test_the_rule_gives_the_gold_answer_and_no_other(profile):
    asked = 0
    for world in some(250, profile):
        by_firm, facts = statements(world), {fact.id: fact for fact in world.facts}
        for item in world.items:
            firms = {facts[gold].slots["firm"] for gold in item.gold_facts if "teller" in facts[gold].slots}
            for firm in firms:
                asked += 1
                assert (settled_by_confidence if profile == "hedged" else settled)(by_firm[firm]) == item.answers[0]
                assert set(item.refuted) == {testimony.city for testimony in by_firm[firm]} - {item.answers[0]}
                assert len(firms) == 1 and item.kind == "contradiction"
                firm_facts = [fact for fact in world.facts if fact.slots.get("firm") == firm and fact.teller]
                assert all(fact.asked for fact in firm_facts)
                same = {fact.id for fact in firm_facts if fact.slots["city"] == item.answers[0]}
                assert same == {gold for gold in item.gold_facts if facts[gold].teller} | {
                    name for name in item.retold if facts[name].teller
                }
    assert asked > 25


def test_a_last_statement_replaces_earlier_ones_and_counts_once():
    a, b, c = "abc"
    assert settled([Testimony(a, "Rome"), Testimony(a, "Rome"), Testimony(a, "Rome"), Testimony(b, "Oslo"), Testimony(c, "Oslo")]) == "Oslo"
    assert settled([Testimony(a, "Rome"), Testimony(b, "Rome"), Testimony(a, "Oslo"), Testimony(c, "Oslo")]) == "Oslo"
    assert settled([Testimony(a, "Rome"), Testimony(b, "Oslo")]) is None
    assert most_common(["Rome", "Oslo"]) is None


def test_each_simple_rule_is_right_about_every_second_time_whatever_the_others_are():
    drawn = [conflict.disagree(Random(seed), "abcdef", "Rome", "Oslo") for seed in range(4000)]
    rules = (
        (testimonies[-1].city, testimonies[0].city, most_common([testimony.city for testimony in testimonies])) for testimonies in drawn
    )
    counts = Counter(tuple(city == "Rome" for city in cities) for cities in rules)
    assert len(counts) == 8 and all(400 < count < 600 for count in counts.values())
    assert all(settled(testimonies) == "Rome" and 3 <= len(testimonies) <= 6 for testimonies in drawn)


def test_the_words_of_a_statement_do_not_show_whether_it_is_true():
    """Each form is as frequent in true statements as in false ones."""
    by_form = defaultdict(list)
    for world in some(1500):
        by_firm = statements(world)
        for fact in world.facts:
            if "teller" in fact.slots:
                form = fact.text
                for slot in ("teller", "firm", "city"):
                    form = re.sub(rf"\b{re.escape(fact.slots[slot])}\b", slot, form)
                form = re.sub(r"\b(shop|company|college)\b", "kind", form)
                by_form[form].append(fact.slots["city"] == settled(by_firm[fact.slots["firm"]]))
    assert len(by_form) == 3 and np.ptp([np.mean(flags) for flags in by_form.values()]) < 0.06


def test_no_answer_contradicts_the_most_confident_statement():
    """However many disagree: the count alone is right about every second time, and so is the last statement."""
    contested, by_count, by_last = 0, [], []
    for world in some(600, "hedged"):
        by_firm, facts = statements(world), {fact.id: fact for fact in world.facts}
        for item in world.items:
            if item.kind == "contradiction":
                contested += 1
                [deciding] = [facts[gold] for gold in item.gold_facts if facts[gold].teller]
                testimonies, answer = by_firm[deciding.slots["firm"]], item.answers[0]
                most = max(testimony.confidence for testimony in testimonies)
                assert deciding.confidence == most and deciding.slots["city"] == answer
                assert settled([testimony for testimony in testimonies if testimony.confidence == most]) == answer
                by_count.append(settled(testimonies) == answer)
                by_last.append(testimonies[-1].city == answer)
    assert contested == 300
    assert np.mean(by_count) == pytest.approx(0.5, abs=0.1) and np.mean(by_last) == pytest.approx(0.5, abs=0.1)
    assert not any(fact.confidence is not None for world in some(60) for fact in world.facts)


def test_the_most_confident_beats_any_count_and_a_tie_is_none():
    testimonies = [Testimony("a", "Rome", 0.3), Testimony("b", "Rome", 0.3), Testimony("c", "Oslo", 0.6)]
    assert settled_by_confidence(testimonies) == "Oslo" and most_confident(testimonies) == testimonies[2:]
    assert settled_by_confidence([*testimonies, Testimony("d", "Rome", 0.6)]) is None
    assert settled_by_confidence([*testimonies, Testimony("c", "Rome", 0.3)]) is None  # a corrected statement
    assert settled_by_confidence([Testimony("a", "Rome"), Testimony("b", "Rome"), Testimony("c", "Oslo")]) == "Rome"


@pytest.mark.parametrize("profile", ["default", "hard", "hedged"])
def test_the_origin_of_a_fact_does_not_show_whether_it_is_true(profile):
    """Of all facts about where a contested firm is: each value is as frequent among the true as among the others."""
    origins = {True: Counter(), False: Counter()}
    for world in some(250, profile):
        facts = {fact.id: fact for fact in world.facts}
        for item in world.items:
            firm = next(facts[gold].slots["firm"] for gold in item.gold_facts if "city" in facts[gold].slots)
            for fact in world.facts:
                if item.refuted and fact.schema_fit and fact.slots.get("firm") == firm and "city" in fact.slots:
                    is_true = fact.slots["city"] == item.answers[0]
                    origins[is_true].update([("provenance", fact.provenance), ("context_key", fact.context_key)])
    totals = {is_true: sum(counts.values()) for is_true, counts in origins.items()}
    assert min(totals.values()) > 200
    for value in origins[True] | origins[False]:
        rates = [origins[is_true][value] / totals[is_true] for is_true in (True, False)]
        assert rates[0] == pytest.approx(rates[1], abs=0.05), value


@pytest.mark.parametrize(("profile", "share"), [("default", 0.4), ("hard", 0.5), ("base", 0.0)])
def test_as_many_questions_as_asked_for_are_about_what_is_contested(profile, share):
    items = [item for world in some(600, profile) for item in world.items]
    assert np.mean([item.kind == "contradiction" for item in items]) == pytest.approx(share, abs=0.02)
    assert all(bool(item.refuted) == (item.kind == "contradiction") for item in items)
    assert not any(answer in item.refuted for item in items for answer in item.answers)


@pytest.mark.parametrize(
    ("profile", "overrides"),
    [
        *(("default", {"conflicts": (conflict_kind,), "contradictions": 3}) for conflict_kind in ("rumor", "move", "plain")),
        ("hedged", {}),
        ("hard", {}),
    ],
    ids=str,
)
def test_a_refuted_answer_was_stated_and_is_never_right(profile, overrides):
    """Else a right answer would count as a refuted one."""
    refuted_items = [(world, item) for world in some(600, profile, **overrides) for item in world.items if item.refuted]
    for world, item in refuted_items:
        assert not set(item.refuted) & set(item.answers)
        assert all(any(city in fact.text for fact in world.facts) for city in item.refuted)
    assert len(refuted_items) > 150


def test_a_repeated_fact_has_the_same_slots_in_other_words_and_counts_as_gold():
    n_retold = 0
    for world in some(300):
        facts = {fact.id: fact for fact in world.facts}
        for item in world.items:
            for again, first in item.retold.items():
                if facts[again].teller:  # people who agree
                    assert facts[again].slots["city"] == facts[first].slots["city"] == item.answers[0]
                    continue
                n_retold += 1
                assert facts[again].slots == facts[first].slots and facts[again].text != facts[first].text
                assert first in item.gold_facts and again not in item.gold_facts
    assert n_retold > 50
    share = np.mean([len(Counter(tuple(sorted(fact.slots.items())) for fact in world.facts)) / len(world.facts) for world in some(60)])
    assert 0.8 < share < 0.95


def test_a_time_distinguishes_two_purchases():
    timed = 0
    for world in some(300):
        facts = {fact.id: fact for fact in world.facts}
        for item in world.items:
            if "when" in item.cue:
                timed += 1
                bought = [
                    fact for fact in world.facts if fact.slots.get("relation") == "bought" and fact.slots.get("what") == item.cue["what"]
                ]
                [link] = [facts[gold] for gold in item.gold_facts if facts[gold].slots.get("relation") == "bought"]
                same = [fact for fact in bought if fact.slots["who"] == link.slots["who"] and fact.slots["firm"] != link.slots["firm"]]
                assert item.cue["when"] in item.question and any(fact.slots["when"] != item.cue["when"] for fact in same)
                assert link.slots["when"] == item.cue["when"]
    assert timed > 30


@pytest.mark.parametrize("n_facts", [20, 24, 50, 128, 300, 1000])
def test_worlds_of_many_sizes_are_drawn(n_facts):
    settings = settings_for("semantic", "default", {"n_facts": n_facts})
    for seed in range(2):
        world = semantic.make_world(Random(seed), settings, WorldSpec("test", 1, seed))
        assert len(world.facts) == n_facts and len(world.items) == 5
        assert all(0 < item.chance <= 0.25 for item in world.items)


def test_impossible_settings_are_an_error(monkeypatch):
    with pytest.raises(LabError, match="n_facts"):
        settings_for("semantic", "default", {"n_facts": 5000})
    monkeypatch.setattr("hippo_core.suites.splits.MOST", 50)
    with pytest.raises(LabError, match="raise n_facts, or lower n_items"):
        semantic.make_world(Random(0), settings_for("semantic", "hard", {"n_facts": 20, "n_items": 12}), WorldSpec("test", 1, 0))
