"""The first screen says what the numbers say, verdicts name side a first, and a run that no criterion is about has its page."""

import json
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest

from hippo_core.lab.grid import summary
from hippo_core.protocols.base.reporting import write_report
from hippo_core.protocols.questions.figures.headline import HeadlineComparison
from hippo_core.protocols.questions.report.findings import _compared, described, sentences
from hippo_core.protocols.questions.report.findings import claim as _claim
from hippo_core.protocols.questions.report.runs import load_run
from hippo_core.protocols.questions.report.verdicts import claims
from hippo_core.protocols.questions.report.writing import verdicts_of
from hippo_core.results.criteria import read_criteria
from hippo_core.results.report.verdicts import verdict_row
from tests.results import fake_records


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = fake_records.build_run(tmp_path_factory.mktemp("executed") / "trial", ("episodic",))
    fake_records.add_record(folder, "episodic", "memory/hei_nw", "delayed")
    return folder


@pytest.fixture(scope="module")
def out(run) -> Path:
    return write_report(run, run.parent.parent / "reports" / "trial").parent


def test_side_a_comes_first_with_its_counts_and_its_link(run, out):
    rows, page = load_run(run), (out / "index.html").read_text(encoding="utf-8")
    cells = {cell.id: cell for cell in rows.cells}
    checked = 0
    for criterion in json.loads((out / "criteria.json").read_text())["criteria"]:
        if criterion["only_a"] is None or criterion["metric"] != "score" or criterion["rung"]:
            continue
        pair = [cells[name] for name in criterion["cells"]]
        assert [member.condition for member in pair] == [criterion["a"], criterion["b"]], criterion["id"]
        a, b = (rows.rows[rows.rows["record"] == member.record].set_index("item_id")["score"] for member in pair)
        assert ((a > b).sum(), (b > a).sum()) == (criterion["only_a"], criterion["only_b"]), criterion["id"]
        line = page[page.index(f'<tr id="{criterion["id"]}"') :].split("</tr>")[0]
        names = [name.split("/")[-1] for name in (criterion["a"], criterion["b"])]
        linked = [unquote(name).split(",")[0] for name in re.search(r"#a=(.+?)&amp;b=(.+?)&amp;", line).groups()]
        assert linked == names and re.findall(r'<a href="items/[^"]+">([^<]+)</a>', line) == names, criterion["id"]
        checked += criterion["only_a"] != criterion["only_b"]
    assert checked > 3


def test_the_three_sentences_say_what_the_numbers_say(run, out):
    rows = load_run(run)
    judged = verdicts_of(rows)
    first, second, third = sentences(rows, "hippo-tiny", judged)
    means = rows.rows[rows.rows["regime"] == "delayed"].groupby("condition")["score"].mean()
    assert f"hei_nw answers {100 * means['memory/hei_nw']:.0f}% of the questions on episodic right" in first
    rag = max(means[name] for name in means.index if "rag" in name)
    assert f"{100 * rag:.0f}%: {means['memory/hei_nw'] - rag:+.2f}, " in first
    counts = {name: sum(v.verdict == name for v in judged if v.about == "claim") for name in ("met", "not met", "not shown")}
    assert f"Of {sum(counts.values())} claims about the memory {counts['met']} " in third
    assert all(f"{count} {'is' if count == 1 else 'are'} {name}" in third for name, count in counts.items() if name != "met" and count)
    assert "expectations of the instrument hold" in second
    page = (out / "index.html").read_text(encoding="utf-8")
    assert page.index('id="found"') < page.index(">What this run found<") < page.index('src="data:image/png') < page.index('id="verdicts"')
    assert (out / "figures/found.png").is_file() and first in (out / "found.md").read_text(encoding="utf-8")


def test_a_notebook_shows_claims_about_the_memory_and_what_else_does_not_hold(run, out):
    judged = [entry for entry in verdicts_of(load_run(run)) if entry.verdict != "not judged"]
    shown = claims(read_criteria(out / "criteria.json"))
    memory, others = ([entry for entry in judged if (entry.about == "claim") == mine] for mine in (True, False))
    failed = [entry.question for about in ("control", "instrument") for entry in others if entry.about == about and entry.verdict != "met"]
    assert shown["question"].tolist() == [entry.question for entry in memory] + failed and memory and failed
    assert shown["value"].tolist()[0] == verdict_row(memory[0])["value"]
    assert "None" not in shown.to_string() and "nan" not in shown.to_string()


def test_one_claim_is_the_one_claim(run):
    judged = verdicts_of(load_run(run))
    single = replace(next(verdict for verdict in judged if verdict.about == "claim" and verdict.verdict != "not judged"), verdict="met")
    assert sentences(load_run(run), "hippo-tiny", [single])[2].startswith(f"The one claim about the memory is met (“{single.question}”); ")


@pytest.mark.parametrize(
    ("others", "says"),
    [
        ([], "there is nothing to compare it with."),
        (["controls/oracle"], "there is nothing to compare it with."),
        (["baselines/longctx", "baselines/rag_sum"], "not compared in this sentence, though asked too: longctx, rag_sum."),
    ],
)
def test_baselines_that_were_asked_are_not_said_to_be_missing(others, says):
    table = pd.DataFrame({"mean": 1.0}, index=["memory/smpd", *others])
    sentence = _compared([HeadlineComparison("spatial", "memory/smpd", "", "", table, *[float("nan")] * 3)])
    assert sentence == f"smpd answers 100% right on spatial; {says}"


def test_to_be_ahead_of_a_rag_at_chance_is_nothing_that_the_headline_counts():
    def lead(setting: str, rag: float) -> HeadlineComparison:
        table = pd.DataFrame({"mean": [0.9, rag], "chance": 0.2}, index=["memory/smpd", "baselines/rag_sum"])
        return HeadlineComparison(setting, "memory/smpd", "baselines/rag_sum", "baselines/rag_sum", table, 0.9 - rag, 0.1, 0.9)

    headlines = [lead("fair", 0.26), lead("hopeless", 0.24)]
    assert _claim(headlines).endswith(" on 1 of 1 settings where that beats a guess")
    sentence = _compared(headlines)
    assert "right than the best rag (rag_sum) on fair (" in sentence
    assert "the best rag (rag_sum) is at chance, so that nothing can be said, on hopeless (" in sentence


def test_the_legend_has_every_condition_in_the_words_of_its_preset(run, out):
    page = (out / "found.md").read_text(encoding="utf-8")
    for preset in load_run(run).rows["preset"].unique():
        assert f"- **{preset.split('/')[-1]}**: {described(preset)}\n" in page and len(described(preset)) > 20
    assert described("mine/none") == ""


def test_what_is_expected_of_the_instrument_stands_apart_from_claims(out):
    page, rows = (out / "index.html").read_text(encoding="utf-8"), read_criteria(out / "criteria.json")
    rows = rows[rows["verdict"] != "not judged"]
    assert set(rows["about"]) == {"claim", "control", "instrument"}
    titles = {"claim": "Claims", "control": "Controls", "instrument": "The instrument"}
    heads = {about: page.index(f">{title} <span>") for about, title in titles.items()}
    for _, row in rows.iterrows():
        there = page.index(f'<tr id="{row["id"]}"')
        assert max((start, about) for about, start in heads.items() if start < there)[1] == row["about"], row["id"]
        assert row["met_when"].replace("'", "&#39;") in page


def test_a_run_that_no_criterion_is_about_has_its_page_and_says_why(tmp_path, monkeypatch):
    folder, name = tmp_path / "executed/own", "folder:mine/notes"
    for preset in ("baselines/span_short", "memory/hei_nw"):
        fake_records.add_record(folder, name, preset, "delayed", n=3, rows=fake_records.make_rows(name, preset, "delayed", n=3))
    out = write_report(folder, tmp_path / "reports/own").parent
    page = (out / "index.md").read_text(encoding="utf-8")
    reason = f"{name}: no criterion is about this suite, and 3 questions in 1 world give no interval: that takes 10"
    assert f"- {reason}\n" in page and reason in (out / "index.html").read_text(encoding="utf-8")
    assert "hei_nw answers" in page and "too few worlds" in page and "| hei_nw |" in page
    verdicts = read_criteria(out / "criteria.json")
    assert verdicts.empty and {"verdict", "question", "met_when"} <= set(verdicts)
    monkeypatch.setattr(summary, "root", lambda: tmp_path)
    assert summary.summary_lines("own", [], 2, 1.0)[2] == "criteria: none is about what was run; the report has the scores"
    assert summary.summary_lines("other", [], 2, 1.0)[2] == "criteria: none judged yet"


def test_a_run_of_validation_worlds_has_a_page_of_its_numbers_and_no_verdict(tmp_path):
    folder = tmp_path / "executed" / "chosen"
    for preset in ("memory/hei_nw", "baselines/rag_bm25"):
        fake_records.add_record(folder, "episodic", preset, "delayed", split="val")
    page = write_report(folder, tmp_path / "reports" / "chosen").read_text(encoding="utf-8")
    assert "Validation worlds only, on which settings are chosen: nothing is judged." in page
    assert "No claim about a memory was judged" in page and "hei_nw answers" in page
    assert json.loads((tmp_path / "reports" / "chosen" / "criteria.json").read_text())["criteria"] == []
    assert len(list((tmp_path / "reports" / "chosen" / "items").glob("*.html"))) == 3  # two cells, and both side by side
