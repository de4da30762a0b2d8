"""The write gate: its arithmetic by hand, what calibration promises, and that no knob of it is dead."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hippo_core.errors import LabError
from hippo_core.methods.episodic.gate import Calibration, GateFeatures, RandomGate, WriteGate, salience_of
from hippo_core.methods.episodic.gate import calibrate as calibrated
from hippo_core.methods.episodic.settings import GateSettings
from hippo_core.protocols.questions.table import average_precision
from hippo_core.store.trace import Statement

USUAL = GateSettings()
STATEMENT = Statement("f1", "w1", "words", 0)
CALIBRATION = Calibration(
    mean={"surprise": 3.0, "novelty": 0.5, "reward": 0.25, "pin": 0.0},
    sd={"surprise": 2.0, "novelty": 0.25, "reward": 0.5, "pin": 0.0},
    tau=1.0,
)
features = st.builds(
    GateFeatures, st.integers(0, 80).map(lambda x: x / 8), st.integers(0, 8).map(lambda x: x / 8), st.booleans(), st.booleans()
)
samples = st.lists(features, min_size=1, max_size=40)


def calibrate(some, rate, gate=USUAL):
    return calibrated(some, rate, gate)


def test_by_hand():
    decision = WriteGate(CALIBRATION, USUAL).decide(STATEMENT, GateFeatures(surprise=4.0, novelty=0.75, reward=True, pin=True))
    assert decision.contributions == {"surprise": 0.5, "novelty": 1.0, "reward": 0.75, "pin": 0.0}
    assert decision.raw == {"surprise": 4.0, "novelty": 0.75, "reward": 1.0, "pin": 1.0}
    assert (decision.S, decision.action, decision.trace_id) == (2.25, "insert", None)


def test_a_statement_at_the_threshold_is_refused():
    at, above = GateFeatures(5.0, 0.5), GateFeatures(5.000001, 0.5)
    gate = WriteGate(CALIBRATION, GateSettings(gamma=0.0))
    assert (gate.decide(STATEMENT, at).S, CALIBRATION.tau) == (1.0, 1.0)
    assert (gate.decide(STATEMENT, at).action, gate.decide(STATEMENT, above).action) == ("refuse", "insert")


def test_a_duplicate_is_evidence_whatever_its_worth():
    for surprise in (0.0, 9.0):
        decision = WriteGate(CALIBRATION, USUAL).decide(STATEMENT, GateFeatures(surprise, 0.0), duplicate_of=7)
        assert (decision.action, decision.trace_id) == ("aggregate", 7)


@pytest.mark.parametrize("name", ["alpha", "beta", "gamma", "delta"])
def test_each_weight_changes_decisions(name):
    term = {"alpha": "surprise", "beta": "novelty", "gamma": "reward", "delta": "pin"}[name]
    calibration = Calibration(dict.fromkeys(CALIBRATION.mean, 0.0), dict.fromkeys(CALIBRATION.sd, 1.0), tau=0.5)
    statement = GateFeatures(**{"surprise": 0.0, "novelty": 0.0, "reward": False, "pin": False, term: 1})
    actions = [WriteGate(calibration, GateSettings(**{name: weight})).decide(STATEMENT, statement).action for weight in (0.0, 1.0)]
    assert actions == ["refuse", "insert"]


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("term", ["surprise", "novelty"])
def test_a_term_that_is_not_finite_is_an_error(term, broken):
    with pytest.raises(LabError, match=f"{term} of a told statement is"):
        GateFeatures(**{"surprise": 1.0, "novelty": 1.0, term: broken})


def share_written(some, gate):
    return sum(gate.decide(STATEMENT, features).action == "insert" for features in some) / len(some)


@given(samples, st.integers(0, 40))
def test_the_threshold_is_the_lowest_that_keeps_the_rate(some, count):
    rate = min(1.0, count / len(some))
    calibration = calibrate(some, rate)
    scores = [WriteGate(calibration, USUAL).decide(STATEMENT, features).S for features in some]
    written = sum(score > calibration.tau for score in scores)
    lower = sum(score >= calibration.tau for score in scores)
    assert written <= rate * len(some) + 1e-6
    assert written == len(some) or lower > rate * len(some) - 1e-6


def test_the_ends_of_the_rate_write_all_and_nothing():
    some = [GateFeatures(float(number), 0.5) for number in range(9)]
    assert [share_written(some, WriteGate(calibrate(some, rate), USUAL)) for rate in (0, 1 / 3, 1)] == [0, 1 / 3, 1]


@given(samples)
def test_terms_are_standardised_over_the_samples_and_a_constant_one_counts_nothing(some):
    calibration = calibrate(some, 0.5)
    decided = [WriteGate(calibration, USUAL).decide(STATEMENT, features).contributions for features in some]
    for term, weight in zip(("surprise", "novelty", "reward", "pin"), (1.0, 1.0, 0.5, 0.8), strict=True):
        values = [contributions[term] for contributions in decided]
        spread = len({features.term(term) for features in some}) > 1
        assert sum(values) == pytest.approx(0, abs=1e-9)
        assert math.sqrt(sum(value**2 for value in values) / len(values)) == pytest.approx(weight if spread else 0, abs=1e-9)


@pytest.mark.parametrize("value", [0.1, 0.7, 2.3])
def test_equal_decimals_have_no_spread_though_their_mean_is_rounded(value):
    for count in range(1, 50):
        calibration = calibrate([GateFeatures(value, value)] * count, 0.5)
        assert set(calibration.sd.values()) == {0.0}
        assert WriteGate(calibration, USUAL).decide(STATEMENT, GateFeatures(9.0, 0.0)).S == 0


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_salience_keeps_the_order_of_S(first, other):
    low, high = sorted((first, other))
    assert 0 <= salience_of(low) <= salience_of(high) <= 1


def decisions_at_random(rate, seed, numbers=range(4000)):
    gate = RandomGate(rate, seed)
    return {n: gate.decide(Statement(f"f{n}", "w1", "words", n), GateFeatures(n, 0.5)).action for n in numbers}


def test_the_random_gate_writes_its_share_whatever_the_order():
    decision = decisions_at_random(0.3, 5)
    assert list(decision.values()).count("insert") / len(decision) == pytest.approx(0.3, abs=0.04)
    assert decisions_at_random(0.3, 5, reversed(range(4000))) == decision
    assert decisions_at_random(0.3, 6) != decision
    assert set(decisions_at_random(0.0, 5).values()) == {"refuse"}
    assert set(decisions_at_random(1.0, 5).values()) == {"insert"}


judged = st.lists(st.tuples(st.integers(0, 6).map(float), st.booleans()), min_size=1, max_size=30)


def by_definition(scores, labels):
    """At every threshold count what lies at or above it, and add up the steps in recall."""
    total, recall_before = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        above = [label for score, label in zip(scores, labels, strict=True) if score >= threshold]
        recall = sum(above) / sum(labels)
        total += (recall - recall_before) * sum(above) / len(above)
        recall_before = recall
    return total


@given(judged)
def test_average_precision_is_what_its_definition_says(rows):
    scores, labels = zip(*rows, strict=True)
    if any(labels):
        assert average_precision(scores, labels) == pytest.approx(by_definition(scores, labels), abs=1e-12)
    else:
        assert math.isnan(average_precision(scores, labels))
