"""Cues: a world's questions are encoded in one batch, others alone, and each bears its part of the time."""

import pytest

from hippo_core.retrieval.world_index import Cues, WorldIndex


@pytest.fixture
def encode(monkeypatch):
    """An encoder that takes a quarter of a second a text, and what it was given."""
    now, calls = [0.0], []

    def encode(texts):
        now[0] += 0.25 * len(texts)
        calls.append(list(texts))
        return [text.upper() for text in texts]

    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    encode.calls = calls
    return encode


def test_known_cues_are_encoded_together_and_share_the_time(encode):
    cues = Cues(encode, ["a", "b", "a"])
    assert not encode.calls
    assert [cues.of(text) for text in "bab"] == [("B", 250.0), ("A", 250.0), ("B", 250.0)]
    assert encode.calls == [["a", "b"]]


def test_another_cue_is_encoded_alone_whenever_it_is_asked(encode):
    cues = Cues(encode, ["a"])
    assert [cues.of("c"), cues.of("c")] == [("C", 250.0)] * 2
    assert encode.calls == [["c"], ["c"]]


def test_a_world_encodes_its_questions_once_for_each_encoder_and_says_what_each_took(encode):
    index = WorldIndex(None, (), ("a", "b"))
    assert index.cue("first", "a", encode) == index.cue("first", "a", encode) == "A"
    assert index.cue_ms == 500.0
    index.cue("second", "b", encode)
    assert encode.calls == [["a", "b"]] * 2 and index.cue_ms == 750.0
    assert index.cue("first", "z", encode) == "Z" and index.cue_ms == 750.0  # who asks alone times it
