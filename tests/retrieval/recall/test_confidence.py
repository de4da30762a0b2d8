"""How sure a recall is: what speaks for its best trace, the fitted function of that, and that it follows what was told."""

import dataclasses
import json
import math

import numpy as np
import pytest

from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.methods.presets import load_preset
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.retrieval.confidence import Confidence, evidence, fit, load_confidence
from hippo_core.retrieval.recall import RecallConfig, Recaller
from hippo_core.retrieval.trace_index import TraceIndex
from tests.retrieval.recall.conftest import TEXTS

COVERED = Confidence({"grams_likeness": 20.0, "key_likeness": 0.0, "lead": 0.0, "size": 0.0}, -10.0)
SUM = RecallConfig("off", 20, 20, 16.0, 1, confidence=COVERED)
SHIPPED = sorted((root() / "data/weights").glob("*/confidence.json"))


def confidence_of(traces, encoder, text, sources=None, config=SUM):
    return Recaller(TraceIndex(traces, ("grams", "key"), encoder), config).recall(text, sources).confidence


def test_it_is_high_for_what_was_told_and_low_where_that_may_not_be_recalled(traces, encoder):
    for number, text in enumerate(TEXTS):
        others = {f"f{other}" for other in range(len(TEXTS)) if other != number}
        assert confidence_of(traces, encoder, text) > 0.9999
        assert confidence_of(traces, encoder, text, others) < confidence_of(traces, encoder, text)


def test_the_evidence_is_of_the_best_trace_its_lead_and_how_many_there_were(traces, encoder):
    config = dataclasses.replace(SUM, confidence=Confidence({"grams_likeness": 0, "key_likeness": 0, "lead": 1, "size": 10}, 0.5))
    asked = Recaller(TraceIndex(traces, ("grams", "key"), encoder), config)
    few = {"f0", "f1", "f2"}
    result = asked.recall(TEXTS[0], few)
    due = result.scores[0] - result.scores[1] + 10 * math.log(3) + 0.5
    assert result.confidence == pytest.approx(1 / (1 + math.exp(-due)))
    likeness = asked.index.likeness(asked.index.cue(TEXTS[0]))
    assert {name: result.features[f"{name}_likeness"][0] for name in likeness} == {name: values.max() for name, values in likeness.items()}
    of_one = evidence({"grams": np.array([9.0]), "grams_likeness": np.array([0.4])}, [2.0], 1)
    assert of_one == {"grams_likeness": 0.4, "lead": 2.0, "size": 0.0}


def test_where_nothing_is_found_it_is_0_and_without_a_fit_nothing_is_said(traces, encoder):
    grams = Recaller(TraceIndex(traces, ("grams",)), SUM)
    assert grams.recall("zyx").confidence == 0.0
    assert confidence_of(traces, encoder, TEXTS[0], config=dataclasses.replace(SUM, confidence=None)) is None


def test_a_fit_finds_the_function_that_made_the_answers():
    random = np.random.default_rng(0)
    rows = [{"a": a, "b": b, "same": 1.0} for a, b in random.normal(size=(4000, 2)) * [1.0, 50.0]]
    chance = np.array([1 / (1 + math.exp(-(2 * row["a"] + 0.02 * row["b"] - 1))) for row in rows])
    right = (random.random(4000) < chance).astype(float)
    result = fit(rows, right, np.ones(4000))
    assert np.mean(np.abs([result.of(row) for row in rows] - chance)) < 0.02
    flipped = fit(rows, 1 - right, np.ones(4000))
    assert [flipped.of(row) for row in rows[:9]] == pytest.approx([1 - result.of(row) for row in rows[:9]], abs=0.01)
    wanted = fit(rows, right, np.where(right, 3.0, 1.0))
    assert wanted.bias > result.bias + 0.8
    with pytest.raises(LabError, match="got 4000 of 4000 answered"):
        fit(rows, np.ones(4000), np.ones(4000))


def test_evidence_without_a_weight_and_a_fit_that_is_not_there_are_errors(tmp_path):
    with pytest.raises(LabError, match="no weight for minilm_likeness; fit the confidence again"):
        COVERED.of({"minilm_likeness": 1.0})
    lm = load(load_spec("hippo-tiny"))
    assert load_confidence(lm, ("grams", "key"), folder=tmp_path) is None
    with pytest.raises(LabError, match=r"no fitted confidence at .*; fit one: `make confidence MODEL=hippo-tiny`"):
        load_confidence(lm, ("grams", "key"), required=True, folder=tmp_path)
    assert load_confidence(lm, ("words",)) is None
    with pytest.raises(LabError, match=r"no confidence was fitted for the channels words; grams\+key have one, or use abstention=model"):
        load_confidence(lm, ("words",), required=True)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.name)
def test_what_is_shipped_tells_what_is_right_from_what_is_not_on_kinds_that_it_was_not_fitted_on(path):
    made = json.loads(path.read_text(encoding="utf-8"))
    assert made["command"] == f"make confidence MODEL={path.parent.name}"
    for row in made["validation"]:
        assert row["sure_where_right"] > row["sure_where_wrong"], row["kind"]


@pytest.mark.parametrize("overrides", [{"episodic.recall.fusion": "fitted"}, {"episodic.use_completion": "hopfield"}])
def test_a_recall_that_has_no_confidence_cannot_decide(overrides):
    with pytest.raises(LabError, match=r"abstention=method needs recall\.fusion=sum and use_completion=off"):
        load_preset("memory/hei_nw", {"abstention": "method", **overrides})
    with pytest.raises(LabError, match="abstention=method needs fusion=sum"):
        load_preset("baselines/rag_head_fitted", {"abstention": "method"})
