"""A run of two models, three sizes of world and two encoders: what may be compared is, and nothing else is mixed."""

import json
import re
from pathlib import Path

import pytest

from hippo_core.protocols.base.reporting import write_report
from hippo_core.protocols.questions.report.runs import load_run
from hippo_core.results import summaries
from hippo_core.results.conditions import ordered
from hippo_core.results.figures.palette import style_of
from tests.protocols.questions.report.test_report import Page
from tests.results import fake_records


@pytest.fixture(scope="module")
def two_models(tmp_path_factory) -> Path:
    """A run in which only the rags say an encoder, worlds of three sizes are told apart, and a second model is asked one suite."""
    folder = tmp_path_factory.mktemp("executed") / "both"
    presets = ("baselines/span_short", "baselines/rag_bm25", "baselines/rag_dense", "baselines/rag_hybrid", "controls/oracle")
    for model, suite, overrides in (
        ("small", "episodic", ()),
        ("large", "episodic", ()),
        ("large", "episodic", ("n_facts=128",)),
        ("large", "episodic", ("n_facts=8",)),
        ("large", "babi", ()),
    ):
        for preset in presets:
            settings = overrides + ("encoder=minilm",) * (preset in fake_records.ENCODED)
            for split in ("test", "val") if "rag" in preset else ("test",):
                fake_records.add_record(folder, suite, preset, "delayed", split=split, overrides=settings, model=model)
    fake_records.add_record(folder, "babi", "baselines/rag_dense", "delayed", model="large")
    fake_records.add_record(folder, "babi", "baselines/rag_bm25", "delayed", overrides=("preset.k=5",), model="large")
    return folder


def test_models_and_world_sizes_are_told_apart_and_an_encoder_is_part_of_the_condition(two_models):
    run = load_run(two_models)
    large = ["episodic", "episodic · n_facts=8", "episodic · n_facts=128", "babi"]
    assert run.settings == [*(f"large · {name}" for name in large), "small · episodic"]
    assert list(run.settings_of("large").values()) == large
    rows = run.rows[run.rows["setting"] == "large · babi"]
    rags = [name for name in ordered(rows["condition"]) if "rag" in name]
    labels = ("rag_bm25", "rag_bm25 (k=5)", "rag_dense", "rag_dense (minilm)", "rag_hybrid (minilm)")
    assert rags == [f"baselines/{name}" for name in labels]
    assert len({style_of(name).colour for name in rags}) == 4  # a variant looks like its preset, another encoder does not


def test_the_best_rag_of_a_setting_has_a_published_encoder_or_none(two_models):
    run = load_run(two_models)
    rows = run.rows[run.rows["setting"] == "large · babi"]
    worst = rows.assign(score=rows["condition"].isin(["baselines/rag_dense", "baselines/rag_bm25 (k=5)"]).astype(float))
    assert summaries.best_rag(worst) == ("baselines/rag_bm25", False)
    assert summaries.best_rag(rows, run.validation_of("large · babi"))[1]
    assert not summaries.best_rag(rows, run.validation_of("small · episodic").query("preset != 'baselines/rag_hybrid'"))[1]
    own = rows[rows["condition"].isin(["baselines/rag_dense", "controls/oracle"])]
    assert summaries.best_rag(own) == ("baselines/rag_dense", False)
    assert summaries.best_rag(own.query("preset == 'controls/oracle'")) == (None, False)


def test_a_report_of_two_models_mixes_nothing(two_models, tmp_path):
    page = write_report(two_models, tmp_path / "report")
    text = page.read_text(encoding="utf-8")
    assert text.index("<h3>large</h3>") < text.index("<h3>small</h3>")
    assert len(re.findall(r'id="[^"]+"', text)) == len(set(re.findall(r'id="[^"]+"', text)))
    assert Page(page).open == []
    text = (tmp_path / "report" / "index.md").read_text(encoding="utf-8")
    assert "## Verdicts on small: " in text and "| small | episodic |" in text
    assert "| large | episodic | episodic · n_facts=8 | episodic · n_facts=128 | babi |" in text
    assert "- small: no record of the suites babi." in text
    assert "rag_dense (minilm)" in (tmp_path / "report" / "small-episodic" / "summary.md").read_text(encoding="utf-8")
    verdicts = json.loads((tmp_path / "report" / "criteria.json").read_text())["criteria"]
    counts = sorted((verdict["model"], verdict["n"]) for verdict in verdicts if verdict["id"] == "rag_delayed/episodic")
    assert counts == [("large", 50), ("small", 50)]
    assert {verdict["model"] for verdict in verdicts if verdict["suite"] == "babi"} == {"large"}
    assert not any("own vectors" in verdict["reason"] for verdict in verdicts)
