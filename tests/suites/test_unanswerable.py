"""Unanswerable worlds: those of the same seed without what decides each question, where "unknown" is right and the old answer is false."""

from dataclasses import replace

import pytest

from hippo_core.errors import LabError
from hippo_core.results.scores import score_item
from hippo_core.suites import get_suite
from hippo_core.suites.datasets.validate import rules, shared_facts
from hippo_core.suites.draw import worlds

SUITES = ("semantic", "spatial", "relations", "episodic", "episodic_multi", "episodic_cross", "episodic_capacity")
PROFILES = [*((suite, "default") for suite in SUITES), ("spatial", "paths_5"), ("spatial", "explore")]


@pytest.fixture(scope="module", params=PROFILES, ids=" ".join)
def both(request):
    """A suite, its unanswerable worlds, and the worlds that these are without what decides."""
    suite, of = request.param
    without = "unanswerable" if of == "default" else f"{of}_unanswerable"
    return get_suite(suite), *(list(worlds(suite, profile, 40, 1337, "val")) for profile in (without, of))


def pairs(without, full):
    return [(a, b, item, other) for a, b in zip(without, full, strict=True) for item, other in zip(a.items, b.items, strict=True)]


def test_the_worlds_keep_the_rules(both):
    suite, without, _ = both
    assert rules(without, suite) == []
    assert shared_facts(suite, val=without, test=worlds(suite.name, "unanswerable", 40, 1337, "test")) == []


def test_it_is_the_world_of_the_same_seed_with_fewer_facts(both):
    _, without, full = both
    for world, other in zip(without, full, strict=True):
        facts = {fact.id: fact for fact in other.facts}
        assert all((fact.time, fact.provenance) == (facts[fact.id].time, facts[fact.id].provenance) for fact in world.facts)
        assert all(fact.slots.items() <= facts[fact.id].slots.items() for fact in world.facts)
        assert [fact.text for fact in world.facts] != [fact.text for fact in other.facts]


def test_the_questions_stay_and_unknown_is_right(both):
    suite, without, full = both
    for world, _, item, other in pairs(without, full):
        assert (item.id, item.question, item.kind, item.rung) == (other.id, other.question, other.kind, other.rung)
        assert (item.answers, item.gold_facts, item.refuted) == (("unknown",), (), other.answers)
        assert item.slices == (*other.slices, "unanswerable")
        right, false = (score_item(suite, world, item, answer) for answer in ("unknown", other.answers[0]))
        assert (right["score"], right["abstained"], right["refuted"]) == (1, 1, 0)
        assert (false["score"], false["abstained"], false["refuted"]) == (0, 0, 1)


def test_the_deciding_facts_are_in_the_answerable_world_alone(both):
    suite, without, full = both
    for world, before, item, other in pairs(without, full):
        assert not suite.is_answerable(world.facts, item)
        assert suite.is_answerable(before.facts, other)


def test_an_answerable_item_is_reported(both):
    suite, without, full = both
    answerable = [
        replace(before, items=tuple(replace(item, taught=other.taught) for item, other in zip(world.items, before.items, strict=True)))
        for world, before in zip(without, full, strict=True)
    ]
    flagged = {finding.item for finding in rules(answerable, suite) if finding.rule == "never told"}
    assert flagged == {item.id for world in answerable for item in world.items}


def test_relations_lose_a_link_or_a_site_and_both_occur():
    suite, lost = get_suite("semantic"), set()
    for world, before, _, other in pairs(*(list(worlds("semantic", profile, 40, 1337, "val")) for profile in ("unanswerable", "default"))):
        removed = {fact.id for fact in before.facts} - {fact.id for fact in world.facts}
        [*links, site] = other.gold_facts
        lost |= {name for name, fact_id in (("site", site), ("link", links[-1])) if fact_id in removed}
        facts = {fact.id: fact for fact in before.facts}
        assert not [name for name, first in other.retold.items() if first in removed and name not in removed], "what tells it again is told"
        assert removed & set(other.gold_facts), suite.name
        if site in removed:
            firm = facts[site].slots["firm"]
            assert not any(fact.schema_fit and fact.slots.get("firm") == firm and "city" in fact.slots for fact in world.facts)
    assert lost == {"site", "link"}


def test_an_explorer_still_walks_step_by_step_and_never_uses_the_name():
    without, full = (list(worlds("spatial", profile, 20, 1337, "val")) for profile in ("explore_unanswerable", "explore"))
    for world, before, item, _ in pairs(without, full):
        assert [fact.slots["step"] for fact in world.facts] == [fact.slots["step"] for fact in before.facts]
        named = [label for role, label in item.cue.items() if role in ("from", "to")] + (
            [item.refuted[0]] if item.kind == "neighbor" else []
        )
        assert any(all(f"the {label}" not in fact.text.lower() for fact in world.facts) for label in named)


def test_a_suite_without_hide_has_no_unanswerable_worlds():
    with pytest.raises(LabError, match="leave out unanswerable"):
        next(worlds("babi", "default", 5, overrides={"unanswerable": True}))
