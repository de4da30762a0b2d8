"""Priorities by hand, and an order that keeps like traces apart and loses none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hippo_core.errors import LabError
from hippo_core.methods.episodic.replay import Queued, Shares, in_order, priorities
from hippo_core.retrieval.sparse_key import cosines
from tests.store.made import key_of, keys

A, B, C = (key_of({place: 1}) for place in range(3))


def items_of(*some):
    """Queued traces of (key, S, step, diversity)."""
    return [Queued(number + 1, *values) for number, values in enumerate(some)]


def test_priority_by_hand():
    items = items_of((A, 2.0, 0, 1.0), (B, 4.0, 1, 0.5), (C, 3.0, 3, 0.0))
    found = priorities(items, now=3)
    assert found == pytest.approx([0.3 / 4 + 0.2, 0.5 + 0.3 / 3 + 0.2 * 0.5, 0.25 + 0.3])


def test_equal_strengths_say_nothing():
    assert priorities(items_of((A, 2.0, 0, 0.0), (B, 2.0, 0, 0.0)), now=0) == pytest.approx([0.3, 0.3])
    assert len(priorities([], now=0)) == 0


@pytest.mark.parametrize(("share", "first"), [("strength", 1), ("recency", 2), ("diversity", 3)])
def test_each_share_decides_where_it_is_the_only_one(share, first):
    items = items_of((A, 2.0, 0, 0.0), (B, 1.0, 1, 0.0), (C, 1.0, 0, 1.0))
    shares = Shares(**{**dict.fromkeys(("strength", "recency", "diversity"), 0.0), share: 1.0})
    assert in_order(items, priorities(items, 1, shares), 1)[0].trace == first


@given(st.lists(st.tuples(keys, st.floats(-1e6, 1e6), st.integers(0, 9), st.floats(0, 1)), min_size=1))
def test_a_priority_lies_between_0_and_1_and_does_not_know_the_unit_of_S(rows):
    items = items_of(*rows)
    found = priorities(items, now=9)
    assert (found >= 0).all() and (found <= 1 + 1e-12).all()
    doubled = items_of(*((key, 4 * S, step, diversity) for key, S, step, diversity in rows))
    assert priorities(doubled, now=9) == pytest.approx(found)


def test_a_step_before_the_last_trace_is_an_error():
    with pytest.raises(LabError, match="step 2 lies before that of a queued trace"):
        priorities(items_of((A, 1.0, 3, 0.0)), now=2)


def test_a_like_trace_is_put_off_and_comes_later():
    items = items_of((A, 0, 0, 0), (A, 0, 0, 0), (B, 0, 0, 0), (A, 0, 0, 0))
    falling = np.array([4.0, 3.0, 2.0, 1.0])
    assert [item.trace for item in in_order(items, falling, 4)] == [1, 3, 2, 4]
    assert [item.trace for item in in_order(items, falling, 2)] == [1, 3]
    assert [item.trace for item in in_order(items, falling, 4, alike=1.1)] == [1, 2, 3, 4]


def test_ties_go_to_the_older_trace():
    items = items_of((A, 0, 0, 0), (B, 0, 0, 0), (C, 0, 0, 0))
    assert [item.trace for item in in_order(items[::-1], np.array([0.1 + 0.2, 0.3, 0.3]), 3)] == [1, 2, 3]


@settings(deadline=None)
@given(st.lists(st.tuples(keys, st.floats(0, 1)), max_size=12), st.floats(0.3, 1))
def test_no_trace_follows_a_like_one_while_another_was_left(rows, alike):
    items = items_of(*((key, 0.0, 0, 0.0) for key, _ in rows))
    order = in_order(items, np.array([priority for _, priority in rows]), len(items), alike)
    assert sorted(item.trace for item in order) == [item.trace for item in items]
    for place in range(1, len(order)):
        near = cosines([order[place - 1].key], [item.key for item in order[place:]])[0] >= alike
        assert near.all() or not near[0]


def test_a_shorter_order_is_the_beginning_of_a_longer():
    generator = np.random.default_rng(1)
    items = items_of(*((key_of({int(generator.integers(4)): 1}), 0.0, 0, 0.0) for _ in range(30)))
    priority = generator.random(30)
    assert in_order(items, priority, 30)[:7] == in_order(items, priority, 7)
