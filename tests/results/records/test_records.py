"""Records: what is written is read back exactly, a changed byte is found, times are not counted, a cut file is not complete."""

import json
import math
import shutil

import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hippo_core.errors import LabError
from hippo_core.evaluation.table import ITEMS, asked_metrics
from hippo_core.results import records
from hippo_core.results.scores import RECALL_AT
from hippo_core.results.statistics.interval import cluster_interval

NASTY = ["plain", "", 'say "no", twice', "two\nlines", "a\rb", " spaces ", "NULL", "nan", "0012", "1e5", "Zoë; Łukasz", "x|y"]


def rows(count: int = 12, timing: float = 3.0) -> pd.DataFrame:
    table = [
        {
            "idx": row, "item_id": f"w{row // 4}/q{row}", "world": f"w{row // 4}", "stage": "test", "kind": "slot",
            "rung": ("exact", "noisy")[row % 2], "slices": ("", "new_name", "new_name;new_template")[row % 3],
            "prompt": NASTY[row % len(NASTY)],
            "pred": NASTY[-row % len(NASTY)], "em_raw": 0, "em_norm": row % 2, "f1": row / 7,
            "success": math.nan, "suboptimality": math.nan,
            "score": row % 2, "chance": 0.1, "refusal": 0, "abstained": 0, "refuted": math.nan,
            "overlong": 0, "format_violation": 0, "prompt_tokens": 30,
            "generated_tokens": 3, "computed_tokens": 20.5,
            "kv_mb": 0.25, "latency_ms": timing + row, "retrieval_ms": math.nan, "flags": "",
            **{f"recall_{k}": math.nan if row % 5 else 1 / 3 for k in RECALL_AT},
        }
        for row in range(count)
    ]  # fmt: skip
    return pd.DataFrame(table)


def make(folder, timing: float = 3.0, **changes):
    parameters = {"run_id": folder.parts[-6], "suite": "episodic", "preset": "baselines/core", "model": "m", "n": 12, "seed": 1}
    parameters |= {"split": "test", "regime": "delayed", "profile": "default", "dry_run": False, "overrides": [], **changes}
    meta = {"git_sha": str(timing), "parameters": parameters, "experiment": "answer", "step": "test", "table": ITEMS.described()}
    records.begin_record(folder, {"parameters": {"n": 12}}, meta)
    table = rows(timing=timing)
    records.finish_record(folder, table, asked_metrics(table, "episodic", 12, 1, "baselines/core", timing), {"seconds": timing})
    (folder / "notebook.ipynb").write_text(json.dumps({"cells": [{"cell_type": "code", "metadata": {}, "source": ["1"], "outputs": []}]}))
    records.seal(folder)
    return folder


@pytest.fixture
def record(tmp_path):
    return make(tmp_path / "run/baselines/core/episodic/12_1/delayed-test-00000000")


@pytest.fixture
def twin(tmp_path):
    return make(tmp_path / "other/baselines/core/episodic/12_1/delayed-test-00000000", timing=99.0)


def test_a_sealed_record_is_complete(record):
    assert records.is_complete(record)
    assert records.verify(record.parents[3]) == (1, [])


@pytest.mark.parametrize("name", ["metrics.csv", "metrics.json", "meta.json", "config_snapshot.yaml", "notebook.ipynb", "DONE"])
def test_a_cut_or_missing_file_is_not_complete(record, name):
    content = (record / name).read_bytes()
    for size in (0, 1, len(content) // 2, len(content) - 1):
        (record / name).write_bytes(content[:size])
        assert records.is_complete(record) is (name == "DONE" and size == len(content) - 1)  # the last byte of DONE is a line's end
    (record / name).unlink()
    assert not records.is_complete(record)


def test_times_the_commit_and_the_runs_name_are_not_counted(record, twin):
    assert records.diff(record, twin) == (1, [])
    assert records.diff(record.parents[4], twin.parents[4]) == (1, [])


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("metrics.csv", "two\nlines", "two\nlimes"),
        ("metrics.csv", "w0/q1", "w0/q7"),
        ("metrics.json", '"n_worlds": 3', '"n_worlds": 4'),
        ("meta.json", '"model": "m"', '"model": "n"'),
        ("config_snapshot.yaml", "n: 12", "n: 13"),
        ("notebook.ipynb", '"1"', '"2"'),
    ],
)
def test_any_other_change_is_found(record, twin, name, old, new):
    text = (twin / name).read_text()
    assert old in text
    (twin / name).write_text(text.replace(old, new, 1))
    _, differences = records.diff(record, twin)
    assert differences and all(f"/{name}: " in difference for difference in differences)


def test_a_lost_row_file_or_record_is_found(record, twin):
    content = (twin / "metrics.csv").read_bytes()
    (twin / "metrics.csv").write_bytes(content[: content.rstrip(b"\n").rindex(b"\n") + 1])
    assert "metrics.csv: row 11 is" in str(records.diff(record, twin)[1][0])
    (twin / "metrics.csv").unlink()
    assert "only in" in str(records.diff(record, twin)[1][0])
    make(record.with_name("delayed-test-11111111"))
    count, differences = records.diff(record.parents[4], twin.parents[4])
    assert count == 1
    assert any("11111111: only in" in str(difference) for difference in differences)


def test_rows_are_read_back_exactly(record):
    back = records.read_rows(record.parents[4])
    wrote = rows()
    pd.testing.assert_frame_equal(
        back[wrote.columns], wrote.astype({name: "float64" for name in wrote if name not in (*ITEMS.text, "idx")}), check_dtype=False
    )
    assert set(back["run_id"]) == {"run"}
    assert set(back["record"]) == {"baselines/core/episodic/12_1/delayed-test-00000000"}


@settings(max_examples=20, deadline=None)
@given(texts=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12), min_size=12, max_size=12))
def test_any_text_is_read_back(tmp_path_factory, texts):
    run = tmp_path_factory.mktemp("any") / "run"
    record = make(run / "baselines/core/episodic/12_1/delayed-test-00000000")
    records.write_rows(record / "metrics.csv", rows().assign(pred=texts))
    records.seal(record)
    assert records.read_rows(run)["pred"].tolist() == texts


def test_what_ends_while_a_run_is_read_is_not_in_it_and_each_meta_is_read_once(record, twin, monkeypatch):
    run, other = record.parents[4], twin.parents[4]
    late = record.with_name("delayed-test-11111111")
    reads, read = [], type(record).read_bytes
    monkeypatch.setattr(
        type(record), "read_bytes", lambda path, *arguments, **named: [reads.append(path), read(path, *arguments, **named)][1]
    )
    with records.as_of_now(run):
        make(late)
        assert records.records_with(run) == records.records_of(run) == [record]
        assert len(records.read_rows(run)) == len(rows()) == len(records.read_table(run, "answer"))
        assert reads.count(record / "meta.json") == 1
        assert records.records_with(other) == [twin] and records.read_meta(late)["parameters"]["n"] == 12
    assert records.records_with(run) == [record, late]


def test_records_with_other_columns_are_read_together(record):
    second = make(record.with_name("delayed-test-11111111"))
    records.write_rows(second / "metrics.csv", rows().assign(energy=2.5))
    records.seal(second)
    back = records.read_rows(record.parents[4])
    assert back["energy"].notna().sum() == 12
    assert len(back) == 24


def test_rows_that_were_cut_are_an_error_and_not_those_of_the_next_record(record):
    make(record.with_name("delayed-test-11111111"))
    content = (record / "metrics.csv").read_bytes()
    for size in (content.index(b"two") + 1, len(content) - 1, len(content) - 30):
        (record / "metrics.csv").write_bytes(content[:size])
        records.seal(record)
        with pytest.raises(LabError, match="records verify"):
            records.read_rows(record.parents[4])


def test_unfinished_aside_dry_and_validation_records_are_left_out(record):
    run = record.parents[4]
    make(record.with_name("delayed-test-22222222"), dry_run=True)
    make(record.with_name("delayed-test-33333333"), split="val")
    shutil.copytree(record, record.with_name("delayed-test-44444444"))
    (record.with_name("delayed-test-44444444") / "DONE").unlink()
    records.set_aside(make(record.with_name("delayed-test-55555555")))
    assert [record.name for record in records.records_of(run)] == ["delayed-test-00000000"]
    assert [record.name for record in records.records_of(run, split="val")] == ["delayed-test-33333333"]
    assert len(records.records_of(run, split=None, dry_run=True)) == 3


def test_nothing_to_read_says_what_to_run(tmp_path):
    with pytest.raises(LabError, match="make grid"):
        records.read_rows(tmp_path)


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "x" * 81])
def test_a_run_is_a_plain_name(name):
    with pytest.raises(LabError, match="RUN_ID"):
        records.run_folder(name)


def test_metrics_are_those_of_the_rows(record):
    metrics = json.loads((record / "metrics.json").read_text())
    mine = metrics["metrics"]["episodic"]
    assert (mine["em"], mine["low"], mine["high"], mine["n_worlds"]) == (0.5, None, None, 3)  # three worlds have no interval
    score = asked_metrics(rows(60), "episodic", 60, 1337, "baselines/core", 1.0)["metrics"]["episodic"]
    interval = cluster_interval(rows(60)["score"], rows(60)["world"])
    assert (score["low"], score["high"]) == (interval.low, interval.high) and score["low"] < 0.5 < score["high"]
    assert mine["success"] is None
    assert mine["r_at_3"] == pytest.approx(1 / 3)
    assert {name: part["em"] for name, part in metrics["by_rung"].items()} == {"exact": 0.0, "noisy": 1.0}
    assert metrics["by_slice"]["new_template"]["n"] == 4
    assert metrics["metrics"]["compute"]["tokens"] == 12 * 33


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ([], ("", "", "")),
        (["n_facts=8", "k=5"], ("k=5", "n_facts=8", "")),
        (["encoder=minilm", "n_items=10", "n_facts=8"], ("", "n_facts=8;n_items=10", "minilm")),
        (["suite.n_facts=8", "preset.k=5", "preset.encoder=own"], ("k=5", "n_facts=8", "own")),
        (["episodic.gate.enabled=false"], ("episodic.gate.enabled=false", "", "")),
    ],
    ids=str,
)
def test_rows_say_the_encoder_and_whose_setting_was_overridden(tmp_path, overrides, expected):
    record = make(tmp_path / "run/baselines/core/episodic/12_1/delayed-test-00000000", overrides=overrides)
    config = {"preset": {"encoder": expected[2] or None}, "suite": {"settings": {"n_facts": 8, "n_items": 5}}}
    (record / "config_snapshot.yaml").write_text(yaml.safe_dump(config))
    records.seal(record)
    rows = records.read_rows(tmp_path / "run")
    assert [set(rows[name]) for name in ("preset_overrides", "suite_overrides", "encoder")] == [{value} for value in expected]
    assert set(rows["overrides"]) == {";".join(sorted(overrides))}
