"""Broken, repaired, read: every defence gets the same damage, and what is read is what the model says by any attention, in any batch."""

import json
from dataclasses import replace
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
from hippo_core.protocols.cache.probe import begun, donor_of, write
from hippo_core.protocols.cache.protocol import CACHE
from hippo_core.protocols.cache.repair_training import RepairRecipe, RepairTrainee, logits
from hippo_core.protocols.cache.stability import stability
from hippo_core.protocols.cache.table import CLEAN, TRAIN, recovered
from hippo_core.results.scores import em_norm


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
        few.setattr(run, "PART", 1)  # caches that are held at a time: the rows are of all parts
        return run.rows(open_cell, say=str), record


def test_every_defence_reads_every_probe_under_every_fault(rows):
    table, record = rows
    counts = table.groupby(["task", "kind", "defence"]).size()
    assert set(counts) == {2} and len(counts) == 2 * 2 * 3
    assert {path.name for path in record.rglob("*.*")} == {*("task_metrics.json", "stability_metrics.json", "detection_metrics.json")}
    assert (table["tokens_per_s"] > 0).all() and set(table["scored_tokens"]) > {probes.SCORED["text"]}


def test_a_record_holds_the_logs_tables_and_figures_of_the_protocol(rows):
    table, record = rows
    files = CACHE.files(CacheParameters(), record, table)
    names = ["A_score_vs_eps", "B_clean_vs_overhead_pareto", "C_logit_sensitivity", "D_amplification_map"]
    logs = ["logs/eval.jsonl", "tables/table_main_results.tex", "tables/table_ablation_summary.tex"]
    assert [*files] == [*logs, *(f"figures/fig{name}.png" for name in names), *(f"tables/table{name}.csv" for name in names)]
    assert all(content.startswith(b"\x89PNG") for path, content in files.items() if path.endswith(".png"))
    lines = [json.loads(line) for line in files["logs/eval.jsonl"].splitlines()]
    assert len(lines) == 2 * 2 * 3 and {line["n"] for line in lines} == {2}
    assert [line["ppl"] is None for line in lines] == [line["task"] == "needle" for line in lines]
    assert files[f"tables/table{names[3]}.csv"].decode().count("\nepisodic,") == 6 * 4  # a line a layer and head


def test_asked_for_more_than_there_is_says_so_and_measures_what_there_is(lm):
    told = []
    cell = SimpleNamespace(parameters=CacheParameters(tasks=["text"], n=10**6), language_model=lm, warn=told.append)
    [drawn] = probes.asked_probes(cell, told.append).values()
    assert told == [f"text: 1,000,000 probes were asked for, its text has {len(drawn)}; n is {len(drawn)}", f"probes: {len(drawn)} of text"]
    assert drawn == probes.probes(lm, "text", len(drawn), cell.parameters.seed, "test")


def test_a_long_context_hides_its_needle_where_it_is_told(lm):
    def made(**settings):
        return probes.probes(lm, "long_context", 2, 5, "test", CacheParameters(**settings))

    def needle_at(probe, text):
        return lm.tokenizer.decode(probe.blocks[0]).index(text) / len(lm.tokenizer.decode(probe.blocks[0]))

    early, late = (made(context_len=400, position_frac=at, needle_token="a code", needle_value="red-{number}") for at in (0.1, 0.9))
    assert [probe.start for probe in (*early, *late)] == [400] * 4
    for probe in early:
        assert needle_at(probe, f"NEEDLE: a code = {probe.item.answers[0]}.") < 0.2 < 0.7 < needle_at(late[0], "NEEDLE: a code")
    assert early[0].item.answers != early[1].item.answers  # another probe's text, which overwrites, does not hold the answer
    for answer, right in (
        (" red-45. Next, the", 1),
        ("A code = red-45", 1),
        ("a code is red-46", 0),
        ("no red-45", 0),
        ("red-46", 0),
        ("", 0),
    ):
        item = replace(early[0].item, answers=("red-45",))
        assert em_norm(begun(answer, replace(early[0], item=item)), item.answers) == right
    asked = made(question_template="Say {needle_token}:")[0]
    assert lm.tokenizer.decode(asked.reads[0][: asked.skip[0]]).strip() == "Say the_key:"
    with pytest.raises(LabError, match="leave long_context out"):
        made(max_seq_len=390)


def test_texts_have_as_many_tokens_and_scored_ones_as_they_are_told(lm):
    for told, scored, width in (({}, 32, 160), ({"scored": 64}, 64, 192), ({"max_seq_len": 256, "scored": 100}, 100, 256)):
        [probe] = probes.probes(lm, "text", 1, 5, "test", CacheParameters(**told))
        assert (len(probe.reads[0]) - 1, probe.start + len(probe.reads[0])) == (scored, width)


def test_a_training_takes_the_settings_that_it_is_told(lm, tmp_path, monkeypatch):
    told = {"rate": 0.5, "batch": 3, "trained_on": 5, "clean_share": 0.1, "mending": 0.2, "warmup": 7, "cooldown": 0.3, "alpha": 0.9}
    made = []
    monkeypatch.setattr(run, "RepairTrainee", lambda recipe, lm: made.append(recipe) or {}[None])
    with pytest.raises(KeyError):
        run.rows(SimpleNamespace(parameters=CacheParameters(step="train", **told), language_model=lm, record=tmp_path))
    [recipe] = made
    assert {**told, "probes": 5, "clean": 0.1} == {name: getattr(recipe, name, told.get(name)) for name in (*told, "probes", "clean")}
    assert CACHE.plan(CACHE.check({"defences": ["learned"], **told}, "here")).needs["repair"].parameters["rate"] == 0.5


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
    parameters = CacheParameters(n=2, kinds=["gaussian"], severities=[0.5])
    runs, reads = [], []
    monkeypatch.setattr(run, "read", lambda *arguments, once=run.read: reads.append(1) or once(*arguments))
    for _ in range(2):
        defences = {name: NoDefence(SimpleNamespace()) for name in ("none", "other")}
        runs.append(pd.DataFrame(run.of_task(lm, "needle", written[:2], parameters, defences, dict.fromkeys(defences, 0))))
        monkeypatch.setattr(run, "contents", lambda caches: object())
    assert len(reads) == 2 + 4
    pd.testing.assert_frame_equal(*(table.drop(columns=["repair_ms", "tokens_per_s", "peak_mb"]) for table in runs), check_exact=True)


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
    assert (
        len(trainee.history) == 8
        and set(TRAIN.columns) <= set(trainee.history[0])
        and not any(weight.requires_grad for weight in lm.model.parameters())
    )


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
        ({"tasks": ["long_context"], "context_len": 512}, "context_len of at most 448"),
        ({"max_seq_len": 1024}, "hippo-tiny takes 512 tokens"),
        ({"max_seq_len": 64, "scored": 64}, "score at most 62"),
        ({"question_template": "What?"}, "with {needle_token} in it"),
        ({"needle_value": "{colour}-7"}, "no field but {number}"),
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
