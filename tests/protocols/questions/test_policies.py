"""One run gives the answers of three policies: what is told of them afterwards is what a run under each of them says."""

from dataclasses import replace

import pytest

from hippo_core.evaluation.run import answer
from hippo_core.methods.base import Method, MethodSettings, Retrieved
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.results.policies import with_policies
from hippo_core.results.scores import check_rows
from tests.models.handmade import suite, worlds

N = 5  # items of the handmade worlds
PENALTY = 1.5  # nats


class Half(Method):
    """It shows the facts of even number, so that some questions can be answered, and is as sure as `confidence` says."""

    says_confidence = True
    confidence: float | None = None

    def open(self, traces, questions=()):
        return lambda query: Retrieved(tuple(traces[::2]), confidence=self.confidence)


@pytest.fixture(scope="module", params=[0.0, PENALTY])
def lm(request):
    """The lab's own model, and as if "unknown" were held back by its spec."""
    tiny = load(load_spec("hippo-tiny"), device="cpu")
    return replace(tiny, spec=tiny.spec.model_copy(update={"abstention_penalty": request.param}))


def run(lm, confidence=None, delivery="text", **settings):
    method = Half(lm, MethodSettings(delivery=delivery, abstention="method", **settings))
    method.confidence = confidence
    rows = answer(lm, suite(), worlds(), method, batch_size=2)
    check_rows(suite(), worlds(), rows)
    return rows.assign(suite="s", preset="p")


@pytest.mark.parametrize("delivery", ["text", "kv", "adapter"])
def test_the_policies_of_one_run_are_the_runs_of_each_policy(lm, delivery):
    may, never, always = (run(lm, confidence, delivery) for confidence in (None, 1.0, 0.0))
    assert 0 < may["abstained"].sum() < N and not never["abstained"].any() and always["abstained"].all()
    for rows in (may, never, always):
        scored = with_policies(rows, rows.iloc[:0])
        assert scored["abstained_may"].tolist() == may["abstained"].tolist()
        assert scored["score_may"].tolist() == may["score"].tolist()
        assert scored["forced"].tolist() == never["pred"].tolist()
        assert scored["score_never"].tolist() == scored["score_forced"].tolist() == never["score"].tolist()
        assert scored["unknown_margin"].tolist() == pytest.approx(may["unknown_margin"].tolist(), abs=1e-4)


def test_what_is_forced_costs_nothing_and_leaves_the_answer_as_it_was(lm):
    costs = ["prompt_tokens", "trace_tokens", "once_tokens"]
    always, never = run(lm, 0.0), run(lm, 1.0)
    assert set(always["pred"]) == {"unknown"}
    assert always["forced"].tolist() == never["forced"].tolist()
    assert always[costs].equals(never[costs])
    assert (always["generated_tokens"] == len(lm.unknown.word)).all()


def test_what_the_method_knows_of_its_fit_stands_in_the_row(lm):
    assert run(lm)[["confidence", "evidence"]].isna().all(axis=None)
    assert (run(lm, 0.75)[["confidence", "evidence"]] == 0.75).all(axis=None)
