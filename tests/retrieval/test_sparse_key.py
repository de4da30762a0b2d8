"""Sparse keys: what is one, what is none, and how alike two are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hippo_core.errors import LabError
from hippo_core.retrieval.sparse_key import SparseKey, cosines
from tests.store.made import DIMS, keys


@given(keys)
def test_dense_and_back(key):
    assert SparseKey.of_dense(key.dense()) == key
    assert hash(SparseKey.of_dense(key.dense())) == hash(key)


@given(keys)
def test_padding_is_dropped_and_nothing_else(key):
    assert SparseKey.unpadded([*key.indices, -1, -1], [*key.values, 0, 0], DIMS) == key


@pytest.mark.parametrize(
    ("indices", "values", "dims", "said"),
    [
        ([0, 1], [1.0, float("nan")], 4, "NaN"),
        ([0, 1], [1.0, float("inf")], 4, "infinity"),
        ([0, 1], [1.0, 2.5], 4, "quantise"),
        ([0, 1], [1, 128], 4, "from -128 to 127"),
        ([0, 1], [1, 0], 4, "zeros"),
        ([0, 1], [1], 4, "one value an index"),
        ([], [], 4, "no winners"),
        ([1, 0], [1, 1], 4, "ascend"),
        ([1, 1], [1, 1], 4, "ascend"),
        ([0, 4], [1, 1], 4, "0 ... 3"),
        ([-1, 0], [1, 1], 4, "0 ... 3"),
        ([0], [1], 0, "dimensions"),
        ([[0]], [[1]], 4, "one row"),
        (["a"], [1], 4, "one row of numbers"),
    ],
)
def test_what_is_no_key_says_why(indices, values, dims, said):
    with pytest.raises(LabError, match=said):
        SparseKey(np.array(indices), np.array(values), dims)


def test_a_key_cannot_be_altered_and_keeps_nothing_of_what_it_was_made_from():
    indices = np.array([1, 2], dtype=np.int32)
    key = SparseKey(indices, np.array([3, 4], dtype=np.int8), 8)
    indices[0] = 0
    assert key.indices.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        key.indices[0] = 0


@given(st.lists(keys, min_size=1, max_size=6), st.lists(keys, min_size=1, max_size=6))
def test_cosines_are_those_of_the_dense_rows(left, right):
    rows = [np.array([key.dense() for key in keys]) for keys in (left, right)]
    rows = [keys / np.linalg.norm(keys, axis=1, keepdims=True) for keys in rows]
    assert cosines(left, right) == pytest.approx(rows[0] @ rows[1].T, abs=1e-11)


def test_keys_of_two_spaces_are_not_compared():
    with pytest.raises(LabError, match=r"\[4, 5\]"):
        cosines([SparseKey(np.array([0]), np.array([1]), dims) for dims in (4, 5)], [SparseKey(np.array([0]), np.array([1]), 4)])
