"""Telemetry of memories: counts add up, a gate is judged by what was kept, what was not measured is None."""

import json
import math

import pandas as pd
import pytest

from hippo_core.methods.presets import load_preset
from hippo_core.protocols.questions.table import RECALL, REPLAY, TEACH, TEST
from tests.results.fake_records import make_rows, opened


def taught(actions: str, asked: str, scores=None, **columns) -> pd.DataFrame:
    """A line a fact: i(nsert), a(ggregate) or r(efuse); 1 where it is asked for."""
    names = {"i": "insert", "a": "aggregate", "r": "refuse"}
    known = {"action": [names[letter] for letter in actions], "asked": [float(letter) for letter in asked], "ms": 2.0}
    return pd.DataFrame({**known, "S": scores or [math.nan] * len(actions), "world": "w0", **columns})


def gate(rows: pd.DataFrame) -> dict:
    metrics = TEACH.metrics(opened("episodic", 5, 1), rows, 3.0)
    assert json.loads(json.dumps(metrics, allow_nan=False)) == metrics  # nothing but what JSON can say
    assert "metrics" not in metrics
    return metrics["gates"]["hei_nw"]


def test_decisions_are_counted_and_judged():
    metrics = gate(taught("iarri", "11001", [5.0, 4.0, 1.0, 0.0, 3.0]))
    counts = {name: metrics[name] for name in ("attempts", "inserted", "aggregated", "refused", "evicted")}
    assert counts == {"attempts": 5, "inserted": 2, "aggregated": 1, "refused": 2, "evicted": 0}
    assert metrics["write_rate"] == 0.6
    assert (metrics["precision"], metrics["recall"], metrics["pr_auc"]) == (1.0, 1.0, pytest.approx(1.0))
    assert metrics["S"]["quantiles"]["50%"] == 3.0


def test_a_term_is_set_against_what_was_asked_where_it_was_weighed_and_varies():
    metrics = gate(taught("iiir", "1100", surprise=[3.0, 3.0, 1.0, 1.0], novelty=[0.1, 0.3, 0.2, 0.4], reward=0.0, pin=[math.nan] * 4))
    assert metrics["goes_with_asked"] == {"surprise": pytest.approx(1.0), "novelty": pytest.approx(-0.4472136), "reward": None, "pin": None}
    assert gate(taught("ii", "11", surprise=[1.0, 2.0]))["goes_with_asked"] == {"surprise": None}


def test_what_was_evicted_is_not_kept():
    metrics = gate(taught("iiii", "1100", [4.0, 3.0, 2.0, 1.0], evicted=[0.0, 1.0, 0.0, 1.0]))
    assert (metrics["evicted"], metrics["write_rate"]) == (2, 1.0)
    assert (metrics["precision"], metrics["recall"]) == (0.5, 0.5)


def test_false_drops_are_of_what_was_asked_and_false_keeps_of_what_was_not():
    """Twelve worlds of two facts asked about and three that are not; one of the two is refused, one of the three is kept."""
    metrics = gate(taught("irirr" * 12, "11000" * 12, world=[f"w{number // 5}" for number in range(60)]))
    drops, keeps = metrics["false_drops"], metrics["false_keeps"]
    assert (drops["mean"], drops["n"], drops["n_worlds"]) == (0.5, 24, 12)
    assert (keeps["mean"], keeps["n"]) == (pytest.approx(1 / 3), 36)
    assert drops["low"] < 0.5 < drops["high"] and keeps["low"] < 1 / 3 < keeps["high"]
    evicted = gate(taught("ii", "10", evicted=[1.0, 1.0]))
    assert (evicted["false_drops"]["mean"], evicted["false_keeps"]["mean"], evicted["false_drops"]["low"]) == (1.0, 0.0, None)
    assert gate(taught("i", "1"))["false_keeps"]["mean"] is None


def test_without_a_gate_nothing_was_weighed_and_all_is_kept():
    metrics = gate(taught("iiii", "1000"))
    assert (metrics["precision"], metrics["recall"], metrics["asked_rate"]) == (0.25, 1.0, 0.25)
    assert metrics["pr_auc"] is None and set(metrics["S"]["quantiles"].values()) == {None}


def test_a_replay_says_what_it_changed():
    rows = pd.DataFrame(
        {"cycle": [1, 1, 2, 2], "trace_id": [1, 2, 1, 3], "recalled": [1.0, 0.0, 1.0, 1.0], "ms": 1.0,
         "salience_before": [0.0, 1.0, 0.5, 0.5], "salience_after": [0.5, 0.8, 1.0, math.nan]}
    )  # fmt: skip
    metrics = REPLAY.metrics(opened("episodic", 5, 1), rows, 3.0)["telemetry"]
    assert (metrics["items"], metrics["traces"], metrics["cycles"], metrics["recalled"]) == (4, 3, 2, 0.75)
    assert (metrics["salience_change"]["raised"], metrics["salience_change"]["lowered"]) == (2, 1)
    assert metrics["salience_change"]["mean"] == pytest.approx(0.8 / 3)
    nothing = REPLAY.metrics(opened("episodic", 5, 1), rows.iloc[:0], 3.0)["telemetry"]
    assert (nothing["items"], nothing["cycles"], nothing["recalled"]) == (0, 0, None)


@pytest.mark.parametrize(
    ("regime", "replayed", "kept"), [("delayed", 0.0, "pre_em"), ("after_sleep", 1.0, "post_3_em"), ("after_sleep", 0.0, "")]
)
def test_a_score_is_called_that_before_a_replay_or_after_so_many_cycles(regime, replayed, kept):
    rows = make_rows("episodic", "memory/hei_nw", regime, n=10).assign(
        requests=1.0, trace_tokens=9.0, replayed=replayed, gate_blocked=[2.0] * 10
    )
    rows = rows.assign(gate_inserted=3.0, gate_aggregated=1.0, **dict.fromkeys(RECALL[1:], 1.0))
    cell = opened("episodic", 10, 1)
    cell.parameters.regime, cell.resolved.preset.parts = regime, {"": load_preset("memory/hei_nw", {"replay.cycles": 3})}
    metrics = TEST.metrics(cell, rows, 3.0)
    scores = metrics["metrics"]["episodic"]
    named = [name for name in ("pre_em", "post_1_em", "post_3_em") if scores.get(name) is not None]
    assert named == [*filter(None, [kept])] and scores["em"] == rows["score"].mean()
    assert metrics["gates"]["smpd"] == {"attempts": 12, "inserted": 6, "aggregated": 2, "blocked_new_edges": 4}  # two worlds, a map each
