"""What a cue's key takes to be made is part of the cue's time, also where the keys of all questions are made together."""

from dataclasses import replace

import pytest

from hippo_core.evaluation.run import passages_of
from hippo_core.methods.base import Query
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.retrieval.payload import Payload
from hippo_core.retrieval.text_encoder import KeyEncoder
from tests.methods.asking import bound
from tests.models.handmade import worlds

QUESTIONS = ("Who sold a guitar?", "Where did Otto move?")


def test_a_cue_bears_its_share_of_the_keys_that_are_made_together(monkeypatch):
    now, codes = [0.0], KeyEncoder.codes

    def slow(self, texts):
        now[0] += 0.25 * len(texts)
        return codes(self, texts)

    method = bound("memory/hei_nw", load(load_spec("hippo-tiny"), threads=1))
    traces = [made(method, trace, number) for number, trace in enumerate(passages_of(worlds()[0]), start=1)]
    monkeypatch.setattr(KeyEncoder, "codes", slow)
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    batched, alone = method.open(traces, QUESTIONS), method.open(traces)
    for retrieve in (batched, alone):
        for question in QUESTIONS:
            retrieved = retrieve(Query(question, tuple(trace.source for trace in traces)))
            assert retrieved.ranking and retrieved.recall_ms == pytest.approx(250.0)


def made(method, trace, number):
    """A passage as a stored trace."""
    return replace(trace, id=number, payload=Payload((1,), tuple(method.components.encoder.keys([trace.text]))))
