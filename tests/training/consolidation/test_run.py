"""Ask, sleep, ask again: what a cell's rows say follows from its store and from whether anything was trained."""

import errno
import json
import os
from collections import Counter
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import get_args

import pandas as pd
import pytest
import torch

from hippo_core import files
from hippo_core.errors import LabError
from hippo_core.files import MARK, read_object
from hippo_core.methods.episodic.settings import Policy
from hippo_core.methods.presets import load_preset
from hippo_core.protocols.consolidation import run
from hippo_core.protocols.consolidation.run import LEDGER, Ledger
from hippo_core.protocols.consolidation.table import ABOUT_STORE, PROBES, ROWS, SPENT
from hippo_core.suites import get_suite
from hippo_core.training.consolidation import retention as kept
from hippo_core.training.consolidation.sleep import PASSES, ComputeUsed, Sleep
from hippo_core.training.consolidation.update_rules import make_update_rule
from tests.models.running import note_runs, runs_to_read
from tests.training.consolidation.conftest import PRESET, WORLDS
from tests.training.consolidation.test_ways import logits


def scores(rows, stage):
    return rows[rows["stage"] == stage].drop(columns=["stage", "latency_ms", *SPENT]).reset_index(drop=True)


@pytest.mark.parametrize("way", ["lora", "sparse"])
def test_without_replay_nothing_changes_at_all(cell, way):
    here = cell(replay=False, way=way)
    rows = ROWS.arranged(run.consolidate(here, say=lambda line: None))
    assert scores(rows, "pre").equals(scores(rows, "post_1"))
    assert here.slept["replay_samples"] == here.slept["cycles"] == 0
    assert not pd.read_csv(here.record / LEDGER)[[*SPENT, "won", "reading_lost", "text_lost"]].any().any()
    assert not (here.record / "consolidated").exists()


def test_a_sleep_changes_the_model_for_its_probes_alone_and_leaves_what_it_learnt(cell, lm):
    here = cell(cycles=2, lost=1.0)
    before = {name: weight.clone() for name, weight in lm.model.state_dict().items()}
    rows = run.consolidate(here, say=lambda line: None)
    assert all(list(group["stage"].unique()) == ["pre", "post_1", "post_2"] for _, group in rows.groupby("probe"))
    ledger = pd.read_csv(here.record / LEDGER)
    about = rows[rows["probe"].isin(ABOUT_STORE)]
    for name, total in (("rehearsals", "replay_samples"), ("tokens", "tokens"), ("seconds", "seconds")):
        by_stage = about[about["probe"] == "off"].groupby("stage")[name].sum()
        assert ledger[name].sum() == pytest.approx(here.slept[total]) == pytest.approx(by_stage["post_2"])
        assert by_stage["pre"] == 0 < by_stage["post_1"] < by_stage["post_2"]
    assert rows[~rows["probe"].isin(ABOUT_STORE)][[*SPENT]].isna().all().all()
    others = rows[rows["probe"] == "other_suites"]
    assert [number.partition(".")[0] for number in others["question_id"]] == ["babi", "spatial"] * 3, "one of each a stage"
    text = rows[rows["probe"] == "text"].groupby("stage")["nats"].mean()
    assert text["pre"] != text["post_1"] != text["post_2"]
    assert here.slept["replay_samples"] == 2 * 64 and here.slept["facts"] == 4
    assert all(weight.equal(before[name]) for name, weight in lm.model.state_dict().items())
    lineage = read_object(here.record / "consolidated/lineage.json")
    assert lineage["recipe"]["first_block"] == 2 and len(lineage["store"]) == 64
    update_rule = make_update_rule("lora", lm, 16, 2)
    update_rule.load(here.record / "consolidated")
    update_rule.detach()


@pytest.mark.parametrize(("writes", "file"), [(0, "checkpoint.safetensors"), (1, "consolidated.safetensors"), (2, "lineage.json")])
def test_a_full_disk_says_which_file_and_leaves_the_model_and_nothing_half_written(cell, lm, monkeypatch, writes, file):
    here, before, left = cell(way="sparse"), logits(lm), iter(range(writes))

    def sync(_):
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(run, "probe", lambda *_: iter(()))
    monkeypatch.setattr(files.os, "fsync", sync)
    with pytest.raises(OSError, match=rf"No space left on device: '.*/{file}'"):
        run.consolidate(here, say=lambda line: None)
    assert torch.equal(logits(lm), before)
    assert {path.name for path in here.record.rglob("*") if path.is_file()} <= {MARK, "log.jsonl", "checkpoint.safetensors"}
    assert not list(here.record.glob("*consolidated*"))


@pytest.mark.parametrize("way", ["lora", "sparse"])
def test_a_cycle_that_loses_too_much_is_taken_back(cell, monkeypatch, way):
    monkeypatch.setattr(run, "reading", lambda sleep, consolidated: 0.2 if consolidated else 0.9)
    here = cell(way=way)
    rows = run.consolidate(here, say=lambda line: None)
    assert (here.slept["cycles"], here.slept["rolled_back"]) == (0, 1)
    assert "rolled back" in here.warnings[0]
    assert scores(rows, "pre").equals(scores(rows, "post_1"))


def test_reading_is_judged_by_lessons_that_no_sleep_trains_on(cell, lm, taught, monkeypatch):
    drawn, judged = kept.lessons, []
    monkeypatch.setattr(kept, "lessons", lambda *asked: judged.append(drawn(*asked)) or judged[-1])
    update_rule = make_update_rule("lora", lm, 1, 2)
    recipe = run.recipe_of(cell().parameters, lm, len(taught)).model_copy(update={"lessons": 0, "texts": 1})
    run.reading(Sleep(recipe, lm, update_rule, taught, [[0]]), True)
    update_rule.detach()
    trained = {text for seed in ("kept/validation", 1) for lesson in drawn(Random(seed), 30) for text, _ in lesson.facts}
    [lessons] = judged
    assert not {text for lesson in lessons for text, _ in lesson.facts} & trained


@pytest.mark.parametrize("probe", ["off", "longctx"])
def test_a_row_says_what_the_model_ran_token_for_token(lm, probe):
    world, ran = replace(WORLDS[0], items=WORLDS[0].items[:1]), []
    with note_runs(lm, ran):
        [row] = run.asked(lm, get_suite("consolidation"), [world], load_preset(PROBES[probe]), {world.id: run.passages_of(world)})
    read = json.loads(row["read"])
    assert {tuple(tokens) for tokens in ran} == {tuple(tokens) for tokens in runs_to_read(lm, read)}  # "unknown" is asked once more
    assert read == [*([fact.text, "teller"] for fact in world.facts if probe == "longctx"), [row["question"], "asker"]]


def test_the_store_of_another_model_is_refused(cell):
    here = cell()
    method = PRESET.method(here.language_model, PRESET.settings)
    other = SimpleNamespace(identity=lambda: replace(method.identity(), weights="0" * 64))
    with pytest.raises(LabError, match="was written with another model or memory"):
        run.read_store(other, here.store, WORLDS)


def test_what_is_rehearsed_is_what_the_store_says(cell):
    shown = run.examples(cell(), 4)
    assert set(shown["trace"]) == {fact.text for world in WORLDS for fact in world.facts}
    assert all(row.answer in row.trace for row in shown.itertuples())


@pytest.fixture
def taught(cell):
    here = cell()
    method = PRESET.method(here.language_model, PRESET.settings)
    return [trace for of_world in run.read_store(method, here.store, WORLDS).values() for trace in of_world]


def test_the_orders_of_all_policies_differ_and_follow_what_they_are_made_of(taught):
    orders_of = {policy: run.orders(taught, policy, 1, 5) for policy in get_args(Policy)}
    assert len({str(orders) for orders in orders_of.values()}) == len(orders_of)
    indices = list(range(len(taught)))
    assert orders_of["ca2"] == [indices] * PASSES
    assert len({tuple(order) for order in orders_of["ca2_shuffled"]}) == 1
    assert len({tuple(order) for order in orders_of["uniform"]}) > 1
    times = Counter(index for order in orders_of["spaced"] for index in order)
    assert sorted(times.values()) == [2, 2, 3, 3]  # one new in each pass, again after 2 and 4
    last = [replace(trace, salience=9.0 if trace is taught[-1] else 1.0) for trace in taught]
    assert sum(order[0] == indices[-1] for order in run.orders(last, "priority", 1, 5)) == PASSES


def test_policies_that_go_by_keys_refuse_traces_without(taught):
    with pytest.raises(LabError, match="policy=spaced goes by the keys"):
        run.orders([replace(trace, payload=None) for trace in taught], "spaced", 1, 5)


def test_a_cycle_goes_on_from_the_last_that_was_kept_and_begins_anew_where_none_was(cell, lm, taught, monkeypatch):
    here, begun = cell(way="sparse", steps=1, cycles=3), []
    update_rule = make_update_rule("sparse", lm, 1, 2)
    recipe = run.recipe_of(here.parameters, lm, len(taught)).model_copy(update={"rank": 1, "lessons": 0, "texts": 1})
    losses = iter((0.9, 0.2, 0.9, 0.9, 0.9, 0.9, 0.9, 0.2))
    monkeypatch.setattr(run, "reading", lambda sleep, consolidated: next(losses))
    slept, ledger = dict.fromkeys(run.COUNTERS, 0), Ledger(WORLDS, {"w": taught})

    def train(sleep, *others, **more):
        begun.append(update_rule.kept())
        update_rule.deltas[0].data.add_(1.0)
        update_rule.units[0].copy_(torch.arange(4))

    monkeypatch.setattr(run, "train", train)
    for cycle in (1, 2, 3, 4):
        run.sleep_once(here, update_rule, taught, recipe, cycle, slept, ledger, print)
    update_rule.detach()
    assert (slept["cycles"], slept["rolled_back"]) == (2, 2)
    states = [*begun, update_rule.kept()]
    assert [float(state["2.delta"].mean()) for state in states] == [0, 0, 1, 2, 2]
    assert [state["2.units"].tolist() == [0, 1, 2, 3] for state in states] == [False, False, True, True, True]


def test_without_a_number_of_steps_every_trace_is_rehearsed_so_many_times(cell, lm):
    assert run.recipe_of(cell(steps=None).parameters, lm, 50).steps == 500
    assert run.recipe_of(cell(steps=None, rehearsals=64).parameters, lm, 200).steps == 200
    assert run.recipe_of(cell(steps=7).parameters, lm, 200).steps == 7


def test_a_ledger_says_of_each_trace_what_was_spent_and_what_came_of_it(taught):
    ledger = Ledger(WORLDS, {"w": taught})
    questions = [item for world in WORLDS for item in world.items]
    first = next(item for item in questions if taught[0].source in item.gold_facts)
    ledger.add({trace.id: ComputeUsed(1, 10 if trace is taught[0] else 2) for trace in taught}, 24.0)
    rows = []
    for stage in ("pre", "post_1"):
        right = {item.id: float(stage == "post_1" and item is first) for item in questions}
        rows += [{"probe": "off", "question_id": world, "world": world, "score": score} for world, score in right.items()]
        rows += [
            {"probe": "in_context", "question_id": f"c{number}", "world": f"{number}", "score": float(stage == "pre" or number > 0)}
            for number in range(4)
        ]
        rows += [{"probe": "text", "question_id": "t", "world": "t", "nats": 3.0 + (stage == "post_1")}]
        rows = [{"stage": stage} | row for row in rows]
    table = ledger.table(pd.DataFrame(rows)).set_index("trace")
    assert list(table["won"]) == list(table["after"]) == [float(trace is taught[0]) for trace in taught] and not table["before"].any()
    assert table.loc[taught[0].id, ["tokens", "seconds"]].tolist() == [10, pytest.approx(240 / (10 + 2 * (len(taught) - 1)))]
    assert set(table["reading_lost"]) == {0.25} and set(table["text_lost"]) == {1.0}
