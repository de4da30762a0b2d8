"""A method that says how sure it is decides whether an answer is "unknown": each confidence reaches the answer to its question."""

import dataclasses

import pytest

from hippo_core.errors import LabError
from hippo_core.evaluation.run import answer
from hippo_core.methods.base import Method, MethodSettings, Query, Retrieved
from hippo_core.methods.controls import open_controlled
from hippo_core.methods.presets import load_preset
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from tests.models.handmade import suite, worlds

N = 5  # items of the handmade worlds


class Confident(Method):
    """It shows every fact, and is as sure as `confidences` say of one question after the other."""

    says_confidence = True
    confidences: tuple[float | None, ...] = (None,) * N

    def open(self, traces, questions=()):
        order = [item.question for world in worlds() for item in world.items]
        return lambda query: Retrieved(tuple(traces), confidence=self.confidences[order.index(query.text)])


@pytest.fixture(scope="module")
def tiny():
    return load(load_spec("hippo-tiny"), device="cpu")


def asked(lm, confidences, **settings):
    method = Confident(lm, MethodSettings(**{"abstention": "method"} | settings))
    method.confidences = tuple(confidences)
    return answer(lm, suite(), worlds(), method, batch_size=2)["pred"].tolist()


@pytest.mark.parametrize("delivery", ["text", "kv", "adapter"])
def test_answers_are_unknown_where_the_method_is_not_sure_and_nowhere_else(tiny, delivery):
    confident, doubtful = asked(tiny, [0.5] * N, delivery=delivery), asked(tiny, [0.49] * N, delivery=delivery)
    assert "unknown" not in confident
    assert doubtful == ["unknown"] * N
    first = [0.9, 0.1, 0.7, 0.0, 1.0]
    swapped = [1 - confidence for confidence in first]
    for confidences in (first, swapped):
        due = [known if confidence >= 0.5 else "unknown" for confidence, known in zip(confidences, confident, strict=True)]
        assert asked(tiny, confidences, delivery=delivery) == due


def test_where_it_does_not_say_or_may_not_decide_the_model_does(tiny):
    silent = asked(tiny, [None] * N)
    assert asked(tiny, [0.0] * N, abstention="model") == silent
    assert asked(tiny, [None, 0.0, None, 0.0, None]) == [silent[0], "unknown", silent[2], "unknown", silent[4]]
    penalised = dataclasses.replace(tiny, spec=tiny.spec.model_copy(update={"abstention_penalty": 50.0}))
    assert asked(penalised, [0.0] * N) == ["unknown"] * N


def test_a_control_that_shows_something_else_drops_the_confidence(tiny):
    item = worlds()[0].items[0]
    for control in ("none", "empty", "oracle", "random"):
        method = Confident(tiny, MethodSettings(control=control))
        method.confidences = (0.2,) * N
        retrieved = open_controlled(method, (), ())(item, Query(item.question, ())).retrieved
        assert retrieved.confidence == (0.2 if control == "none" else None)
    assert asked(tiny, [0.0] * N, control="empty") == asked(tiny, [1.0] * N, control="empty")


@pytest.mark.parametrize("confidence", [-0.1, 1.1, float("nan")])
def test_a_confidence_goes_from_0_to_1(confidence):
    with pytest.raises(LabError, match="a method's confidence goes from 0 to 1, got"):
        Retrieved((), confidence=confidence)


def test_a_method_that_never_says_cannot_decide():
    with pytest.raises(LabError, match=r"needs a method that says how sure it is, .*:BM25 does not; use abstention=model"):
        load_preset("baselines/rag_bm25", {"abstention": "method"})
    assert load_preset("baselines/rag_bm25").settings.abstention == "model"
