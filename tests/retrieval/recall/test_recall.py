"""Recall from traces: what is asked in a trace's words comes first, masked traces never come, ties go by id, nothing comes of nothing."""

import dataclasses

import numpy as np
import pytest
import torch

from hippo_core.errors import LabError
from hippo_core.models.kv_storage import KVStorage
from hippo_core.models.passage_kv import PassageKV
from hippo_core.models.prompt import prefix_of, split
from hippo_core.models.score import early_states, opener, token_likelihood
from hippo_core.retrieval.channels import dense
from hippo_core.retrieval.confidence import LIKENESS, Confidence
from hippo_core.retrieval.fusion import name_of
from hippo_core.retrieval.recall import RecallConfig, Recaller
from hippo_core.retrieval.trace_index import TraceIndex
from tests.retrieval.recall.conftest import TEXTS

CHANNELS = ("words", "grams", "key")
COUNTED = dict.fromkeys(CHANNELS, 1.0) | {f"{channel}_covered": 0.1 for channel in CHANNELS}
WEIGHTS = dict.fromkeys(("off", "hopfield", "predictive"), COUNTED | {"superseded": -0.001, "hopfield": 1.0, "predictive": 0.1})
OFF = RecallConfig("off", 20, 20, 16.0, 1, WEIGHTS)


def recaller(traces, encoder, config=OFF, channels=("words", "grams", "key"), passage_kv=None):
    return Recaller(TraceIndex(traces, channels, encoder), config, passage_kv)


@pytest.mark.parametrize("channels", [("words",), ("grams",), ("key",), ("words", "grams", "key")])
def test_a_traces_own_words_bring_it_first(traces, encoder, channels):
    asked = recaller(traces, encoder, channels=channels)
    assert [asked.recall(text).traces[0].text for text in TEXTS] == list(TEXTS)


def test_the_order_of_traces_means_nothing(traces, encoder):
    cue = "What did Carla sell at the market?"
    plain, turned = recaller(traces, encoder).recall(cue), recaller(traces[::-1], encoder).recall(cue)
    assert plain.traces == turned.traces
    assert plain.scores == turned.scores


def test_only_traces_of_the_named_statements_are_recalled(traces, encoder):
    result = recaller(traces, encoder).recall(TEXTS[0], {"f1", "f4"}).traces
    assert {trace.source for trace in result} == {"f1", "f4"}
    assert recaller(traces, encoder).recall(TEXTS[0], set()).traces == ()


def test_ties_go_to_the_lower_id(traces, encoder):
    twins = [traces[0], dataclasses.replace(traces[0], id=9, source="twin", time=0)]
    assert [trace.id for trace in recaller(twins, encoder).recall("Carla").traces] == [1, 9]


def test_of_two_in_nearly_the_same_words_the_later_comes_first(traces, encoder):
    later = dataclasses.replace(traces[0], id=9, source="later", time=99)
    assert [trace.id for trace in recaller([traces[0], later], encoder).recall("Carla").traces] == [9, 1]


def test_no_traces_and_a_cue_of_nothing_bring_nothing(traces, encoder):
    assert recaller([], encoder).recall("Who?").traces == ()
    assert recaller(traces, encoder, channels=("words",)).recall("zyx").traces == ()


def test_a_key_made_before_is_the_same_as_one_made_now(traces, encoder):
    cues = ["Who sold a lamp?", "Where was Lea in May?"]
    asked, made = recaller(traces, encoder), encoder.codes(cues)
    for number, cue in enumerate(cues):
        assert asked.recall(cue, codes=made.row_at(number)).scores == asked.recall(cue).scores


@pytest.mark.parametrize("beta", [1.0, 64.0])
def test_hopfield_completion_says_how_near_each_trace_is_to_what_came_out(traces, encoder, beta):
    asked = recaller(traces, encoder, dataclasses.replace(OFF, completion="hopfield", beta=beta))
    result = asked.recall(TEXTS[2])
    patterns, cue = asked.index.patterns.double(), dense(asked.index.cue(TEXTS[2]).codes["key"]).double()[0]
    drawn = torch.softmax(beta * patterns @ cue, 0) @ patterns
    expected = {trace.id: float(patterns[row] @ drawn) for row, trace in enumerate(asked.index.traces)}
    got = dict(zip((trace.id for trace in result.traces), result.features["hopfield"], strict=True))
    assert got == pytest.approx({name: expected[name] for name in got}, abs=1e-5)


def test_predictive_completion_is_the_likelihood_of_the_cue_in_the_plain_prompt(lm, traces, encoder):
    cue = "What did Lea paint in May?"
    passage_kv = PassageKV(lm, prefix_of(lm, "short"), KVStorage(precision="model"))
    result = recaller(traces, encoder, dataclasses.replace(OFF, completion="predictive"), passage_kv=passage_kv).recall(cue)
    for trace, nats in zip(result.traces, result.features["predictive"], strict=True):
        pieces = split(lm, [trace.text], cue, "short")
        plain = ([*pieces.prefix, *pieces.blocks[0]], pieces.tail[: pieces.question_tokens])
        assert nats == pytest.approx(token_likelihood(lm, [plain])[0].nats, rel=1e-4)


@pytest.mark.parametrize(("bias", "completes"), [(2.0, False), (-2.0, True)])
def test_completion_in_doubt_looks_where_the_sum_is_not_sure(lm, traces, encoder, bias, completes):
    doubt = Confidence(dict.fromkeys([*(channel + LIKENESS for channel in CHANNELS), "lead", "size"], 0.0), bias)
    passage_kv = PassageKV(lm, prefix_of(lm, "short"), KVStorage(precision="model"))
    always_on = dataclasses.replace(OFF, completion="predictive", weights=None)
    doubting = dataclasses.replace(always_on, confidence=doubt, below=0.5)
    always, result = (recaller(traces, encoder, config, passage_kv=passage_kv).recall(TEXTS[0]) for config in (always_on, doubting))
    plain = recaller(traces, encoder, dataclasses.replace(always_on, completion="off")).recall(TEXTS[0])
    expected = always if completes else plain
    assert (result.scores, result.traces, result.computed_tokens) == (expected.scores, expected.traces, expected.computed_tokens)
    assert always.computed_tokens > plain.computed_tokens and result.confidence is None  # it is the sum's, not completion's
    with pytest.raises(LabError, match="needs a confidence"):
        recaller(traces, encoder, dataclasses.replace(doubting, confidence=None), passage_kv=passage_kv)


def test_predictive_completion_without_a_model_is_refused(traces, encoder):
    with pytest.raises(LabError, match="predictive completion needs"):
        recaller(traces, encoder, dataclasses.replace(OFF, completion="predictive"))


def test_a_choice_of_channels_has_one_name():
    assert name_of(["key", "words"]) == name_of(("words", "key")) == "words+key"
    with pytest.raises(LabError, match="unknown channel 'smell'"):
        TraceIndex([], ["smell"], None)


def test_early_states_are_those_of_the_whole_model_whatever_the_batch(lm):
    texts = [*TEXTS, "Who?"]
    for batch_size in (1, 64):
        result = early_states(lm, texts, (0, 1), batch_size)
        for text, states in zip(texts, result, strict=True):
            ids = torch.tensor([[opener(lm), *lm.encode(text)]])
            with torch.inference_mode():
                hidden_states = lm.model(input_ids=ids, output_hidden_states=True).hidden_states
            torch.testing.assert_close(states, torch.cat(hidden_states[:2], -1)[0, 1:], atol=1e-4, rtol=1e-4)
    with pytest.raises(LabError, match="has blocks 0 to"):
        early_states(lm, texts, (99,))


def test_units_are_nested_and_an_empty_text_has_none(encoder):
    full, half = encoder.model.activations(TEXTS), encoder.model.activations(TEXTS, 128)
    torch.testing.assert_close(torch.nn.functional.normalize(full[:, :128], dim=-1), half)
    assert not encoder.model.activations([""]).any()
    assert encoder.model.activations([]).shape == (0, 256)
    with pytest.raises(LabError, match="has 256 units, got an expansion of 257"):
        encoder.model.activations(TEXTS, 257)


def test_winners_are_as_many_as_told_and_dense_keys_have_all(lm, encoder):
    sparse, full = encoder.keys(TEXTS), dataclasses.replace(encoder, winners=None).keys(TEXTS)
    assert all(len(key.indices) == 24 for key in sparse)
    assert all(set(few.indices) <= set(many.indices) for few, many in zip(sparse, full, strict=True))
    assert np.mean([len(key.indices) for key in full]) > 24
