"""What an answered item took counts the teaching of the store that its cell read, and of no other."""

import json
import math

import pandas as pd
import pytest

from hippo_core.protocols.questions.report.runs import teach_ms, with_costs
from hippo_core.results.records import seal

ROWS = {"pred": "north", "latency_ms": 10.0, "retrieval_ms": 2.0, "encode_ms": 3.0}


def record(run, name, needs=(), **tables):
    """A finished record with these tables."""
    folder = run / name
    folder.mkdir(parents=True)
    step = {"teach": "teach", "replay": "replay"}.get(name.partition("-")[2], "test")
    table = {"step": step, "file": "metrics.csv", "unit": "", "cluster": "", "text": [], "whole": []}
    meta = {"parameters": {}, "experiment": "memory", "step": step, "table": table}
    (folder / "meta.json").write_text(json.dumps({"needs": {need: need for need in needs}, **meta}))
    for file, rows in tables.items():
        pd.DataFrame(rows).to_csv(folder / f"{file}.csv", index=False)
    seal(folder)


def items(name, *worlds):
    return [{"record": name, "world": world, **ROWS} for world in worlds]


@pytest.fixture
def run(tmp_path):
    """A gate that is dear to teach and cheap to ask, the same without it, one of these asleep, and a baseline."""
    dear = {"fact_id": ["a", "b", "c"], "world": ["w1", "w1", "w2"], "ms": [50.0, 50.0, 30.0]}
    record(tmp_path, "gated-teach", teach=dear)
    record(tmp_path, "open-teach", teach={**dear, "ms": [1.0, 1.0, 1.0]})
    record(tmp_path, "gated-replay", needs=["data", "gated-teach"], replay={"cycle": [1]})
    record(tmp_path, "gated", needs=["data", "gated-teach"])
    record(tmp_path, "open", needs=["data", "open-teach"])
    record(tmp_path, "asleep", needs=["gated-replay"])
    record(tmp_path, "both", needs=["data", "gated-replay", "open-teach"])
    record(tmp_path, "twice", needs=["data", "gated-teach", "gated-replay"])
    record(tmp_path, "baseline", needs=["data"])
    return tmp_path


@pytest.fixture
def rows():
    return pd.DataFrame([row for name in ("gated", "open", "asleep", "baseline") for row in items(name, "w1", "w1", "w1", "w1", "w2")])


def test_an_item_bears_its_share_of_what_its_world_took_to_be_taught(run, rows):
    shares = teach_ms(run, rows).groupby(rows["record"]).apply(list).to_dict()
    assert shares["gated"] == shares["asleep"] == [25, 25, 25, 25, 30]
    assert shares["open"] == [0.5, 0.5, 0.5, 0.5, 1]
    assert all(map(math.isnan, shares["baseline"]))


def test_a_memory_of_several_stores_bears_what_each_of_them_took(run):
    rows = pd.DataFrame([row for name in ("both", "twice") for row in items(name, "w1", "w1", "w2")])
    assert teach_ms(run, rows).tolist() == [51, 51, 31, 50, 50, 30]


def test_the_whole_time_is_all_its_parts_in_whatever_order_the_rows_stand(run, rows):
    for some in (rows, rows.sample(frac=1, random_state=3)):
        costed = with_costs(run, some)
        assert (costed["item_ms"] == 12).all() and (costed["item_ms_first"] == 15).all()
        expected = some["record"].isin(["gated", "asleep"]) & (some["world"] == "w1")
        assert (costed.loc[expected, "item_ms_taught"] == 40).all()
        assert costed.loc[some["record"] == "baseline", "item_ms_taught"].isna().all()


def test_a_gate_that_costs_while_it_is_taught_is_seen(run, rows):
    costed = with_costs(run, rows).groupby("record")
    assert costed["latency_ms"].mean()["gated"] == costed["latency_ms"].mean()["open"]
    assert costed["item_ms_taught"].mean()["gated"] > 2 * costed["item_ms_taught"].mean()["open"]
