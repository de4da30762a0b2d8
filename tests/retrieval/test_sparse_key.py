"""Sparse keys: what is one, what is none, and how alike two are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hippo_core.errors import LabError
from hippo_core.retrieval.sparse_key import SparseKey, SparseMatrix, cosines
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


def rows(*codes, dims=8, unit=None):
    width = max(len(code) for code in codes)
    indices, values = np.full((len(codes), width), -1, dtype=np.int32), np.zeros((len(codes), width), dtype=np.int16)
    for number, code in enumerate(codes):
        indices[number, : len(code)], values[number, : len(code)] = list(code), list(code.values())
    return SparseMatrix(indices, values, dims, unit)


def test_cosines_and_cover_are_those_of_the_dense_vectors():
    stored, cue = rows({0: 3, 2: 4}, {1: 5}, {0: 1, 1: 1, 2: 1, 3: 9}), rows({0: 2, 2: 1, 3: 2})
    assert stored.cosines(np.arange(3), cue) == pytest.approx([(6 + 4) / (5 * 3), 0, (2 + 1 + 18) / (np.sqrt(84) * 3)])
    assert stored.covered(np.arange(3), cue) == pytest.approx([5 / 9, 0, 1])


def test_what_the_space_does_not_have_is_not_covered_and_padding_covers_nothing():
    cue = rows({0: 3}, unit=5.0)
    assert rows({0: 1}, {1: 1, 2: 2}, unit=5.0).covered(np.arange(2), cue) == pytest.approx([9 / 25, 0])
    assert rows({0: 1, 1: 1}, {7: 1}).covered(np.array([1]), cue) == pytest.approx([0])
