"""README and docs quote only what the reference reports say, these say only what their rows give, and they name only what exists."""

import re

import pandas as pd
import pytest
from PIL import Image

from hippo_core.experiments import OURS
from hippo_core.experiments.consolidation.table import TITLES, changes
from hippo_core.files import LabError, root
from hippo_core.results import quoted
from hippo_core.results.figures.sides import described
from hippo_core.results.formatting import span
from hippo_core.results.quoted import REGION, Quoted, filled, pages, tables
from tests.experiments.asking.report.rows_again import contradicted, rows_file

WRITTEN = sorted((root() / "docs").glob("*.md"))
PAGES = {path: path.read_text(encoding="utf-8") for path in (root() / "README.md", *WRITTEN)}
REFERENCE = root() / "reports" / "reference"
REPORTS = sorted(path for path in REFERENCE.iterdir() if path.is_dir())
WITHOUT_ROWS = {  # no report of a run
    "retrieval",  # tables that benchmarks print
    "consolidation",  # a table of its own, compared below
    "consolidation-seeds",  # likewise
    "sleeps",  # matrices of each cell
    "cache",  # curves; a row for each of 100,000 readings is left out
    "cache-learned",  # likewise
    "cache-real",  # likewise
    "forgetting",  # likewise
    "forgetting-modular",  # likewise
    "paired",  # answers in words, a row a condition and item
    "conversation",  # likewise: what the report makes of five records
    "conversation-full",  # likewise, of four
    "conversation-real",  # likewise, of three
    "locomo",  # means of another's questions
}


def test_every_reference_report_has_its_rows_beside_it():
    assert {report.name for report in REPORTS if rows_file(report) is None} == WITHOUT_ROWS


def test_a_reference_report_says_what_its_rows_give():
    assert {report.name: found for report in REPORTS if rows_file(report) and (found := contradicted(report))} == {}


@pytest.mark.parametrize(
    ("name", "told", "cells"),
    [("consolidation", ["n", "way", "steps", "wordings", "replay"], 10), ("consolidation-seeds", ["n", "seed", "way", "steps"], 3)],
)
def test_a_reference_of_consolidation_says_what_its_rows_give(name, told, cells):
    page = (REFERENCE / name / "index.md").read_text(encoding="utf-8")
    rows = pd.read_csv(REFERENCE / name / "consolidate.csv.gz", keep_default_na=False, na_values={"score": "", "nats": ""})
    found = [cell for _, cell in rows.groupby(told)]
    assert len(found) == cells
    for cell in found:
        differences = changes(cell)
        for probe in ("off", "memory", "rag", "longctx"):
            change = differences[probe]["post_1"]
            line = " | ".join(str(cell[name].iloc[0]) for name in told) + f" | {TITLES[probe]} |"
            [shown] = [one for one in page.splitlines() if line in one]
            assert f"| {round(change['difference'], 3):.3g} | {span(change['low'], change['high'])} |" in shown


def test_every_table_that_is_quoted_is_as_the_references_give_it():
    known = tables()
    assert {path.name for path in pages() if filled(text := path.read_text(encoding="utf-8"), known) != text} == set()
    assert {hit["name"] for text in PAGES.values() for hit in REGION.finditer(text)} == set(known)


def test_the_first_figure_shows_what_its_table_says():
    with Image.open(root() / quoted.FIGURE) as picture:
        assert picture.info["Description"] == described(*quoted.drawn(tables()["readme"]))
    assert quoted.FIGURE in PAGES[root() / "README.md"]


def test_every_table_of_results_is_quoted():
    assert not re.search(r"^\|", REGION.sub("", PAGES[root() / "docs/results.md"]), re.MULTILINE)


def test_a_quoted_table_follows_the_rows_beside_a_report(monkeypatch):
    rows = pd.DataFrame({
        "split": "test", "regime": "delayed", "setting": ["a", "a", "a", "b"], "score": [3.0, 1.0, 2.0, 4.0], "items": 4,
        "condition": ["memory/one", "baselines/rag_a", "baselines/rag_b", "memory/one"],
    })  # fmt: skip
    monkeypatch.setattr(quoted, "_rows", lambda reference: rows)
    sides = {"memory": {"condition": "memory/*"}, "best rag": {"condition": "baselines/rag_*"}}
    rows_of = {"first": {"setting": "a"}, "second": {"setting": "b"}}
    told = Quoted(head="asked", where={"reference": "any"}, columns=sides, rows=rows_of, text={"first": {"memory": "**{}**"}})
    assert list(told.lines())[2:] == ["| first | **0.75** | 0.50 |", "| second | 1.00 | – |"]
    other = Quoted(head="asked", where={"reference": "any"}, columns=sides, rows=rows_of, cells={"second": {"best rag": {"setting": "a"}}})
    assert list(other.lines())[3] == "| second | 1.00 | 0.50 |"


def test_a_quoted_table_says_what_an_answer_costs_and_marks_an_invalid_cell(monkeypatch):
    rows = pd.DataFrame({
        "split": "test", "regime": "delayed", "score": [3.0, 4.0], "items": 4, "n_shown": [4.0, 12.0], "computed_tokens": [200.0, 40.0],
        "latency_ms": [40.0, 4.0], "retrieval_ms": [4.0, float("nan")], "condition": ["memory/one", "memory/two (k=3, INVALID)"],
    })  # fmt: skip
    monkeypatch.setattr(quoted, "_rows", lambda reference: rows)
    columns = {name: {"condition": f"memory/{name}"} for name in ("one", "two (k=3)", "*", "three")}
    text = "{} k={k}, {tokens} tokens, {ms} ms"
    told = Quoted(head="", where={"reference": "any"}, columns=columns, rows={"a": {}}, shown=dict.fromkeys(columns, text))
    said = "0.75 k=1, 50 tokens, 11 ms"
    assert list(told.lines())[2] == f"| a | {said} | INVALID | {said} | – |"


def test_a_quoted_table_says_who_computed_the_answers_where_the_rows_know(monkeypatch):
    counts = {"by_model": [1.0, 4.0], "by_copying": [3.0, 0.0], "by_program": [0.0, 0.0]}
    rows = pd.DataFrame(
        {"split": "test", "regime": "delayed", "score": 3.0, "items": 4, "condition": ["memory/one", "memory/two"], **counts}
    )
    told = Quoted(
        head="asked",
        where={"reference": "any"},
        columns={"the memory": {}, "computed by": {}},
        rows={name: {"condition": f"memory/{name}"} for name in ("one", "two", "three")},
        shown={"computed by": "{by}"},
    )
    monkeypatch.setattr(quoted, "_rows", lambda reference: rows)
    assert list(told.lines())[1:] == [
        "|---|--:|---|",
        "| one | 0.75 | program, model copies 0.75 |",
        "| two | 0.75 | model |",
        "| three | – | – |",
    ]
    monkeypatch.setattr(quoted, "_rows", lambda reference: rows.drop(columns=list(counts)))
    assert list(told.lines()) == ["| asked | the memory |", "|---|--:|", "| one | 0.75 |", "| two | 0.75 |", "| three | – |"]


def test_a_quoted_table_that_no_report_holds_is_refused():
    with pytest.raises(LabError, match=r"unknown table of docs/tables\.yaml 'nothing'; legal: "):
        filled("<!-- table: nothing -->\n<!-- end -->", tables())
    with pytest.raises(LabError, match="has no table that begins with"):
        list(Quoted(head="| nothing |", copied="rivals/index.md").lines())
    with pytest.raises(LabError, match=r"unknown column of rivals/index\.md 'nothing'; legal: .*condition"):
        list(Quoted(head="| condition | episodic |", copied="rivals/index.md", only=["nothing"]).lines())
    with pytest.raises(LabError, match=r"unknown reference 'nothing'; legal: .*rivals"):
        list(Quoted(head="asked", where={"reference": "nothing"}, columns={"a": {}}, rows={"b": {}}).lines())
    with pytest.raises(ValueError, match="expected either copied, or rows and columns"):
        Quoted(head="asked")


LINKS = [(path, link) for path, text in PAGES.items() for link in sorted(set(re.findall(r"\]\(([^)#]+)\)", text)))]


@pytest.mark.parametrize(("path", "link"), LINKS, ids=lambda value: str(value).removeprefix(f"{root()}/"))
def test_links_lead_somewhere(path, link):
    assert link.startswith("https://") or (path.parent / link).exists()


def test_every_make_target_that_is_named_exists():
    makefile = (root() / "Makefile").read_text(encoding="utf-8")
    for path, text in PAGES.items():
        for target in set(re.findall(r"make ([a-z][a-z-]+)", text.replace("make git", ""))):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), (path.name, target)


def test_every_experiment_and_preset_that_is_run_exists():
    for path, text in PAGES.items():
        for name, words in re.findall(r"\.venv/bin/hippo run ([\w.:]+)([^`\n]*)", text):
            assert name in OURS or ":" in name, (path.name, name)
            for preset in re.findall(r"preset=(\S+)", words):
                file = f"params/presets/{preset}.yaml"
                assert (root() / file).is_file() or f"# {file}\n" in text, (path.name, preset)
