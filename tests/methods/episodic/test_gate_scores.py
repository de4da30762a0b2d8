"""Judging a gate: against the plain definitions, by hand, and at its extremes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hippo_core.protocols.questions.table import average_precision

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
