"""The report of a run with a memory: what it did stands in tables, sleep is a regime of its own, and criteria find their sides."""

import json
import re

import pytest

from hippo_core.methods.base import Picture
from hippo_core.protocols.base.reporting import write_report
from hippo_core.protocols.questions.drawing import keep
from hippo_core.protocols.questions.report.runs import load_run
from hippo_core.protocols.questions.report.telemetry import telemetry
from hippo_core.results.criteria import load_criteria
from hippo_core.results.records import seal
from hippo_core.results.scores import RANKING_COLUMNS
from hippo_core.results.summaries import RIVAL_RAGS, best_rag
from tests.results import fake_records


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = fake_records.build_run(tmp_path_factory.mktemp("executed") / "trial", ("episodic", "episodic_cross"), n=200)
    for regime in ("delayed", "after_sleep"):
        record = fake_records.add_memory(folder, regime=regime, n=200)
        keep(record, "Who met <Bo>?", [Picture("Winning units", '<svg viewBox="0 0 9 9"><circle r="4"/></svg>', f"Drawn {regime}.")])
        seal(record)
    rows = fake_records.make_rows("episodic", "controls/oracle", "delayed", n=200)
    rows = rows.assign(**dict.fromkeys(RANKING_COLUMNS, 1.0))
    fake_records.add_record(folder, "episodic", "baselines/rag_synonyms", "delayed", n=200, rows=rows)
    return folder


@pytest.fixture(scope="module")
def out(run):
    return write_report(run, run.parent.parent / "reports" / "trial").parent


def test_what_a_memory_did_stands_in_three_tables(run, out):
    tables = telemetry(load_run(run))
    assert [(line["name"], line["regime"]) for line in tables["recall"]] == [("hei_nw", "delayed"), ("hei_nw", "after_sleep")]
    assert tables["recall"][0]["requests"] == "200" and tables["recall"][0]["trace_tokens"] == "14.0"
    [gate], [replay] = tables["gate"], tables["replay"]
    rates = [gate[name] for name in ("false_drops", "false_keeps")]
    assert all(re.fullmatch(r"[01]\.\d+( \([01]\.\d+ to [01]\.\d+\))?|–", rate) for rate in rates), rates
    assert f"| {rates[0]} | {rates[1]} | {gate['pr_auc']} |" in (out / "index.md").read_text(encoding="utf-8")
    assert gate["attempts"] == "64" and replay["cycles"] == "1"
    words = ("Memory at work", "PR-AUC", "false drops", "false keeps", "requests", "salience")
    pages = [(out / page).read_text(encoding="utf-8") for page in ("index.html", "index.md")]
    assert [word for page in pages for word in words if word not in page] == []


def test_the_page_of_a_memory_shows_question_recalled_text_with_score_answer_and_right_answer(run, out):
    pages = {path.name: path.read_text(encoding="utf-8") for path in (out / "items").glob("*--*.html")}
    mine = next(text for name, text in pages.items() if name.startswith("memory--hei_nw--episodic--"))
    positions = [mine.index(f">{title}</th>") for title in ("Question", "Recalled (score)", "Given", "Right answer")]
    assert positions == sorted(positions)
    shown = 'Nia met a &lt;friend&gt; at the mill. <span class="quiet">(0.812)</span><br>Bo met a friend.</td>'
    assert mine.count(shown) == 200
    older = next(text for name, text in pages.items() if "rag_bm25" in name)
    assert "Recalled (score)" not in older and "nan" not in older.partition("<tbody>")[2].partition("<script>")[0].split("<td>")


def test_what_a_memory_drew_stands_on_the_page_and_in_a_file(out):
    [file] = (out / "figures").glob("*.svg")
    svg = file.read_text(encoding="utf-8")
    assert svg.startswith('<svg xmlns="http://www.w3.org/2000/svg"') and '<circle r="4"/>' in svg
    page, summary = ((out / name).read_text(encoding="utf-8") for name in ("index.html", "episodic/summary.md"))
    assert page.count("data:image/svg+xml;base64,") == 1 and "hei_nw, winning units: Who met &lt;Bo&gt;?" in page
    assert f"](../figures/{file.name})" in summary and "Drawn delayed." in summary


def test_a_run_without_memory_has_no_such_section(tmp_path):
    folder = fake_records.build_run(tmp_path / "executed/plain", ("episodic",), n=20)
    assert telemetry(load_run(folder)) == {"recall": [], "gate": [], "replay": [], "own": [], "gates": []}
    page = write_report(folder, tmp_path / "reports/plain")
    assert "Memory at work" not in page.read_text(encoding="utf-8")
    assert "\n\n## What was not measured\n" in page.with_suffix(".md").read_text(encoding="utf-8")


def test_sleep_is_a_regime_in_which_only_the_memory_has_rows(out):
    text = (out / "episodic/summary.md").read_text(encoding="utf-8")
    asleep = text.split("## Conditions, after_sleep")[1].split("\n## ")[0]
    assert [line.split("|")[1].strip() for line in asleep.splitlines() if line.startswith("| ")] == ["condition", "hei_nw"]
    paired = text.split("## Paired comparisons")[1].split("\n## ")[0]
    lines = [[cell.strip() for cell in line.split("|")[1:4]] for line in paired.splitlines() if "| after_sleep |" in line]
    assert lines and {name for name, _, _ in lines} == {"hei_nw"}  # the others would only repeat themselves
    matrix = (out / "index.md").read_text(encoding="utf-8").split("## At a glance")[1]
    assert "| hei_nw |" in matrix and "| hei_nw, after_sleep |" in matrix


def test_criteria_of_sleep_are_judged_by_the_delayed_cell_and_the_one_after(out):
    by_id = {criterion["id"]: criterion for criterion in json.loads((out / "criteria.json").read_text())["criteria"]}
    criterion = by_id["replay_one"]
    assert criterion["verdict"] != "not judged" and len(criterion["cells"]) == 2 and criterion["only_a"] is not None, criterion["reason"]
    for name in ("before_replay_measured", "store_written", "replay_samples", "replay_cycles", "retrieval_requests"):
        assert by_id[name]["verdict"] == "met", by_id[name]["reason"]
    assert not {"replay_three", "gate_accuracy_episodic"} & by_id.keys()  # of settings that the run does not hold


def test_the_best_rag_is_one_of_the_rivals_however_well_a_bound_does(run):
    rows = load_run(run).rows
    assert best_rag(rows[rows["suite"] == "episodic"])[0] in RIVAL_RAGS
    assert {member.preset for member in load_criteria().groups["best_rag"]} == set(RIVAL_RAGS)
