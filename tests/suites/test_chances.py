"""What a guess or a habit can get of a suite: `chance` is what a world makes plausible, and the position of a gold fact shows nothing.

A count of independent draws may be as far from its mean as happens by chance once in a billion (ALPHA), over all counts of a test.
"""

from collections import Counter
from itertools import product

import pytest
from scipy.stats import binom

from hippo_core.suites import lexicon
from hippo_core.suites.draw import worlds
from hippo_core.suites.types import World

ALPHA = 1e-9
USUAL = {word: group[0] for groups in (lexicon.OBJECTS, lexicon.PLACES) for group in groups for word in group}


def some(name: str, n: int, profile: str = "default", limit: int = 256) -> list[World]:
    return list(worlds(name, profile, n, 7, "test", limit))


def gold_times(world: World) -> list[int]:
    """The time of each item's gold fact."""
    times = {fact.id: fact.time for fact in world.facts}
    return [times[item.gold_facts[0]] for item in world.items]


def assert_even(counts: Counter, n_positions: int, draws: int, share: float, alpha: float = ALPHA) -> None:
    """Each position was hit in about this share of the draws, and no other."""
    low, high = binom.ppf([alpha / 2 / n_positions, 1 - alpha / 2 / n_positions], draws, share)
    assert {position: count for position in range(n_positions) if not low <= (count := counts[position]) <= high} == {}
    assert set(counts) <= set(range(n_positions))


SHORT = product(("episodic", "episodic_cross"), ("base", "default"), (1,))


@pytest.mark.parametrize(("name", "profile", "part"), [*SHORT, ("episodic_capacity", "default", 4)])
def test_any_fact_of_a_world_may_be_asked_and_of_a_long_story_any_of_its_first_quarter(name, profile, part):
    """Where no fact repeats another, facts of a world are exchangeable: each is asked with probability items / facts."""
    drawn = some(name, 1500, profile)
    assert all(len(set(gold_times(world))) == len(world.items) for world in drawn)
    counts = Counter(time for world in drawn for time in gold_times(world))
    n_positions = len(drawn[0].facts) // part
    assert_even(counts, n_positions, len(drawn), len(drawn[0].items) / n_positions)


@pytest.mark.parametrize("profile", ["base", "default", "hard"])
def test_a_window_begins_at_any_fact_from_which_it_contains_the_gold_fact(profile):
    """These are as many as it has facts, and fewer near the ends of a world: evenly among as many as there are."""
    starts: dict[int, Counter] = {}
    for world in some("episodic", 1500, profile):
        for gold, item in zip(gold_times(world), world.items, strict=True):
            earliest, latest = max(0, gold - len(item.window) + 1), min(gold, len(world.facts) - len(item.window))
            first = [fact.id for fact in world.facts].index(item.window[0])
            starts.setdefault(latest - earliest + 1, Counter())[first - earliest] += 1
    assert set(starts) == set(range(1, len(item.window) + 1))
    for n_starts, counts in starts.items():
        assert_even(counts, n_starts, counts.total(), 1 / n_starts, ALPHA / len(starts))


@pytest.mark.parametrize("name", ["episodic", "episodic_cross", "episodic_capacity", "episodic_multi"])
@pytest.mark.parametrize("profile", ["base", "default", "hard"])
def test_chance_is_that_of_a_guess_among_the_worlds_values_of_the_asked_slot(name, profile):
    """Two words for one thing are one value."""
    for world in some(name, 100, profile):
        for item in world.items:
            if name == "episodic_multi":
                values = {fact.slots["value"] for fact in world.facts if fact.slots["relation"] == item.cue["relation"]}
            else:
                values = {USUAL.get(fact.slots[item.kind], fact.slots[item.kind]) for fact in world.facts}
            assert item.chance == 1 / len(values)
