"""Every switch and every threshold of a memory is live: somewhere in its range it changes an answer, the store, or what is ranked."""

from dataclasses import replace
from functools import cache
from itertools import groupby

import numpy as np
import pytest

from hippo_core.methods.presets import load_preset
from hippo_core.protocols.questions import run
from hippo_core.store import TraceStore, store_path
from hippo_core.suites import get_suite, lexicon
from hippo_core.suites.draw import worlds
from tests.protocols.questions.conftest import SESSION, Bench


@pytest.fixture(scope="module")
def benches(hippo, tmp_path_factory):
    """Two worlds a suite: what a setting changes shows in a few questions."""
    folder = tmp_path_factory.mktemp("stores")
    return cache(lambda suite: Bench(hippo, suite, folder, n=10))


def size(bench, name, **overrides):
    path, _ = bench.taught(name, {key.replace("__", "."): value for key, value in overrides.items()})
    with TraceStore.open(path, SESSION, read_only=True) as store:
        return store.size()


@pytest.mark.parametrize(
    ("overrides", "column"),
    [
        ({"episodic__use_completion": "predictive"}, "scores"),
        ({"episodic__recall__fusion": "fitted", "episodic__code__channels": ("words", "key")}, "scores"),
        ({"episodic__recall__recency": 0.0}, "scores"),
        ({"episodic__use_completion": "hopfield"}, "scores"),
        ({"episodic__use_completion": "hopfield", "episodic__hopfield__beta": 1.0}, "scores"),
        ({"episodic__use_sparsity": False}, "scores"),
        ({"episodic__code__winners": 8}, "scores"),
        ({"episodic__code__expansion": 512}, "scores"),
        ({"episodic__recall__candidates": 1}, "candidates"),
        ({"episodic__recall__candidates": 2, "k": 4}, "candidates"),
        ({"episodic__use_completion": "predictive", "episodic__predictive__candidates": 2}, "candidates"),
        ({"k": 3}, "shown"),
        ({"traces": "off"}, "pred"),
        ({"memory__runtime__enable_writes": False}, "pred"),
    ],
    ids=str,
)
def test_a_setting_of_recall_changes_rows(benches, overrides, column):
    bench = benches("episodic")
    assert bench.ask("memory/hei_nw", **overrides)[column].tolist() != bench.ask("memory/hei_nw")[column].tolist()


def test_hopfield_steps_and_beta_change_scores(benches):
    bench = benches("episodic")
    scores = [
        bench.ask("ablations/hopfield", episodic__hopfield__beta=beta, episodic__hopfield__steps=steps)["scores"].tolist()
        for beta, steps in ((4.0, 1), (16.0, 1), (4.0, 2))
    ]
    assert scores[0] != scores[1] != scores[2] != scores[0]


@pytest.mark.parametrize("delivery", ["text", "adapter"])
def test_the_ways_of_injecting_answer_through_the_memory(benches, delivery):
    bench = benches("episodic")
    rows = bench.ask("memory/hei_nw", delivery=delivery)
    assert rows["score"].mean() > bench.plain["score"].mean() + 0.3
    assert rows["first_logprob"].tolist() != bench.ask("memory/hei_nw")["first_logprob"].tolist()


def test_a_recall_that_is_not_sure_says_unknown_in_the_models_place(benches):
    bench = benches("episodic")
    untold = [replace(world, items=tuple(replace(item, taught=without(item, world)) for item in world.items)) for world in bench.worlds]
    taught, untaught = (bench.test("memory/hei_nw", {"abstention": "method"}, asked)["pred"] for asked in (bench.worlds, untold))
    known = bench.ask("memory/hei_nw")["pred"]
    assert (taught != "unknown").sum() >= 7 and (untaught == "unknown").sum() >= 9
    assert (known == taught)[taught != "unknown"].mean() > 0.7
    assert (known != "unknown")[taught == "unknown"].any()  # the memory doubts where the model would have answered


def without(item, world):
    """What was taught for an item, but for what answers it."""
    gold = {fact.text for fact in world.facts if fact.id in item.gold_facts}
    return tuple(fact.id for fact in world.facts if fact.id in item.taught and fact.text not in gold)


def test_the_gate_writes_less_and_what_it_refuses_is_listed(benches):
    bench = benches("episodic")
    path, rows = bench.taught("memory/hei_nw_gated")
    everything = size(bench, "memory/hei_nw")
    assert 0 < size(bench, "memory/hei_nw_gated") < everything
    with TraceStore.open(path, SESSION, read_only=True) as store:
        refused = {refusal.statement.source for refusal in store.refused()}
    assert refused == set(rows.loc[rows["action"] == "refuse", "fact_id"])
    recalled = bench.ask("memory/hei_nw_gated")["shown"].str.split(";").explode()
    assert not refused & set(recalled)


@pytest.mark.parametrize(
    "overrides",
    [
        {"episodic__gate__alpha": 0.0},
        {"episodic__gate__beta": 0.0},
        {"episodic__gate__gamma": 0.0},
        {"episodic__gate__delta": 0.0},
        {"episodic__gate__write_rate": 0.2},
        {"episodic__gate__tau": 2.0},
        {"episodic__gate__policy": "random"},
    ],
    ids=str,
)
def test_every_setting_of_the_gate_changes_what_is_written(benches, overrides):
    bench = benches("episodic")
    settings = {key.replace("__", "."): value for key, value in overrides.items()}
    usual, changed = (bench.taught("memory/hei_nw_gated", options)[1]["action"].tolist() for options in ({}, settings))
    assert usual != changed


def test_what_a_gate_reads_of_the_facts_that_it_writes_is_read_once(benches, tmp_path, monkeypatch):
    monkeypatch.setattr("hippo_core.delivery.ON_DISK", str(tmp_path))
    bench = benches("episodic")
    _, rows = bench.taught("memory/hei_nw_gated", {"episodic.store.kv": "disk"})
    assert rows.equals(bench.taught("memory/hei_nw_gated")[1].assign(ms=rows["ms"]))
    files = len(list(tmp_path.rglob("*.kept")))
    assert files == (rows["action"] == "insert").sum() < len(rows)  # nothing of what was refused
    asked = bench.ask("memory/hei_nw_gated", episodic__store__kv="disk")
    assert asked["pred"].tolist() == bench.ask("memory/hei_nw_gated")["pred"].tolist()
    assert len(list(tmp_path.rglob("*.kept"))) == files  # no trace was run again


def test_a_budget_keeps_no_more_than_its_share_and_the_pinned(benches):
    bench = benches("episodic")
    _, rows = bench.taught("memory/hei_nw_gated", {"episodic.store.budget": 0.25, "episodic.gate.write_rate": 1.0})
    kept = rows[(rows["action"] == "insert") & ~rows["evicted"].astype(bool)]
    assert (kept.groupby("world").size() == 8).all()
    pinned = rows[rows["pin"] > 0].groupby("world").size()
    assert all(kept[(kept["world"] == world) & (kept["pin"] > 0)].shape[0] == min(8, count) for world, count in pinned.items())


def test_the_gate_never_sees_what_is_asked(benches, tmp_path):
    bench = benches("episodic")
    turned = [replace(world, facts=tuple(replace(fact, asked=not fact.asked) for fact in world.facts)) for world in bench.worlds]
    rows = run.teach(bench.method("memory/hei_nw_gated"), bench.suite, turned, bench.others, tmp_path, SESSION)
    usual = bench.taught("memory/hei_nw_gated")[1]
    assert rows["asked"].tolist() != usual["asked"].tolist()
    for column in ("S", "action", "contributions"):
        assert rows[column].tolist() == usual[column].tolist()


def gated(lm, folder, name, profile, n, **settings):
    """What a gate made of validation worlds, calibrated on the first of them."""
    drawn, preset = list(worlds("episodic", profile, n, 7, "val", lm.spec.context_limit, settings)), load_preset(name)
    return drawn, run.teach(preset.method(lm, preset.settings), get_suite("episodic"), drawn, drawn[:1], folder, SESSION)


@pytest.mark.parametrize(
    ("name", "same"), [("ablations/gate_unflagged", True), ("ablations/gate_random", True), ("memory/hei_nw_gated", False)]
)
def test_without_their_weights_a_gate_keeps_the_same_whatever_is_flagged(hippo, tmp_path, name, same):
    (_, none), (_, all_asked) = (gated(hippo, tmp_path / str(phi), name, "base", 20, flag_correlation=phi) for phi in (0.0, 1.0))
    assert none[["reward", "pin"]].to_numpy().tolist() != all_asked[["reward", "pin"]].to_numpy().tolist()
    for column in ("S", "action", "evicted"):
        assert (none[column].tolist() == all_asked[column].tolist()) == same


def test_a_name_that_nobody_bears_surprises(hippo, tmp_path):
    drawn, rows = gated(hippo, tmp_path, "ablations/gate_unflagged", "surprising", 32)
    invented = np.array([lexicon.is_invented(fact.slots["who"]) for world in drawn for fact in world.facts])
    new, other = rows["surprise"][invented], rows["surprise"][~invented]
    error = np.sqrt(new.var() / len(new) + other.var() / len(other))
    assert new.mean() - other.mean() > 3 * error


FEW = {"episodic.predictive.candidates": 4}  # that a rehearsed trace is ranked with: quicker, and the same for all sleeps


@pytest.fixture(scope="module")
def asleep(benches, tmp_path_factory):
    """What a sleep with these settings of replay leaves: its rows, the traces afterwards, and the folder of the store."""
    bench = benches("episodic")

    @cache
    def sleep(**overrides):
        settings, folder = {f"replay.{key}": value for key, value in overrides.items()} | FEW, tmp_path_factory.mktemp("asleep")
        method = bench.method("memory/hei_nw", settings)
        rows = run.replay(method, store_path(bench.taught("memory/hei_nw", settings)[0], SESSION, "hei_nw"), folder)
        with TraceStore.open(folder, SESSION, method.identity(), read_only=True) as store:
            return rows, store.traces(), folder

    return sleep


@pytest.mark.parametrize(
    "overrides",
    [{"policy": "priority"}, {"rate": 0.25}, {"noise_level": 0.6}, {"max_items": 3}, {"cycles": 2}, {"enabled": False}],
    ids=str,
)
def test_every_setting_of_replay_changes_what_the_store_becomes(asleep, overrides):
    usual, changed = asleep(), asleep(**overrides)
    assert usual[0]["trace_id"].tolist() != changed[0]["trace_id"].tolist() or usual[1] != changed[1]


def test_replay_raises_what_is_recalled_lowers_what_is_not_and_can_be_undone(benches, asleep):
    before = {trace.id: trace for trace in asleep(enabled=False)[1]}
    rows, after, folder = asleep(noise_level=0.6)
    hit = dict(zip(rows["trace_id"], rows["recalled"], strict=True))
    assert 0 < sum(hit.values()) < len(hit)
    components = benches("episodic").method("memory/hei_nw", FEW).components
    recallers = {world: components.recaller(list(group)) for world, group in groupby(before.values(), lambda trace: trace.world)}
    first = [recallers[before[trace].world].recall(cue).traces[0].id for trace, cue in zip(rows["trace_id"], rows["cue"], strict=True)]
    assert [float(trace_id == trace) for trace_id, trace in zip(first, rows["trace_id"], strict=True)] == rows["recalled"].tolist()
    for trace in after:
        assert (trace.salience > before[trace.id].salience) == (hit[trace.id] == 1)
        assert trace.uses == before[trace.id].uses + hit[trace.id]
    assert any(trace.payload.keys != before[trace.id].payload.keys for trace in after)
    with TraceStore.open(folder, SESSION, benches("episodic").method("memory/hei_nw").identity()) as store:
        store.rollback(len(store.history()))
        assert {trace.id: trace for trace in store.traces()} == before


def test_a_test_after_sleep_says_what_the_sleep_did(benches, asleep):
    bench, (slept, traces, folder) = benches("episodic"), asleep(cycles=2, rate=0.25)
    rows = bench.test("memory/hei_nw", {"replay.cycles": 2}, regime="after_sleep", store=folder)
    assert (rows["replayed"] == 1).all() and (rows["replay_cycles_missing"] == 0).all() and (rows["store_written"] == 1).all()
    recalled, ids = set(slept.loc[slept["recalled"] == 1, "trace_id"]), {trace.source: trace.id for trace in traces}
    assert rows["replay_contribution"].tolist() == [float(ids[source] in recalled) for source in rows["shown"]]
    assert set(rows["replay_contribution"]) == {0.0, 1.0}
    longer = bench.test("memory/hei_nw", {"replay.cycles": 8}, regime="after_sleep", store=folder)
    assert (longer["replay_cycles_missing"] == 0.75).all()


def test_without_a_sleep_or_a_trace_rows_say_so(benches, asleep):
    bench = benches("episodic")
    awake = bench.ask("memory/hei_nw")
    assert (awake["replayed"] == 0).all() and (awake["replay_contribution"] == 0).all() and awake["replay_cycles_missing"].isna().all()
    nothing = bench.ask("memory/hei_nw", memory__runtime__enable_writes=False)
    assert (nothing["store_written"] == 0).all() and nothing["replay_contribution"].isna().all()
    sleepless = bench.test("memory/hei_nw", {"replay.enabled": False}, regime="after_sleep", store=asleep(enabled=False)[2])
    assert (sleepless["replayed"] == 0).all() and (sleepless["replay_cycles_missing"] == 1).all()
    assert (sleepless["replay_contribution"] == 0).all()


def test_keys_and_values_of_traces_are_kept_as_told_and_answers_do_not_depend_on_it(benches, tmp_path, monkeypatch):
    monkeypatch.setattr("hippo_core.delivery.ON_DISK", str(tmp_path))
    bench = benches("episodic")
    by_storage = {kept: bench.ask("ablations/hopfield", episodic__store__kv=kept) for kept in ("memory", "none", "disk")}
    for rows in by_storage.values():
        assert rows["pred"].tolist() == by_storage["memory"]["pred"].tolist()
    files = len(list(tmp_path.rglob("*.kept")))
    assert files == by_storage["disk"]["shown"].nunique() and (by_storage["disk"]["encode_ms"] > 0).all()
    tokens = {kept: rows["computed_tokens"].mean() for kept, rows in by_storage.items()}
    assert tokens["memory"] == tokens["disk"] < tokens["none"]  # those that are kept are run apart, and count once a trace
    again = bench.test("ablations/hopfield", {"episodic.store.kv": "disk"})
    assert again["pred"].tolist() == by_storage["disk"]["pred"].tolist() and len(list(tmp_path.rglob("*.kept"))) == files
