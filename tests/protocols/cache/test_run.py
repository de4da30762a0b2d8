"""Broken, repaired, read: every defence gets the same damage, and what is read is what the model says by any attention, in any batch."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from hippo_core.errors import LabError
from hippo_core.models.load import load
from hippo_core.models.spec import load_spec
from hippo_core.protocols.cache import probes, run, trace_probes
from hippo_core.protocols.cache.corruption import Corruption, corrupt
from hippo_core.protocols.cache.defences.filters import NoDefence
from hippo_core.protocols.cache.names import Task
from hippo_core.protocols.cache.parameters import CacheParameters
from hippo_core.protocols.cache.probe import donor_of, write
from hippo_core.protocols.cache.protocol import CACHE
from hippo_core.protocols.cache.repair_training import RepairRecipe, RepairTrainee, logits
from hippo_core.protocols.cache.stability import stability
from hippo_core.protocols.cache.table import CLEAN, recovered


@pytest.fixture(scope="module")
def written(lm):
    return write(lm, probes.probes(lm, "needle", 3, 5, "test"))


@pytest.fixture(scope="module")
def rows(lm, tmp_path_factory):
    record = tmp_path_factory.mktemp("record")
    parameters = {"tasks": ["text", "needle"], "n": 2, "kinds": ["gaussian"], "severities": [1.0], "defences": ["episodic", "recompute"]}
    open_cell = SimpleNamespace(parameters=CacheParameters(**parameters), language_model=lm, checkpoint=None, record=record)
    with pytest.MonkeyPatch.context() as few:  # a map of a cache is as much a map as that of eight
        few.setattr("hippo_core.protocols.cache.stability.CACHES", 1)
        few.setattr(run, "CLEAN", 4)
        return run.rows(open_cell, say=str), record


def test_every_defence_reads_every_probe_under_every_fault(rows):
    table, record = rows
    counts = table.groupby(["task", "kind", "defence"]).size()
    assert set(counts) == {2} and len(counts) == 2 * 2 * 3
    assert {path.name for path in record.rglob("*.*")} == {*("task_metrics.json", "stability_metrics.json", "detection_metrics.json")}
    pictures = CACHE.files(CacheParameters(), record, table)
    assert [*pictures] == [
        *("figures/figA_score_vs_eps.png", "figures/figB_clean_vs_overhead_pareto.png"),
        *("figures/figC_logit_sensitivity.png", "figures/figD_amplification_map.png"),
    ]
    assert all(picture.startswith(b"\x89PNG") for picture in pictures.values())


def test_a_clean_cache_is_read_alike_and_running_the_text_again_brings_all_of_a_damaged_one_back(rows):
    clean = rows[0][rows[0]["kind"] == CLEAN].pivot_table(index="probe", columns="defence", values="loss")
    assert (clean["episodic"] == clean["none"]).all()
    assert np.allclose(clean["recompute"], clean["none"], atol=1e-4)
    table = recovered(rows[0]).set_index(["task", "defence"])
    assert (table["lost"] > 0.3).all()
    assert table.loc[("text", "recompute"), "recovered"] == pytest.approx(1, abs=1e-3)


def test_every_defence_gets_the_same_damage(lm, written, monkeypatch):
    seen = []

    class Watch(NoDefence):
        def repair(self, damaged):
            seen.append(damaged.kv)
            return damaged.kv

    watches = {name: Watch(SimpleNamespace()) for name in ("none", "other")}
    parameters = CacheParameters(n=3, kinds=["gaussian"], severities=[0.5])
    table = pd.DataFrame(run.of_task(lm, "needle", written, parameters, watches, dict.fromkeys(watches, 0)))
    groups = [seen[at : at + 3] for at in range(0, len(seen), 3)]
    assert [torch.equal(a, b) for a, b in zip(groups[2], groups[3], strict=True)] == [True] * 3
    assert not torch.equal(groups[0][0], groups[2][0])
    assert table.groupby(["kind", "probe"])["loss"].nunique().eq(1).all()


def test_the_same_caches_are_read_once_and_say_what_each_read_says(lm, written, monkeypatch):
    """Whatever is read once for several defences is what each of them would have read."""
    parameters = CacheParameters(n=3, kinds=["gaussian"], severities=[0.5])
    runs, reads = [], []
    monkeypatch.setattr(run, "read", lambda *arguments, once=run.read: reads.append(1) or once(*arguments))
    for _ in range(2):
        defences = {name: NoDefence(SimpleNamespace()) for name in ("none", "other")}
        runs.append(pd.DataFrame(run.of_task(lm, "needle", written, parameters, defences, dict.fromkeys(defences, 0))))
        monkeypatch.setattr(run, "contents", lambda caches: object())
    assert len(reads) == 2 + 4
    pd.testing.assert_frame_equal(*(table.drop(columns="repair_ms") for table in runs), check_exact=True)


def test_the_answer_follows_the_cache_and_not_the_question(lm, written):
    """Behind another probe's keys and values the right answer is not known."""
    own = run.read(lm, written, [probe.blocks for probe in written])
    swapped = run.read(lm, written, [probe.blocks for probe in (*written[1:], written[0])])
    assert sum(probe["score"] for probe in own) >= 2 and sum(probe["score"] for probe in swapped) == 0


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_broken_cache_says_the_same_by_any_attention_and_in_any_batch(lm, written, attention):
    model = load(load_spec("hippo-tiny"), threads=1)
    model.model.set_attn_implementation(attention)
    broken = [corrupt(probe.blocks[0], Corruption("gaussian", 0.4), 1, probe.address(0)).kv for probe in written]
    batched = logits(model, written, broken)
    alone = [logits(model, [probe], [kv])[0] for probe, kv in zip(written, broken, strict=True)]
    usual = logits(lm, written, broken)
    for probe, two, three in zip(batched, alone, usual, strict=True):
        assert torch.allclose(probe, two, atol=1e-3) and torch.allclose(probe, three, atol=1e-3)


def test_texts_of_different_splits_share_nothing(lm):
    by_split = {split: {text for texts in probes.manual(split).values() for text in texts} for split in ("train", "val", "test")}
    assert all(by_split.values())
    assert not (by_split["train"] & by_split["test"] or by_split["train"] & by_split["val"] or by_split["val"] & by_split["test"])


def test_every_task_that_is_named_can_be_made(lm):
    assert set(Task.__args__) == set(probes.MAKERS)
    choice = probes.probes(lm, "choice", 2, 5, "test")[0]
    assert len(choice.reads) == 4 and len(set(choice.reads)) == 4
    recalled = probes.probes(lm, "traces", 2, 5, "test")[0]
    assert len(recalled.blocks) == trace_probes.RECALLED


def test_a_donor_is_another_text(written):
    tokens = written[0].blocks[0].shape[3]
    donor = donor_of(written, 0, tokens)
    assert donor.shape[3] >= tokens and not torch.equal(donor[:, :, :, :tokens], written[0].blocks[0])
    with pytest.raises(LabError, match="n of at least 2"):
        donor_of(written[:1], 0, 3)


def test_what_a_defence_does_to_an_unmoved_cache_is_drift(lm, written, monkeypatch):
    class Halving(NoDefence):
        def repair(self, damaged):
            return damaged.kv / 2

    monkeypatch.setattr("hippo_core.protocols.cache.stability.MAPPED", 50)
    defences = {"none": NoDefence(SimpleNamespace()), "halving": Halving(SimpleNamespace())}
    result = stability(lm, written, defences, 1)
    drifts = {name: [line for line in result["logit_sensitivity"] if line["defence"] == name] for name in defences}
    assert drifts["halving"][0]["drift"] > 0 and drifts["halving"][0]["drift_from_own_clean"] == 0
    moved = [line["drift"] for line in drifts["none"]]
    assert moved[0] == 0 and moved == sorted(moved)
    assert (result["settings"]["mapped"], np.shape(result["amplification_map"]["none"])) == (2, (6, 4))  # 2 caches of 24 heads


def test_a_training_begins_where_nothing_is_changed_and_learns(lm):
    settings = {"settings": {"rank": 64}, "kinds": ("gaussian",), "stored": "bfloat16", "probes": 2, "batch": 2, "steps": 8, "warmup": 1}
    recipe = RepairRecipe(model="hippo-tiny", **settings)  # type: ignore[arg-type]
    trainee = RepairTrainee(recipe, lm)
    assert torch.equal(trainee.repair(trainee.written[0].blocks[0]), trainee.written[0].blocks[0])
    first = trainee._loss(trainee.written, [0, 1], Corruption("gaussian", 0.5), 3, mends=True)[0]
    for step in range(8):
        trainee.learn(step)
    assert trainee._loss(trainee.written, [0, 1], Corruption("gaussian", 0.5), 3, mends=True)[0] < first
    assert len(trainee.history) == 8 and not any(weight.requires_grad for weight in lm.model.parameters())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kinds": ["rust"]}, "kinds"),
        ({"ood": "loto_holdout_gain_drift"}, "unknown here: ood 'loto_holdout_gain_drift'; legal: loto_holdout_bitflip,"),
        ({"severities": [2.0]}, "less than or equal to 1"),
        ({"defences": ["prayer"]}, "unknown defence"),
        ({"kinds": ["gaussian", "gaussian"]}, "twice"),
        ({"layers": [6]}, "hippo-tiny has 6, numbered from 0 to 5"),
        ({"heads": [9]}, "hippo-tiny has 4"),
        ({"repaired": [7]}, "hippo-tiny has 6"),
        ({"window": [9, 3]}, "behind the last"),
        ({"budget": 0.0}, "greater than 0"),
        ({"stored": "int8", "defences": ["ecc_equal"]}, "leave ecc_equal out"),
        ({"stored": "int8", "bits": "exponent"}, "codes have no exponent"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(parameters, message):
    with pytest.raises(LabError, match=message):
        CACHE.check(parameters, "here")


def test_cells_that_measure_share_a_training_and_others_need_none():
    def planned(**parameters):
        return CACHE.plan(CACHE.check(parameters, "here"))

    first, second = (planned(defences=["learned"], kinds=[kind]) for kind in ("gaussian", "bitflip"))
    assert first.needs["repair"].parameters == second.needs["repair"].parameters
    assert not planned(defences=["episodic"]).needs
    alone = planned(step="train", record_dir="executed/here")
    assert alone.parameters["record_dir"] == "executed/here" and first.needs["repair"].parameters["record_dir"] == ""
    assert planned(defences=["episodic"], rank=3).parameters == planned(defences=["episodic"]).parameters
    assert planned(defences=["learned"], rank=3).needs["repair"].parameters["rank"] == 3
