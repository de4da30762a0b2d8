"""Judging a gate: against the plain definitions, by hand, and at its extremes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hippo_core.protocols.questions.telemetry import average_precision

judged = st.lists(st.tuples(st.integers(0, 6).map(float), st.booleans()), min_size=1, max_size=30)


def by_definition(scores, labels):
    """At every threshold count what lies at or above it, and add up the steps in recall."""
    total, recall_before = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        above = [label for score, label in zip(scores, labels, strict=True) if score >= threshold]
        recall = sum(above) / sum(labels)
        total += (recall - recall_before) * sum(above) / len(above)
        recall_before = recall
    return total


@given(judged)
def test_average_precision_is_what_its_definition_says(rows):
    scores, labels = zip(*rows, strict=True)
    if any(labels):
        assert average_precision(scores, labels) == pytest.approx(by_definition(scores, labels), abs=1e-12)
    else:
        assert math.isnan(average_precision(scores, labels))


@given(judged, st.randoms())
def test_the_order_of_statements_does_not_matter(rows, random):
    mixed = random.sample(rows, len(rows))
    assert average_precision(*zip(*rows, strict=True)) == pytest.approx(average_precision(*zip(*mixed, strict=True)), nan_ok=True)


def test_average_precision_by_hand():
    assert average_precision([4, 3, 2, 1], [True, False, True, False]) == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision([1, 1, 1, 1], [True, False, False, False]) == 0.25


def test_a_gate_that_knows_all_has_1_and_one_that_knows_nothing_the_base_rate():
    labels = np.random.default_rng(3).random(5000) < 0.2
    assert average_precision(labels.astype(float), labels) == 1
    assert average_precision(np.random.default_rng(4).random(5000), labels) == pytest.approx(labels.mean(), abs=0.02)
