"""What experiments of one's own bring to a report: all of their tables, all of their sections, intervals by their own clusters."""

import re
from collections import Counter
from dataclasses import replace

import pandas as pd
import pytest

from hippo_core.errors import LabError
from hippo_core.files import root, write_json, write_text
from hippo_core.lab.grid import summary
from hippo_core.protocols.base import reporting
from hippo_core.protocols.base.experiment import Experiment, plain_sections
from hippo_core.protocols.base.parameters import Parameters
from hippo_core.protocols.questions.protocol import ANSWER
from hippo_core.results.criteria import TableRows, load_criteria
from hippo_core.results.records import Table, begin_record, finish_record, read_meta, seal
from hippo_core.results.records.table import mean_by_cluster
from hippo_core.results.report import ExperimentGroup, PageBlock, PagePart, write_report
from hippo_core.results.report.sections import Section, view
from hippo_core.results.verdicts import GROUPS, by_group, claims_by_rival
from tests.results import fake_records

LOSSES = Table(columns=("layer", "text", "loss"), unit="layer", cluster="text", measures=("loss",), text=("text",), step="a")
PAIRS = Table(columns=("pair", "seed_of", "accuracy"), unit="pair", cluster="seed_of", text=("pair",), step="b", file="b.csv")
COUNT = r"(\d+) ((?:not )?(?:met|shown|judged))"  # of verdicts, in words
PIXEL = b"\x89PNG one"


class ShareParameters(Parameters):
    share: float = 0.0
    step: str = "a"


def sections_of(tables):
    return [Section(f"{table.step} of mine", f"{len(table.rows)} rows of {table.step}.") for table in tables]


MINE = Experiment(
    "tests.results.report.test_sections:MINE", "02_baseline", ShareParameters, "hippo_core.files", (LOSSES, PAIRS), sections=sections_of
)


def losses(share: float) -> pd.DataFrame:
    return pd.DataFrame(
        [{"layer": layer, "text": f"t{text}", "loss": text + layer / 100 + share} for text in range(12) for layer in range(30)]
    )


def add_record(run, table, share, rows, experiment=MINE.name):
    """A made-up record of a step of this experiment, or of another of its kind."""
    folder = run / "mine" / table.step / f"{table.step}-{int(100 * share):08x}"
    folder.mkdir(parents=True)
    parameters = {**ShareParameters(share=share, step=table.step).values(), "run_id": run.name}
    meta = {"experiment": experiment, "step": table.step, "parameters": parameters, "table": table.described()}
    begin_record(folder, {"parameters": parameters}, meta)
    (folder / "notebook.ipynb").write_text("{}")
    finish_record(folder, rows, table.means(rows), {"seconds": 1.0}, table.file)
    seal(folder)


@pytest.fixture
def run(tmp_path):
    for share in (0.0, 0.5):
        add_record(tmp_path / "trial", LOSSES, share, losses(share))
    add_record(tmp_path / "trial", PAIRS, 0.0, pd.DataFrame({"pair": ["a > b", "b > a"], "seed_of": [1.0, 2.0], "accuracy": [0.5, 0.75]}))
    return tmp_path / "trial"


def test_every_step_of_an_experiment_and_every_section_of_it_is_on_the_page(run, tmp_path):
    group = reporting.group(run, MINE)
    assert [(table.step, len(table.rows), table.cluster) for table in group.tables] == [("a", 720, "text"), ("b", 2, "seed_of")]
    assert group.tables[0].rows.groupby("share")["loss"].mean().tolist() == pytest.approx([5.645, 6.145])
    page = reporting.write_report(run, tmp_path / "out", [MINE.name])
    html, md, findings = page.read_text(), (tmp_path / "out/index.md").read_text(), (tmp_path / "out/found.md").read_text()
    for section in group.sections:
        assert f">{section.title}</a>" in html and f"<h2>{section.title}</h2>" in html and f"## {section.title}\n" in md
        assert all(section.sentence in text for text in (html, md, findings))
    assert [section.sentence for section in group.sections] == ["720 rows of a.", "2 rows of b."]


def test_what_several_sections_say_alike_is_found_once_in_order(tmp_path):
    run = tmp_path / "trial"
    run.mkdir()
    by_title = {"c": "Said twice.", "b": "Said first of all.", "a": "", "d": "Said twice."}
    write_report(
        run, tmp_path / "out", [ExperimentGroup("mine:ONE", (), [Section(title, sentence) for title, sentence in by_title.items()])]
    )
    assert (tmp_path / "out/found.md").read_text() == "## What this run found\n\n- Said twice.\n- Said first of all.\n"
    assert (tmp_path / "out/index.md").read_text().count("Said twice.") == 2  # below its own title each


def test_findings_are_what_is_found_and_a_group_of_sections_shares_one_link(tmp_path):
    run = tmp_path / "trial"
    run.mkdir()
    sections = [Section("What is left", "How to read it.", findings=["Half is <left>.", "Best: one."])]
    sections += [
        Section("a", "As a.", PIXEL, group="All of them"),
        Section("b", "As b.", group="All of them"),
        Section("Last one", "Said."),
    ]
    page = write_report(run, tmp_path / "out", [ExperimentGroup("mine:ONE", (), sections)])
    html, md = page.read_text(), (tmp_path / "out/index.md").read_text()
    assert (tmp_path / "out/found.md").read_text() == "## What this run found\n\n- Half is <left>.\n- Best: one.\n"
    links = re.findall('href="#([^"]+)">([^<>]+)</a>', html.split("<nav")[1].split("</nav>")[0])
    assert [title for _, title in links] == ["What is left", "All of them", "Last one", "Records"]
    assert all(html.count(f'id="{anchor}"') == 1 for anchor, _ in links)
    assert "<li>Half is &lt;left&gt;.</li><li>Best: one.</li>" in html and html.count("<h2>All of them</h2>") == 1
    assert re.findall("<details id=.*?( open)?><summary>(.)</summary>", html) == [(" open", "a"), ("", "b")]
    heads = ["\n- Half is <left>.\n- Best: one.\n", "\n## All of them\n", "\n### a\n", "\n### b\n", "\n## Last one\n"]
    assert [md.count(head) for head in heads] == [1] * 5 and sorted(heads, key=md.index) == heads


def test_sections_of_several_experiments_stand_beside_the_answers(tmp_path):
    run = fake_records.build_run(tmp_path / "trial", ("episodic",), ("baselines/rag_bm25", "baselines/longctx"), n=10)
    table = pd.DataFrame({"who": ["Nia", "Omar"], "share": [0.25, 3.0]})
    first = [Section("First one", "Said first.", table=table), Section("Second one", figure=PIXEL)]
    groups = [ExperimentGroup("mine:ONE", (), first), ExperimentGroup("mine:TWO", (), [Section("Third one", "Said third.")])]
    page = write_report(run, tmp_path / "out", groups, ANSWER.pages)
    html, md = page.read_text(), (tmp_path / "out/index.md").read_text()
    positions = [html.index(f"<h2>{name} one</h2>") for name in ("First", "Second", "Third")]
    assert positions == sorted(positions) and all(
        f"{name} one</a>" in html and f"## {name} one\n" in md for name in ("First", "Second", "Third")
    )
    assert "<td class=name>Nia</td><td class=n>0.25</td>" in html and "| Omar | 3 |" in md
    [picture] = (tmp_path / "out/figures").glob("section_2_*.png")
    assert picture.read_bytes() == PIXEL and f"](figures/{picture.name})" in md


def test_the_command_line_counts_the_verdicts_that_the_page_counts(tmp_path, monkeypatch):
    """Those on answers and those on experiments' tables together."""
    run = fake_records.build_run(tmp_path / "executed/trial", ("episodic",))
    nothing = TableRows("consolidation", "", "question_id", "world", pd.DataFrame({"question_id": ["a"], "world": ["b"]}))
    write_report(run, tmp_path / "reports/trial", [ExperimentGroup("consolidation", [nothing], [])], ANSWER.pages)
    monkeypatch.setattr(summary, "root", lambda: tmp_path)
    lines = [line.removeprefix("criteria:").strip() for line in summary.summary_lines("trial", [], 0, 0.0)[2:-2]]
    text = (tmp_path / "reports/trial/index.md").read_text()
    groups = [line.replace("*", "") for line in re.findall(r"^Success criteria, (.*)\.$", text, re.MULTILINE)]
    assert lines[: len(groups)] == groups and {line.partition(":")[0] for line in groups} <= set(GROUPS.values())

    def counts(lines):
        return sum((Counter({word: int(number) for number, word in re.findall(COUNT, line)}) for line in lines), Counter())

    assert counts(groups) == counts(tables := re.findall("^## Verdicts.*$", text, re.MULTILINE))
    of_tables = sum(criterion.experiment == "consolidation" for criterion in load_criteria().tables)
    assert f"{of_tables} not judged" in tables[1] and counts(tables[:1])["met"] > 0


def test_claims_are_counted_by_their_rivals_and_nothing_else_is():
    def row(rival, verdict="met", about="claim"):
        return {"about": about, "verdict": verdict, "b": rival}

    claims = [row("baselines/rag_sum"), row("baselines/rag_bm25 (k=1)", "not shown"), row("baselines/longctx", "not met")]
    claims += [row("helped/rag_paths"), row("")]
    claims += [row("controls/oracle"), row("memory/smpd (spatial.macros=false)", "not met"), row("ablations/gate_random")]
    others = [row("baselines/rag_sum", about="control"), row("baselines/core", "not judged"), row("baselines/core", about="instrument")]
    assert claims_by_rival(claims + others) == (
        "claims met: 1 of 2 against a rag, 0 of 1 against all facts in the prompt, "
        "1 of 1 against a rag or long context with the same program, 1 of 1 against the right facts in the prompt, "
        "1 of 2 against the memory with other settings, 1 of 1 without a rival"
    )
    assert claims_by_rival(others) == ""
    counts = by_group(claims + others)
    assert list(counts) == ["claims", "controls", "checks of the instrument"]
    assert counts["claims"] == {"met": 5, "not met": 2, "not shown": 1, "not judged": 1}
    assert counts["controls"]["met"] == counts["checks of the instrument"]["met"] == 1


def own_pages(run, out):
    write_text(out / "own.html", "<p>mine</p>")
    before = PageBlock([("", "by hand"), ("first", "First")], "<section id='first'>A & B</section>\n", "## First\n\nA | B\n\n")
    after = PageBlock([("last", "Last")], "<section id='last'></section>\n", "## Last\n")
    return [PagePart(f"{run.name} & more.", "## What this run found\n\nAll.\n", before, after)]


def test_experiments_that_share_pages_of_their_own_have_them_once_around_all_sections(run, tmp_path, monkeypatch):
    own = {f"mine:{name}": replace(MINE, name=f"mine:{name}", pages=(own_pages,)) for name in ("ONE", "TWO")}
    monkeypatch.setattr(reporting, "load_experiment", {MINE.name: MINE, **own}.__getitem__)
    for name in own:
        add_record(run / name[-3:], LOSSES, 0.0, losses(0.0), name)
    out = tmp_path / "out"
    html, md = reporting.write_report(run, out, [MINE.name, *own]).read_text(), (out / "index.md").read_text()
    blocks = ["<section id='first'>A & B</section>", "<h2>a of mine</h2>", "<h2>b of mine</h2>", "<section id='last'></section>"]
    assert [html.count(block) for block in blocks] == [1, 1, 1, 1] and sorted(blocks, key=html.index) == blocks
    heads = ["## First\n\nA | B\n", "## a of mine\n", "## b of mine\n", "## Last\n"]
    assert [md.count(head) for head in heads] == [1, 1, 1, 1] and sorted(heads, key=md.index) == heads
    names = re.findall(r">([^<>]+)</(?:a|span)>", html.split("<nav")[1].split("</nav>")[0])
    assert names == ["by hand", "First", "a of mine", "b of mine", "Last"]
    assert "trial &amp; more." in html and "All." in (out / "found.md").read_text() and (out / "own.html").is_file()
    assert "Records" not in html  # which a page lists where it has sections alone


def test_what_all_reports_share_knows_nothing_of_questions_about_suites():
    folder = root() / "hippo_core/results/report"
    files = [path for path in folder.rglob("*") if path.suffix in (".py", ".j2", ".css", ".js")]
    assert len(files) > 8
    assert {path.name: words for path in files if (words := set(re.findall("suite|preset|regime|setting", path.read_text())))} == {}


def test_a_plain_section_has_the_means_by_what_differs_with_intervals_by_cluster():
    rows = pd.concat([losses(share).assign(share=share, seed=1, record=f"r{share}") for share in (0.0, 0.5)], ignore_index=True)
    [section] = plain_sections([TableRows("mine:MINE", "a", "layer", "text", rows, ("loss",))])
    assert section.title == "mine, a" and "Means of loss by share, with 95% intervals by text" in section.sentence
    lines = section.table.to_dict("records")
    assert [(line["share"], line["n"], line["clusters"]) for line in lines] == [(0.0, 360, 12), (0.5, 360, 12)]
    due = mean_by_cluster(losses(0.0), "loss", "text")
    assert lines[0]["loss"] == pytest.approx(due["mean"]) and due["high"] - due["low"] > 3
    low, high = (float(end) for end in lines[0]["loss, 95% interval"].split(" to "))
    assert (low, high) == pytest.approx((due["low"], due["high"]), abs=0.05)


def test_columns_of_numbers_stand_at_the_right_however_they_are_written():
    numbers = {"n": [1, 2], "by": ["+0.13", "–"], "p": ["< 0.001", "0.04"]}
    table = pd.DataFrame({**numbers, "who": ["a", "b"], "span": ["0.1 to 0.2", "–"], "none": "–"})
    shown = view(Section("t", table=table), 1)
    assert {name for name, number in shown["table"]["heads"] if number} == set(numbers)


@pytest.mark.parametrize("named", ["os:system", "tests.results.report.test_sections:MINE", "no.such.module:IT"])
def test_a_record_does_not_choose_whose_code_is_imported(tmp_path, named, monkeypatch):
    run = fake_records.build_run(tmp_path / "executed/trial", ("episodic",))
    record = next(iter(run.rglob("meta.json"))).parent
    write_json(record / "meta.json", read_meta(record) | {"experiment": named})
    seal(record)
    monkeypatch.setattr(reporting, "load_experiment", lambda name: pytest.fail(f"{name} was imported"))
    with pytest.raises(LabError, match=rf"--allow-import {re.escape(named)}$"):
        reporting.write_report(run, tmp_path / "out")
