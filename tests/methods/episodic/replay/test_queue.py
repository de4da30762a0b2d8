"""The replay queue: what stays, what is dropped, and how diversity is measured."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hippo_core.errors import LabError
from hippo_core.methods.episodic.replay import Arrival, Queue, arrivals_of, push
from tests.store.made import key_of, keys, saliences, trace

A, B, BETWEEN, AGAINST = (key_of(entries) for entries in ({0: 1}, {1: 1}, {0: 1, 1: 1}, {0: -1}))
arriving = st.lists(st.tuples(keys, saliences), max_size=12).map(
    lambda found: [Arrival(number + 1, key, S, number) for number, (key, S) in enumerate(found)]
)


def queued(*some, capacity=1024):
    """A queue to which traces with these keys came one step apart."""
    return push(Queue(capacity), [Arrival(number + 1, key, 1.0, number) for number, key in enumerate(some)])


def test_diversity_by_hand():
    found = [item.diversity for item in queued(A, A, B, BETWEEN, AGAINST).items]
    half = 1 - np.sqrt(0.5)
    assert found == pytest.approx([1, 0, 1, half, 1], abs=1e-11)


def by_definition(arrivals, capacity):
    """One by one, cosines from the dense rows."""
    held, diversities = [], []
    for arrival in arrivals:
        row = np.array(arrival.key.dense())
        unit = [np.array(key.dense()) / np.linalg.norm(key.dense()) for key in held]
        unlike = [1 - max(0.0, float(other @ row) / np.linalg.norm(row)) for other in unit]
        diversities.append(np.mean(unlike) if unlike else 1.0)
        held = [*held, arrival.key][-capacity:]
    return diversities[-capacity:]


@settings(deadline=None)
@given(arriving, st.integers(1, 15), st.integers(0, 12))
def test_at_once_is_one_by_one(arrivals, capacity, cut):
    whole = push(Queue(capacity), arrivals)
    parts = push(push(Queue(capacity), arrivals[:cut]), arrivals[cut:])
    assert [item.trace for item in whole.items] == [arrival.trace for arrival in arrivals[-capacity:]]
    assert whole.dropped == parts.dropped == max(0, len(arrivals) - capacity)
    assert [item.diversity for item in whole.items] == pytest.approx(by_definition(arrivals, capacity), abs=1e-10)
    assert [item.diversity for item in parts.items] == pytest.approx([item.diversity for item in whole.items], abs=1e-12)


def test_more_than_are_compared_at_a_time():
    generator = np.random.default_rng(0)
    some = [key_of({int(place): 1 for place in generator.choice(32, 3, replace=False)}) for _ in range(700)]
    whole, parts = queued(*some, capacity=300), Queue(300)
    for number, key in enumerate(some):
        parts = push(parts, [Arrival(number + 1, key, 1.0, number)])
    assert [item.trace for item in whole.items] == [item.trace for item in parts.items]
    assert [item.diversity for item in whole.items] == pytest.approx([item.diversity for item in parts.items], abs=1e-12)


def test_traces_arrive_in_the_order_of_their_ids():
    found = arrivals_of([trace(id=9, salience=0.5), trace(id=4, salience=0.25)])
    assert [(arrival.trace, arrival.S, arrival.step) for arrival in found] == [(4, 0.25, 0), (9, 0.5, 1)]


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
        push(Queue(), arrivals)


def test_a_queue_has_room():
    with pytest.raises(LabError, match="capacity of 0"):
        Queue(0)
