"""What replay cycles and gates change: pairs are found, intervals are of the same questions, what was not measured fails a run."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from hippo_core.lab.grid import summary
from hippo_core.protocols.questions.report.gates import gate_pairs
from hippo_core.protocols.questions.report.runs import load_run, with_robustness
from hippo_core.protocols.questions.report.telemetry import telemetry
from hippo_core.results.statistics.interval import cluster_interval
from tests.results.fake_records import add_record, make_rows

HEI, SMPD, OFF = "memory/hei_nw", "memory/smpd", "spatial.gate.enabled=false"


def answered(suite, right, regime="delayed", n=50, **columns):
    """Rows of which the first `right` are."""
    rows = make_rows(suite, HEI, "delayed", n)
    score = [float(number < right) for number in range(n)]
    own = {"requests": 1.0, "store_written": 1.0, "replayed": float(regime == "after_sleep"), "replay_cycles_missing": 0.0}
    return rows.assign(score=score, em_norm=score, success=score, refusal=0.0, recalled_texts="", **own | columns)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("executed") / "trial"
    for regime, overrides, right in (("delayed", (), 10), ("after_sleep", (), 20), ("after_sleep", ("replay.cycles=3",), 20)):
        add_record(folder, "episodic", HEI, regime, 50, overrides=overrides, rows=answered("episodic", right, regime))
    for overrides, right, nodes, blocked in (((), 22, 400.0, 7.0), ((OFF,), 25, 500.0, 0.0)):
        grown = {"nodes_per_1k": nodes, "edges_per_1k": nodes, "gate_blocked": blocked}
        add_record(folder, "spatial", SMPD, "delayed", 50, overrides=overrides, rows=answered("spatial", right, **grown))
    return load_run(folder)


def test_each_number_of_cycles_is_set_against_the_same_store_before_it(run):
    assert not run.invalid
    lines = [line for line in telemetry(run)["recall"] if line["regime"] == "after_sleep"]
    assert [line["name"] for line in lines] == ["hei_nw", "hei_nw (replay.cycles=3)"]
    assert all(line["delta_after_replay"].startswith("+0.20 (") and line["stable_after"] == "1 of [0, 1, 3]" for line in lines)


def test_a_gate_is_set_against_the_same_memory_without_it(run):
    [line] = gate_pairs(run)
    assert (line["name"], line["on"], line["off"], line["n"]) == ("smpd", "0.44", "0.50", "50") and line["difference"].startswith("−0.06 (")
    assert (line["nodes_per_1k"], line["blocked"]) == ("400 / 500", "70 / 0")  # ten worlds
    assert line["inserted"] == "– / –"  # of stores that nobody taught here


def test_ten_more_facts_cost_what_the_slope_says_and_the_interval_is_the_slopes():
    lag, noise = np.arange(40) % 20, np.random.default_rng(1).normal(0, 0.1, 40)
    rows = pd.DataFrame({"record": "r", "regime": "delayed", "lag": lag, "distance": 0, "score": 1 - 0.02 * lag + noise})
    lost = with_robustness(rows)["lost_per_10"]
    assert lost.mean() == pytest.approx(-10 * np.polyfit(lag, rows["score"], 1)[0])
    interval = cluster_interval(lost.to_numpy(), np.arange(40), bounds=None)
    deviation = 10 * np.sqrt(np.polyfit(lag, rows["score"], 1, cov=True)[1][0, 0])  # of the slope, by least squares
    assert interval.low < 0.2 < interval.high and interval.high - interval.low == pytest.approx(4 * deviation, rel=0.2)
    assert with_robustness(rows.assign(lag=3))["lost_per_10"].isna().all() and "lost_per_10" not in with_robustness(
        rows.drop(columns="lag")
    )
    assert with_robustness(rows.assign(lag=0, distance=lag, regime="immediate"))["lost_per_10"].mean() == pytest.approx(lost.mean())


def test_a_run_whose_sleeps_have_no_score_does_not_end_well(monkeypatch):
    about = {"suite": "episodic", "preset": HEI, "regime": "after_sleep", "step": "test"}
    cells = [
        SimpleNamespace(parameters=about | more, label=str(more), id="x", record=more)
        for more in ({}, {"regime": "delayed"}, {"step": "replay"})
    ]
    monkeypatch.setattr(summary, "is_complete", lambda record: True)
    monkeypatch.setattr(summary, "read_metrics", lambda record: {"metrics": {"episodic": {"em": 0.5, "post_1_em": score}}})
    score = None
    assert [line.partition(":")[0] for line in summary.without_sleep(cells)] == ["no score after a replay"]
    score = 0.5
    assert summary.without_sleep(cells) == []
