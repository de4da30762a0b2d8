"""Ask, sleep, ask again: what a cell's rows say follows from its store and from whether anything was trained."""

import pytest

from hippo_core.experiments.consolidation.table import ROWS
from hippo_core.files import read_object
from hippo_core.training.consolidation import make_way, run
from tests.training.consolidation.conftest import PRESET, WORLDS


def scores(rows, stage):
    return rows[rows["stage"] == stage].drop(columns=["stage", "latency_ms"]).reset_index(drop=True)


@pytest.mark.parametrize("way", ["lora", "kv_prefix"])
def test_without_replay_nothing_changes_at_all(cell, way):
    here = cell(replay=False, way=way)
    rows = ROWS.arranged(run.consolidate(here, say=lambda line: None))
    assert scores(rows, "pre").equals(scores(rows, "post_1"))
    assert here.slept["replay_samples"] == here.slept["cycles"] == 0
    assert not (here.record / "consolidated").exists()


def test_a_sleep_changes_the_model_for_its_probes_alone_and_leaves_what_it_learnt(cell, lm):
    here = cell(cycles=2)
    before = {name: weight.clone() for name, weight in lm.model.state_dict().items()}
    rows = run.consolidate(here, say=lambda line: None)
    assert list(dict.fromkeys(rows["stage"])) == ["pre", "post_1", "post_2"]
    text = rows[rows["probe"] == "text"].groupby("stage")["nats"].mean()
    assert text["pre"] != text["post_1"] != text["post_2"]
    assert here.slept["replay_samples"] == 2 * 3 * 64 and here.slept["facts"] == 4
    assert all(weight.equal(before[name]) for name, weight in lm.model.state_dict().items())
    lineage = read_object(here.record / "consolidated/lineage.json")
    assert lineage["recipe"]["first_block"] == 2 and len(lineage["store"]) == 64
    way = make_way("lora", lm, 16, 2)
    way.load(here.record / "consolidated")
    way.detach()


@pytest.mark.parametrize("way", ["lora", "kv_prefix"])
def test_a_cycle_that_loses_too_much_is_taken_back(cell, monkeypatch, way):
    monkeypatch.setattr(run, "reading", lambda sleep, consolidated: 0.2 if consolidated else 0.9)
    here = cell(way=way)
    rows = run.consolidate(here, say=lambda line: None)
    assert (here.slept["cycles"], here.slept["rolled_back"]) == (0, 1)
    assert "rolled back" in here.warnings[0]
    assert scores(rows, "pre").equals(scores(rows, "post_1"))


def test_what_is_rehearsed_is_what_the_store_says(cell):
    shown = run.examples(cell(), 4)
    assert set(shown["trace"]) == {fact.text for world in WORLDS for fact in world.facts}
    assert all(row.answer in row.trace for row in shown.itertuples())


@pytest.mark.parametrize("policy", ["uniform", "priority", "spaced"])
def test_every_policy_rehearses_every_trace(cell, policy):
    here = cell()
    method = PRESET.method(here.language_model, PRESET.settings)
    told = [trace for of_world in run.read_store(method, here.store, WORLDS).values() for trace in of_world]
    orders = run.orders(told, policy, 1, 5)
    assert {place for order in orders for place in order} == set(range(len(told)))
    assert all(len(set(order)) == len(order) for order in orders)
