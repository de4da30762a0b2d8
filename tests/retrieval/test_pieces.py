"""Late interaction of word pieces: the best piece counts, letters count where words are misspelt, rare words more; payloads keep pieces."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from hippo_core.errors import LabError
from hippo_core.retrieval.payload import Payload, PayloadCodec
from hippo_core.retrieval.pieces import TEXT_WEIGHT, PieceChannel, PieceIndex, Spelling, letters, matched
from hippo_core.retrieval.vectors import quantised
from tests.store.made import CODEC, key_of

TEXTS = ("the red mill", "a red barn", "the lake", "by night")
STARTS = np.array([0, 2, 3])  # the first trace has two sentences


def tables(random):
    """A row for each word of each sentence; the last sentence has no piece."""
    return [quantised(random.standard_normal((0 if text == "by night" else len(text.split()), 8))) for text in TEXTS]


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def dice(a, b):
    return 2 * len(letters(a) & letters(b)) / (len(letters(a)) + len(letters(b)))


def test_a_trace_counts_what_the_pieces_of_a_cue_find_in_its_best_sentence():
    random = np.random.default_rng(3)
    made, cue_rows, vectors = tables(random), quantised(random.standard_normal((3, 8))), quantised(random.standard_normal((5, 6)))
    cue = PieceIndex(cue_rows, np.array([1.0, 2.0, 0.5], np.float32), ("red", "miill", ""), vectors[4])
    count_of = {"red": 2, "miill": 0, "": 0}
    weights = [
        weight * math.log1p((4 - count_of[word] + 0.5) / (count_of[word] + 0.5))
        for weight, word in zip(cue.weights, cue.words, strict=True)
    ]
    sentences = []
    for text, table, vector in zip(TEXTS, made, vectors[:4].astype(float), strict=True):
        cosines = unit(cue_rows.astype(float)) @ unit(table.astype(float)).T
        spelt = [max(dice(word, other) for other in text.split()) if word else -1.0 for word in cue.words]
        similarity = sum(w * max([*row, s]) for w, row, s in zip(weights, cosines, spelt, strict=True)) / sum(weights)
        sentences.append(similarity + TEXT_WEIGHT * float(unit(vector) @ unit(vectors[4].astype(float))))
    due = [max(sentences[:2]), *sentences[2:]]
    assert PieceChannel(made, TEXTS, vectors[:4], STARTS).scores(cue) == pytest.approx(due)


def test_a_misspelt_word_is_found_by_its_letters_and_no_word_by_none():
    similarities = Spelling([text.split() for text in TEXTS]).similarities(["mlil", "lakee", ""])
    assert similarities[0].argmax() == 0 and similarities[1].argmax() == 2
    assert (similarities[2] == -1).all()
    assert Spelling([]).similarities(["mill"]).shape == (1, 0)


def test_without_traces_or_without_pieces_nothing_is_found():
    nothing = PieceIndex(np.zeros((0, 8), np.int8), np.zeros(0, np.float32), (), np.zeros(6, np.int8))
    made, vectors = tables(np.random.default_rng(1)), np.ones((4, 6), np.int8)
    assert PieceChannel(made, TEXTS, vectors, STARTS).scores(nothing).tolist() == [0, 0, 0]
    assert len(PieceChannel([], [], np.zeros((0, 6), np.int8), np.zeros(0, np.int64)).scores(nothing)) == 0


def test_while_it_learns_a_text_counts_its_best_piece():
    cue, table = torch.eye(3)[:2], torch.tensor([[1.0, 0, 0], [0.6, 0.8, 0], [0, 0, 1.0]])
    scores = matched(cue, table, torch.tensor([0, 0, 2]), 3)
    assert torch.allclose(scores, torch.tensor([[1.0, -1.0, 0.0], [0.8, -1.0, 0.0]]))


def payload(*sizes):
    rows = tuple(np.arange(3 * size, dtype=np.int8).reshape(size, 3) for size in sizes)
    return Payload((1, 2), tuple(key_of({3: 7}) for _ in sizes), None, rows)


def test_a_payload_keeps_the_pieces_of_each_sentence():
    codec = replace(CODEC, pieces=3)
    for sizes in ((2,), (0, 4), (1, 0, 2)):
        example = payload(*sizes)
        codec.check(example)
        assert codec.decode(codec.encode(example)) == example == codec.from_json(codec.to_json(example))
    assert payload(2) != payload(3)


def test_pieces_that_are_not_those_of_the_store_are_refused():
    codec = replace(CODEC, pieces=3)
    with pytest.raises(LabError, match="pieces of 1 sentences"):
        codec.check(Payload((1,), (key_of({3: 7}),)))
    with pytest.raises(LabError, match="pieces of 0 sentences"):
        CODEC.check(payload(2))
    data = codec.encode(payload(1, 2))
    for wrong in (data[:-1], data + b"\0", data[:-10]):
        with pytest.raises(LabError):
            codec.decode(wrong)


def test_a_store_without_pieces_is_described_and_written_as_before():
    assert "pieces" not in CODEC.settings and replace(CODEC, pieces=3).settings["pieces"] == 3
    plain = Payload((1, 2), (key_of({3: 7}),))
    assert CODEC.decode(CODEC.encode(plain)) == plain and "pieces" not in CODEC.to_json(plain)
    with pytest.raises(LabError, match="a vector has 0 numbers or more"):
        PayloadCodec(key="by hand", dims=8, winners=2, pieces=-1)
