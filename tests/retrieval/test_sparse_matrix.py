"""Rows of a sparse code beside a cue: the cosine, and how much of the cue a row covers."""

import numpy as np
import pytest

from hippo_core.retrieval.sparse_key import SparseMatrix


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
