"""What a cycle draws: every knob changes it, a seed repeats it, and spaced traces come when they are due."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hippo_core.methods.episodic.replay import Arrival, Due, Queue, Shares, draw, due, push, recalled
from hippo_core.methods.episodic.settings import Policy, ReplaySettings
from tests.store.made import key_of

SIZE = 40
POLICIES = get_args(Policy)


def full(size=SIZE, capacity=1024):
    """A queue of traces with many keys and strengths."""
    generator = np.random.default_rng(2)
    some = [key_of({int(place): int(generator.integers(1, 9)) for place in generator.choice(32, 3, replace=False)}) for _ in range(size)]
    return push(Queue(capacity), [Arrival(number + 1, key, float(generator.normal()), number) for number, key in enumerate(some)])


def drawn(seed=7, cycle=1, schedule=None, queue=None, shares=None, **knobs):
    """What is drawn from the full queue, by a quiet drawing but for the knobs that are named."""
    replay = ReplaySettings(**{"policy": "priority", "noise_level": 0.0, "rate": 0.5, **knobs})
    return draw(queue or full(), replay, cycle, SIZE, seed, schedule, shares or Shares())


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(POLICIES), st.floats(0, 1), st.floats(0, 2), st.none() | st.integers(0, 50), st.integers(0, 99))
def test_a_draw_repeats_itself_has_nothing_twice_and_keeps_to_the_limits(policy, rate, noise_level, max_items, seed):
    knobs = {"policy": policy, "rate": rate, "noise_level": noise_level, "max_items": max_items}
    found = drawn(seed, **knobs)
    assert drawn(seed, **knobs) == found
    assert len(set(found)) == len(found) == ReplaySettings(**knobs).count(SIZE) <= min(SIZE, SIZE if max_items is None else max_items)
    assert set(found) <= set(range(1, SIZE + 1))


def test_policies_differ():
    schedule = {trace: Due(cycle=5, interval=4) for trace in drawn(policy="priority")[:5]}
    found = {policy: drawn(policy=policy, schedule=schedule) for policy in POLICIES}
    assert len(set(found.values())) == len(POLICIES)


@pytest.mark.parametrize("policy", POLICIES)
def test_rate_and_max_items_change_what_is_drawn(policy):
    assert [len(drawn(policy=policy, rate=rate)) for rate in (0, 0.01, 0.3, 1)] == [0, 1, 12, 40]
    assert [len(drawn(policy=policy, max_items=most)) for most in (None, 30, 7, 0)] == [20, 20, 7, 0]


def test_the_rate_is_a_share_of_all_that_came():
    queue = full(capacity=10)
    assert [len(drawn(queue=queue, rate=rate)) for rate in (0.1, 0.25, 1)] == [4, 10, 10]


@pytest.mark.parametrize("policy", ["priority", "spaced"])
def test_noise_changes_what_is_drawn_and_more_noise_more_of_it(policy):
    still = set(drawn(policy=policy))
    kept = [np.mean([len(still & set(drawn(seed, policy=policy, noise_level=level))) for seed in range(20)]) for level in (0.0, 0.1, 5.0)]
    assert kept[0] == 20 > kept[1] > kept[2]
    assert kept[2] == pytest.approx(10, abs=2)  # by then it is a coin


def test_without_noise_a_cycle_repeats_the_last_and_with_noise_it_does_not():
    assert drawn(cycle=1) == drawn(cycle=2)
    assert drawn(cycle=1, noise_level=0.1) != drawn(cycle=2, noise_level=0.1)


def test_a_uniform_draw_knows_no_strength_and_hits_all_alike():
    counts, queue = np.zeros(SIZE + 1), full()
    for seed in range(600):
        counts[list(drawn(seed, queue=queue, policy="uniform", rate=0.25))] += 1
    assert counts[1:].min() > 100 and counts[1:].max() < 200  # 150 are expected, with a deviation of 10.6


def test_shares_change_what_is_drawn():
    found = [drawn(rate=0.2, shares=Shares(*shares)) for shares in ((1, 0, 0), (0, 1, 0), (0, 0, 1))]
    assert len({frozenset(one) for one in found}) == 3


def test_only_what_is_due_is_drawn_by_the_spaced_policy():
    schedule = recalled({}, 1, hits=range(1, 11), misses=range(11, 21))
    assert not set(drawn(policy="spaced", rate=1.0, cycle=2, schedule=schedule)) & set(range(1, 11))
    assert len(drawn(policy="spaced", rate=1.0, cycle=2, schedule=schedule)) == SIZE - 10
    assert len(drawn(policy="spaced", rate=1.0, cycle=3, schedule=schedule)) == SIZE
    assert len(drawn(policy="priority", rate=1.0, cycle=2, schedule=schedule)) == SIZE


def test_ca2_goes_on_in_order_of_arrival_and_its_control_in_another_order_that_it_keeps():
    def cycles(policy):
        return [trace for cycle in (1, 2, 3, 4) for trace in drawn(policy=policy, rate=0.25, cycle=cycle)]

    told = list(range(1, SIZE + 1))
    assert cycles("ca2") == told
    assert sorted(cycles("ca2_shuffled")) == told != cycles("ca2_shuffled")
    assert (
        drawn(policy="ca2_shuffled", rate=1.0)
        == drawn(policy="ca2_shuffled", rate=1.0, cycle=2)
        != drawn(8, policy="ca2_shuffled", rate=1.0)
    )


def test_intervals_double_with_success_and_fall_back_without():
    schedule, dues, cycle = {}, [], 1
    for hit in (True, True, True, False, True):
        schedule = recalled(schedule, cycle, [1] if hit else [], [] if hit else [1])
        dues.append((schedule[1].interval, schedule[1].cycle - cycle))
        cycle = schedule[1].cycle
    assert dues == [(2, 2), (4, 4), (8, 8), (1, 1), (2, 2)]


def test_a_schedule_is_not_altered_but_made_anew():
    schedule = {1: Due(2, 1), 2: Due(3, 1)}
    after = recalled(schedule, 2, [1], [])
    assert (schedule, after) == ({1: Due(2, 1), 2: Due(3, 1)}, {1: Due(4, 2), 2: Due(3, 1)})
    assert [due(after, trace, 3) for trace in (1, 2, 3)] == [False, True, True]


def test_an_empty_queue_gives_nothing():
    for policy in POLICIES:
        assert draw(Queue(), ReplaySettings(policy=policy), 1, 0, 0) == ()


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ({"policy": "random"}, "'spaced', 'ca2' or 'ca2_shuffled'"),
        ({"rate": 1.1}, "less than or equal to 1"),
        ({"noise_level": -1.0}, "greater than or equal to 0"),
        ({"noise_level": float("nan")}, "finite"),
        ({"max_items": -1}, "greater than or equal to 0"),
    ],
)
def test_a_knob_without_sense_says_so(knobs, said):
    with pytest.raises(ValidationError, match=said):
        ReplaySettings(**knobs)
