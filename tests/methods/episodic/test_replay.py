"""Replay: what stays in the queue and how diversity is measured; priorities, and an order that keeps like traces apart; what is drawn."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hippo_core.errors import LabError
from hippo_core.methods.episodic.replay import Arrival, Due, Queued, arrivals_of, draw, in_order, priorities, queue_of, recalled
from hippo_core.methods.episodic.settings import Policy, ReplaySettings
from hippo_core.retrieval.sparse_key import cosines
from tests.store.made import key_of, keys, saliences, trace

A, B, C, BETWEEN, AGAINST = (key_of(entries) for entries in ({0: 1}, {1: 1}, {2: 1}, {0: 1, 1: 1}, {0: -1}))
arriving = st.lists(st.tuples(keys, saliences), max_size=12).map(
    lambda pairs: [Arrival(number + 1, key, S, number) for number, (key, S) in enumerate(pairs)]
)


def queued(*some, capacity=1024):
    """A queue to which traces with these keys came one step apart."""
    return queue_of([Arrival(number + 1, key, 1.0, number) for number, key in enumerate(some)], capacity)


def test_diversity_by_hand():
    diversities = [item.diversity for item in queued(A, A, B, BETWEEN, AGAINST).items]
    half = 1 - np.sqrt(0.5)
    assert diversities == pytest.approx([1, 0, 1, half, 1], abs=1e-11)


def by_definition(arrivals, capacity):
    """One by one, cosines from the dense rows."""
    queued_keys, diversities = [], []
    for arrival in arrivals:
        row = np.array(arrival.key.dense())
        unit = [np.array(key.dense()) / np.linalg.norm(key.dense()) for key in queued_keys]
        unlike = [1 - max(0.0, float(other @ row) / np.linalg.norm(row)) for other in unit]
        diversities.append(np.mean(unlike) if unlike else 1.0)
        queued_keys = [*queued_keys, arrival.key][-capacity:]
    return diversities[-capacity:]


@settings(deadline=None)
@given(arriving, st.integers(1, 15))
def test_at_once_is_one_by_one(arrivals, capacity):
    at_once = queue_of(arrivals, capacity)
    assert [item.trace for item in at_once.items] == [arrival.trace for arrival in arrivals[-capacity:]]
    assert at_once.dropped == max(0, len(arrivals) - capacity)
    assert [item.diversity for item in at_once.items] == pytest.approx(by_definition(arrivals, capacity), abs=1e-10)


def test_more_than_are_compared_at_a_time():
    generator = np.random.default_rng(0)
    some = [key_of({int(unit_number): 1 for unit_number in generator.choice(32, 3, replace=False)}) for _ in range(700)]
    arrivals = [Arrival(number + 1, key, 1.0, number) for number, key in enumerate(some)]
    diversities = [item.diversity for item in queue_of(arrivals, 300).items]
    assert diversities == pytest.approx(by_definition(arrivals, 300), abs=1e-10)


def test_traces_arrive_in_the_order_of_their_ids():
    order = arrivals_of([trace(id=9, salience=0.5), trace(id=4, salience=0.25)])
    assert [(arrival.trace, arrival.S, arrival.step) for arrival in order] == [(4, 0.25, 0), (9, 0.5, 1)]


@pytest.mark.parametrize(
    ("arrivals", "said"),
    [
        ([Arrival(1, A, 1.0, 0), Arrival(1, B, 1.0, 1)], "twice"),
        ([Arrival(1, A, float("nan"), 0)], "not finite"),
        ([Arrival(1, A, 1.0, 1), Arrival(2, B, 1.0, 0)], "order of their steps"),
    ],
)
def test_what_cannot_be_queued_says_why(arrivals, said):
    with pytest.raises(LabError, match=said):
        queue_of(arrivals)


def test_a_queue_has_room():
    with pytest.raises(LabError, match="capacity of 0"):
        queue_of([], 0)


def items_of(*some):
    """Queued traces of (key, S, step, diversity)."""
    return [Queued(number + 1, *values) for number, values in enumerate(some)]


def test_priority_by_hand():
    items = items_of((A, 2.0, 0, 1.0), (B, 4.0, 1, 0.5), (C, 3.0, 3, 0.0))
    scores = priorities(items, now=3)
    assert scores == pytest.approx([0.3 / 4 + 0.2, 0.5 + 0.3 / 3 + 0.2 * 0.5, 0.25 + 0.3])


def test_equal_strengths_say_nothing():
    assert priorities(items_of((A, 2.0, 0, 0.0), (B, 2.0, 0, 0.0)), now=0) == pytest.approx([0.3, 0.3])
    assert len(priorities([], now=0)) == 0


@given(st.lists(st.tuples(keys, st.floats(-1e6, 1e6), st.integers(0, 9), st.floats(0, 1)), min_size=1))
def test_a_priority_lies_between_0_and_1_and_does_not_know_the_unit_of_S(rows):
    items = items_of(*rows)
    scores = priorities(items, now=9)
    assert (scores >= 0).all() and (scores <= 1 + 1e-12).all()
    doubled = items_of(*((key, 4 * S, step, diversity) for key, S, step, diversity in rows))
    assert priorities(doubled, now=9) == pytest.approx(scores)


def test_a_step_before_the_last_trace_is_an_error():
    with pytest.raises(LabError, match="step 2 lies before that of a queued trace"):
        priorities(items_of((A, 1.0, 3, 0.0)), now=2)


def test_a_like_trace_is_put_off_and_comes_later():
    items = items_of((A, 0, 0, 0), (A, 0, 0, 0), (B, 0, 0, 0), (A, 0, 0, 0))
    falling = np.array([4.0, 3.0, 2.0, 1.0])
    assert [item.trace for item in in_order(items, falling, 4)] == [1, 3, 2, 4]
    assert [item.trace for item in in_order(items, falling, 2)] == [1, 3]
    assert [item.trace for item in in_order(items, falling, 4, similar=1.1)] == [1, 2, 3, 4]


def test_ties_go_to_the_older_trace():
    items = items_of((A, 0, 0, 0), (B, 0, 0, 0), (C, 0, 0, 0))
    assert [item.trace for item in in_order(items[::-1], np.array([0.1 + 0.2, 0.3, 0.3]), 3)] == [1, 2, 3]


@settings(deadline=None)
@given(st.lists(st.tuples(keys, st.floats(0, 1)), max_size=12), st.floats(0.3, 1))
def test_no_trace_follows_a_like_one_while_another_was_left(rows, similar):
    items = items_of(*((key, 0.0, 0, 0.0) for key, _ in rows))
    order = in_order(items, np.array([priority for _, priority in rows]), len(items), similar)
    assert sorted(item.trace for item in order) == [item.trace for item in items]
    for position in range(1, len(order)):
        near = cosines([order[position - 1].key], [item.key for item in order[position:]])[0] >= similar
        assert near.all() or not near[0]


SIZE = 40
POLICIES = get_args(Policy)


def full(size=SIZE, capacity=1024):
    """A queue of traces with many keys and strengths."""
    generator = np.random.default_rng(2)
    some = [
        key_of({int(unit_number): int(generator.integers(1, 9)) for unit_number in generator.choice(32, 3, replace=False)})
        for _ in range(size)
    ]
    return queue_of([Arrival(number + 1, key, float(generator.normal()), number) for number, key in enumerate(some)], capacity)


def drawn(seed=7, cycle=1, schedule=None, queue=None, **knobs):
    """What is drawn from the full queue, by a quiet drawing but for the knobs that are named."""
    replay = ReplaySettings(**{"policy": "priority", "noise_level": 0.0, "rate": 0.5, **knobs})
    return draw(queue or full(), replay, cycle, SIZE, seed, schedule)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(POLICIES), st.floats(0, 1), st.floats(0, 2), st.none() | st.integers(0, 50), st.integers(0, 99))
def test_a_draw_repeats_itself_has_nothing_twice_and_keeps_to_the_limits(policy, rate, noise_level, max_items, seed):
    knobs = {"policy": policy, "rate": rate, "noise_level": noise_level, "max_items": max_items}
    chosen = drawn(seed, **knobs)
    assert drawn(seed, **knobs) == chosen
    assert len(set(chosen)) == len(chosen) == ReplaySettings(**knobs).count(SIZE) <= min(SIZE, SIZE if max_items is None else max_items)
    assert set(chosen) <= set(range(1, SIZE + 1))


def test_policies_differ():
    schedule = {trace: Due(cycle=5, interval=4) for trace in drawn(policy="priority")[:5]}
    orders = {policy: drawn(policy=policy, schedule=schedule) for policy in POLICIES}
    assert len(set(orders.values())) == len(POLICIES)


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


def test_only_what_is_due_is_drawn_by_the_spaced_policy():
    schedule = recalled({}, 1, hits=range(1, 11), misses=range(11, 21))
    assert not set(drawn(policy="spaced", rate=1.0, cycle=2, schedule=schedule)) & set(range(1, 11))
    assert len(drawn(policy="spaced", rate=1.0, cycle=2, schedule=schedule)) == SIZE - 10
    assert len(drawn(policy="spaced", rate=1.0, cycle=3, schedule=schedule)) == SIZE
    assert len(drawn(policy="priority", rate=1.0, cycle=2, schedule=schedule)) == SIZE


def test_ca2_goes_on_in_order_of_arrival_and_its_control_in_another_order_that_it_keeps():
    def cycles(policy):
        return [trace for cycle in (1, 2, 3, 4) for trace in drawn(policy=policy, rate=0.25, cycle=cycle)]

    arrived = list(range(1, SIZE + 1))
    assert cycles("ca2") == arrived
    assert sorted(cycles("ca2_shuffled")) == arrived != cycles("ca2_shuffled")
    first, second, other = (drawn(seed, cycle, policy="ca2_shuffled", rate=1.0) for seed, cycle in ((7, 1), (7, 2), (8, 1)))
    assert first == second != other


def test_intervals_double_with_success_and_fall_back_without():
    schedule, dues, cycle = {}, [], 1
    for hit in (True, True, True, False, True):
        schedule = recalled(schedule, cycle, [1] if hit else [], [] if hit else [1])
        dues.append((schedule[1].interval, schedule[1].cycle - cycle))
        cycle = schedule[1].cycle
    assert dues == [(2, 2), (4, 4), (8, 8), (1, 1), (2, 2)]


def test_an_empty_queue_gives_nothing():
    for policy in POLICIES:
        assert draw(queue_of([]), ReplaySettings(policy=policy), 1, 0, 0) == ()
