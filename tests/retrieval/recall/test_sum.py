"""The unfitted sum: channels count alike whatever their scale, only taught traces are compared, the later of two versions comes first."""

import dataclasses

import numpy as np
import pytest

from hippo_core.retrieval.recall import RecallConfig, Recaller, best_rows
from hippo_core.retrieval.text_encoder import with_payloads
from hippo_core.retrieval.trace_index import TraceIndex
from tests.retrieval.recall.conftest import TEXTS

SUM = RecallConfig("off", 20, 20, 16.0, 1)


def recaller(traces, encoder, channels=("grams", "key"), config=SUM):
    return Recaller(TraceIndex(traces, channels, encoder), config)


def test_a_score_is_the_sum_of_what_each_channel_says_standardised_the_key_counting_for_two(traces, encoder):
    cue = "What did Carla sell at the market?"
    asked = recaller(traces, encoder)
    alone = asked.index.likeness(asked.index.cue(cue))
    z = {name: (values - values.mean()) / values.std() for name, values in alone.items()}
    due = dict(zip((trace.id for trace in asked.index.traces), z["grams"] + 2 * z["key"], strict=True))
    result = asked.recall(cue)
    assert dict(zip((trace.id for trace in result.traces), result.scores, strict=True)) == pytest.approx(due, abs=1e-6)


def test_traces_that_may_not_be_recalled_change_nothing(traces, encoder):
    cue = "What did Carla sell at the market?"
    limited = recaller(traces, encoder, ("key",)).recall(cue, {"f0", "f2", "f4"})
    few = recaller([traces[0], traces[2], traces[4]], encoder, ("key",)).recall(cue)
    assert limited.traces == few.traces and limited.scores == pytest.approx(few.scores)


def test_of_two_versions_the_later_comes_first_as_far_as_recency_says(traces, encoder):
    later = dataclasses.replace(traces[0], id=9, source="later", time=99)
    others = [*traces[1:], traces[0], later]
    for recency, first in ((0.0, 1), (2.0, 9)):
        config = dataclasses.replace(SUM, recency=recency)
        assert recaller(others, encoder, config=config).recall(TEXTS[0]).traces[0].id == first


def test_versions_are_looked_for_among_the_best_of_many(traces, encoder):
    worse = [dataclasses.replace(traces[1 + row % 4], id=20 + row, source=f"worse{row}") for row in range(25)]
    earlier = dataclasses.replace(traces[0], id=50, source="earlier")
    later = dataclasses.replace(traces[0], id=51, source="later", time=99)
    config = dataclasses.replace(SUM, recency=2.0, rerank_candidates=30)
    assert recaller([*worse, earlier, later], encoder, config=config).recall(TEXTS[0]).traces[0].id == 51


def test_a_long_passage_is_found_by_any_of_its_sentences(traces, encoder):
    long = dataclasses.replace(traces[0], id=50, source="long", text=" ".join([*TEXTS[1:4], "Ida hid a drum in the barn.", TEXTS[4]]))
    index = with_payloads(encoder, [*traces, long])
    assert len(index[-1].payload.keys) == 5
    assert recaller(index, encoder, ("key",)).recall("Ida hid a drum in the barn.").traces[0].source == "long"


def test_the_best_rows_are_all_that_are_as_high_as_the_last_of_them():
    scores = np.array([3.0, 1.0, 2.0, 1.0, 9.0])
    assert best_rows(scores, np.array([True] * 4 + [False]), 3).tolist() == [0, 1, 2, 3]
    assert best_rows(scores, np.ones(5, bool), 2).tolist() == [0, 4]
