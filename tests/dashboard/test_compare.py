"""Compare: its numbers are the report's, its questions are those that differ, and what it cannot show it says in a line."""

import os
import re

import pytest

from hippo_core.dashboard.ablate import AblatePanel
from hippo_core.dashboard.compare import ComparePanel
from hippo_core.dashboard.index import read_index
from hippo_core.errors import LabError
from hippo_core.protocols.questions.report.runs import Links, load_run
from hippo_core.protocols.questions.report.tables import comparisons
from hippo_core.results.figures.palette import style_of
from tests.dashboard.conftest import MEMORY, RAG, SPARSE
from tests.results.fake_records import add_record

SPAN = "baselines/span_short"


@pytest.fixture
def panel(runs):
    shown = ComparePanel(runs, here=runs.parent / "notebooks")
    shown.select("whole", "episodic", MEMORY, RAG)
    return shown


def head(shown):
    return shown._head.value


FIRST = ("a", "b", "difference", "interval", "n", "worlds")


def numbers_of(shown):
    """The numbers on the panel, as they are written."""
    text = head(shown)
    scores, difference, interval = re.search(r'lead">(.*:) (\S+)(?: \((.*?)\))?</p>', text).groups()
    return [*re.findall(r" (\d\.\d+)[,:]", scores), difference, interval, *re.findall(r"<dd>(.*?)</dd>", text.replace("&lt;", "<"))]


def test_every_number_is_the_report_s(runs):
    run = load_run(runs / "whole")
    rows = run.numbers[run.numbers["setting"] == "episodic"]
    blocks = comparisons(rows, run.validation_of("episodic"), Links(run.cells_of("episodic"), ""))
    shown, compared = ComparePanel(runs), 0
    by_label = {style_of(name).label: name for name in rows["condition"].unique()}
    for block in blocks:
        for line in block["lines"]:
            shown.select("whole", "episodic", by_label[line["name"]], by_label[block["rival"]], regime=block["regime"])
            reported = [line[name] for name in (*FIRST, "only_a", "only_b", "p", "p_mcnemar", "p_mid", "harmed", "needed")]
            assert numbers_of(shown) == [None if value == "–" and number == 3 else value for number, value in enumerate(reported)]
            assert shown.result.difference == line["value"] and shown.result.p_permutation == line["p_value"]
            compared += 1
    assert compared > 8 and {block["regime"] for block in blocks} == {"immediate", "delayed"}


def test_the_questions_are_those_on_which_they_differ(panel):
    result = panel.result
    assert len(panel.table.rows) == result.only_a + result.only_b > 0
    kept = {}
    for who in ("a", "b", "all"):
        panel.filters["who"].value = who
        kept[who] = len(panel.table.rows)
        if who in "ab":
            assert all((row["a"], row["b"]) == (who == "a", who == "b") for row in panel.table.rows)
    assert kept == {"a": result.only_a, "b": result.only_b, "all": result.n}


def test_rungs_and_kinds_filter(panel):
    panel.filters["who"].value = "all"
    for name in ("rung", "kind"):
        choice = panel.filters[name].options[1][1]
        panel.filters[name].value = choice
        assert panel.table.rows and {row[name] for row in panel.table.rows} == {choice}
        panel.filters[name].value = ""
    assert [value for _, value in panel.filters["rung"].options] == ["", "exact", "partial", "paraphrase", "noisy"]


def test_a_question_shows_both_sides_and_links_to_their_notebooks(panel, runs):
    panel.filters["who"].value = "b"
    row = panel.table.rows[0]
    panel.table.selected = row["id"]
    text = panel._item.value
    said = "memory/hei_nw said &lt;i&gt;so&lt;/i&gt;"
    for part in ("Where did", "&lt;b&gt;nobody&lt;/b&gt;", row["gold"], said, "(0.5)", "met a friend at"):
        assert part in text, part
    links = re.findall(r'href="(.*?)"', text)
    assert len(links) == 2 and all(link.startswith("../executed/whole/") for link in links)
    assert all(os.path.isfile(os.path.normpath(runs.parent / "notebooks" / link)) for link in links)
    assert "hei_nw" in links[0] and "rag_bm25" in links[1] and row["id"].split("/")[0] in links[0]
    assert text in panel.html() and head(panel) in panel.html()
    panel.filters["who"].value = "a"
    assert panel._item.value == ""


def test_what_is_chosen_before_decides_what_is_offered(panel):
    panel.fields["suite"].value = "semantic"
    assert [value for _, value in panel.fields["a"].options] == [RAG]
    assert "rag_bm25 is the only condition here;" in head(panel) and panel.table.rows == []
    panel.fields["suite"].value = "episodic"
    panel.fields["a"].value = SPARSE
    panel.fields["b"].value = RAG
    due = {"run": "whole", "model": "hippo-tiny", "suite": "episodic", "regime": "delayed", "a": SPARSE, "b": RAG}
    assert {name: panel[name] for name in due} == due
    assert panel.result.mean_a == 0.6


def test_a_window_is_compared_in_its_own_regime(panel):
    panel.select("whole", "episodic", SPAN, RAG, regime="immediate")
    there = panel.result.mean_a
    panel.select("whole", "episodic", SPAN, RAG, regime="delayed")
    assert there > 0.7 > 0.3 > panel.result.mean_a
    panel.select("whole", "episodic", MEMORY, RAG, regime="immediate")
    assert "choose another" in head(panel) and panel.result is None


def test_a_selection_with_a_question(panel):
    panel.select("whole", a=SPARSE, b=MEMORY, item="2025/test-00000/q0")
    assert "2025/test-00000/q0" in panel._item.value and "no_sparsity" in panel._item.value


@pytest.mark.parametrize(
    "names", [{"run": "none"}, {"suite": "none"}, {"a": "none"}, {"model": "none"}, {"regime": "none"}], ids=lambda names: next(iter(names))
)
def test_an_unknown_name_is_said_with_the_legal_ones(panel, names):
    with pytest.raises(LabError, match="'none'; legal: "):
        panel.select(**{"run": "whole", **names})


@pytest.mark.parametrize(
    ("run", "message"),
    [("alone", "only condition"), ("empty", "no answers yet"), ("damaged", "meta.json was changed"), ("torn", "metrics.csv was changed")],
)
def test_a_run_that_cannot_be_shown_is_a_line(panel, run, message):
    panel.fields["run"].value = run
    assert message in head(panel) and head(panel).count("<p") == 1 and panel.result is None
    assert panel._below.layout.display == "none" and message in panel.html()
    panel.fields["run"].value = "whole"
    assert panel.result is not None and panel._below.layout.display == ""


@pytest.mark.parametrize("make", [ComparePanel, AblatePanel])
def test_without_runs_it_says_so(tmp_path, make):
    assert "make grid" in head(make(tmp_path / "executed"))


def test_only_the_rows_of_the_two_are_read(tmp_path):
    for preset in (RAG, "baselines/rag_dense", "baselines/rag_hybrid"):
        record = add_record(tmp_path / "run", "episodic", preset, "delayed")
    (record / "metrics.csv").unlink()
    read_index.cache_clear()
    shown = ComparePanel(tmp_path)
    shown.select("run", a=RAG, b="baselines/rag_dense")
    assert shown.result.n == 50
    add_record(tmp_path / "run", "episodic", MEMORY, "delayed")
    shown.refresh()
    assert MEMORY in [value for _, value in shown.fields["a"].options]
