"""Channels: all traces are compared at once, exactly, each as its best sentence; vectors as whole numbers keep their direction."""

import numpy as np
import pytest
import torch

from hippo_core.retrieval.channels import SparseChannel, VectorChannel, dense
from hippo_core.retrieval.lexicon import sentences
from hippo_core.retrieval.ranking import standardised
from hippo_core.retrieval.sparse_key import SparseMatrix
from hippo_core.retrieval.text_encoder import joined
from hippo_core.retrieval.vectors import lengths_of, quantised

STARTS = np.array([0, 2, 3])  # of three traces with two sentences, one and three


@pytest.fixture
def rows():
    """Six sentences and a cue in a space of 40 dimensions; some values below 0."""
    random = np.random.default_rng(0)
    indices = np.stack([np.sort(random.choice(40, 12, replace=False)) for _ in range(7)]).astype(np.int32)
    values = random.integers(-3, 9, indices.shape).astype(np.int16)
    values[values == 0] = 1
    return SparseMatrix(indices[:6], values[:6], 40), SparseMatrix(indices[6:], values[6:], 40)


def laid(matrix):
    table = np.zeros((len(matrix.indices), matrix.dims))
    np.put_along_axis(table, matrix.indices.astype(np.int64), matrix.values.astype(float), 1)
    return table


def best(scores):
    return [max(part) for part in np.split(scores, STARTS[1:])]


def test_cosines_and_shares_covered_are_those_of_the_best_sentence(rows):
    matrix, cue = rows
    channel, table, [asked] = SparseChannel(matrix, STARTS), laid(matrix), laid(cue)
    lengths = np.linalg.norm(table, axis=1) * np.linalg.norm(asked)
    assert channel.cosines(cue) == pytest.approx(best(table @ asked / lengths))
    assert channel.covered(cue) == pytest.approx(best((table > 0) @ asked**2 / (asked @ asked)))
    assert len(channel) == 3


def test_features_of_some_traces_are_those_of_all(rows):
    matrix, cue = rows
    channel, some = SparseChannel(matrix, STARTS), np.array([2, 0])
    result = channel.features("key", cue, some)
    assert result["key"] == pytest.approx(channel.cosines(cue)[some])
    assert result["key_covered"] == pytest.approx(channel.covered(cue)[some])


def test_candidates_are_traces_and_a_mask_is_of_traces(rows):
    matrix, cue = rows
    channel = SparseChannel(matrix, STARTS)
    first = int(np.argmax(best(laid(matrix) @ laid(cue)[0])))
    assert channel.candidates(cue, 1, None).tolist() == [first]
    allowed = torch.tensor([number != first for number in range(3)])
    assert first not in channel.candidates(cue, 6, allowed).tolist()


def test_a_dense_trace_is_the_union_of_its_sentences(rows):
    matrix, _ = rows
    union = SparseChannel(matrix, STARTS).dense(np.array([1, 2]))
    each = dense(matrix)
    torch.testing.assert_close(union[0], each[2])
    torch.testing.assert_close(union[1], torch.nn.functional.normalize(each[3:].amax(0), dim=0))


def test_whole_numbers_keep_the_direction_of_a_vector():
    random = np.random.default_rng(1)
    vectors = random.normal(size=(6, 384)).astype(np.float32)
    cue = random.normal(size=384).astype(np.float32)
    exact = vectors @ cue / np.linalg.norm(vectors, axis=1) / np.linalg.norm(cue)
    result = VectorChannel(quantised(vectors), STARTS).cosines(quantised(cue[None])[0])
    assert result == pytest.approx(best(exact), abs=0.005)
    assert quantised(np.zeros((1, 4))).tolist() == [[0] * 4] and lengths_of(np.zeros((1, 4), np.int8)).tolist() == [1.0]


def test_scores_are_standardised_among_those_allowed():
    allowed = np.array([True, True, True, False])
    result = standardised(np.array([1.0, 2.0, 3.0, 900.0]), allowed)
    assert result[:3] == pytest.approx([-np.sqrt(1.5), 0, np.sqrt(1.5)])
    assert not standardised(np.ones(4)).any() and not standardised(np.ones(2), np.zeros(2, bool)).any()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Otto sold a lamp.", ["Otto sold a lamp."]),
        (
            'It rained. We stayed in! Why? "Nobody knew." So it was.',
            ["It rained.", "We stayed in!", "Why?", '"Nobody knew."', "So it was."],
        ),
        ("At 9.30 a.m. he left for St. Ives", ["At 9.30 a.m. he left for St.", "Ives"]),  # a rule of thumb, and harmless
        ("no capital. here. or there", ["no capital. here. or there"]),
        ("", [""]),
        ("Two lines.\nThe second.", ["Two lines.", "The second."]),
    ],
)
def test_a_text_is_its_sentences(text, parts):
    assert sentences(text) == parts
    assert joined([parts, ["x"]])[1].tolist() == [0, len(parts)]
