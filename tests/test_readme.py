"""README and docs quote only what the reference reports say, these say only what their rows give, and they name only what exists."""

import re
from collections import Counter

import pandas as pd
import pytest
from PIL import Image

from docs import build_tables as quoted
from docs.build_tables import REGION, Quoted, contents, current, filled, pages, tables
from docs.comparison_figure import described
from docs.sentences import number, sentences, tables_named, with_numbers
from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.protocols.base.experiment import names_of_ours
from hippo_core.protocols.consolidation.table import TITLES, changes
from hippo_core.results.formatting import span
from tests.protocols.questions.report.rows_again import contradicted, rows_file
from tests.unbacked import listed, unbacked, unbacked_in

PAGES = {path: path.read_text(encoding="utf-8") for path in pages().values()}
REFERENCE = root() / "reports" / "reference"
REPORTS = sorted(path for path in REFERENCE.iterdir() if path.is_dir())
WITHOUT_ROWS = {  # no report of a run
    "retrieval",  # tables that benchmarks print
    "kernels",  # likewise
    "consolidation",  # a table of its own, compared below
    "consolidation-seeds",  # likewise
    "sleeps",  # matrices of each cell
    "cache",  # curves; a row for each of 100,000 readings is left out
    "cache-learned",  # likewise
    "cache-unseen",  # likewise
    "cache-real",  # likewise
    "forgetting",  # likewise
    "forgetting-modular",  # likewise
    "forgetting-orders",  # likewise
    "paired",  # answers in words, a row a condition and item
    "conversation",  # likewise: what the report makes of five records
    "conversation-full",  # likewise, of four
    "conversation-real",  # likewise, of three
    "locomo",  # means of another's questions
}


def test_every_reference_report_has_its_rows_beside_it():
    assert {report.name for report in REPORTS if rows_file(report) is None} == WITHOUT_ROWS


@pytest.mark.long
def test_a_reference_report_says_what_its_rows_give():
    assert {report.name: wrong for report in REPORTS if rows_file(report) and (wrong := contradicted(report))} == {}


@pytest.mark.parametrize(
    ("name", "columns", "cells"),
    [("consolidation", ["n", "way", "steps", "wordings", "replay"], 10), ("consolidation-seeds", ["n", "seed", "way", "steps"], 3)],
)
def test_a_reference_of_consolidation_says_what_its_rows_give(name, columns, cells):
    page = (REFERENCE / name / "index.md").read_text(encoding="utf-8")
    rows = pd.read_csv(REFERENCE / name / "consolidate.csv.gz", keep_default_na=False, na_values={"score": "", "nats": ""})
    cells_of_page = [cell for _, cell in rows.groupby(columns)]
    assert len(cells_of_page) == cells
    for cell in cells_of_page:
        differences = changes(cell)
        for probe in ("off", "memory", "rag", "longctx"):
            change = differences[probe]["post_1"]
            line = " | ".join(str(cell[name].iloc[0]) for name in columns) + f" | {TITLES[probe]} |"
            [shown] = [line_of_page for line_of_page in page.splitlines() if line in line_of_page]
            assert f"| {round(change['difference'], 3):.3g} | {span(change['low'], change['high'])} |" in shown


def test_every_table_and_number_that_is_quoted_is_as_the_references_give_it():
    assert {name for name, path in pages().items() if current(name) != path.read_text(encoding="utf-8")} == set()
    shown = {hit["name"] for text in PAGES.values() for hit in REGION.finditer(text)}
    assert shown | tables_named(sentences()) == set(tables())


def test_the_lab_book_has_a_table_of_contents():
    assert contents() == (root() / "reports/LOG.md").read_text(encoding="utf-8"), "python -m docs.build_tables"


@pytest.mark.parametrize("page", pages())
def test_a_number_comes_from_a_reference_or_is_listed_as_a_debt(page):
    numbers, debt = Counter(unbacked(page)), Counter(listed()["debt"].get(page, []))
    assert sorted((numbers - debt).elements()) == [], "new numbers: quote them in docs/sentences.yaml, or leave them out"
    assert sorted((debt - numbers).elements()) == [], "no longer in the page: strike them out in tests/unbacked.yaml"


def test_the_first_figure_shows_what_its_table_says():
    with Image.open(root() / quoted.FIGURE) as picture:
        assert picture.info["Description"] == described(*quoted.drawn(tables()["opening"]))
    assert quoted.FIGURE in PAGES[root() / "README.md"]


TABLE = [
    "| way | steps | kept | gone |",
    "|---|--:|--:|---|",
    "| a | 1 | 0.25 [0.10 to 0.40] | −3.50 |",
    "| a, b | 1 | 1.00 | +0.50 |",
    "| a | 2 | 1,250 | 0 |",
]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("t | a | 1 | kept", ".25"),
        ("t | a | 1 | kept #3", ".40"),
        ("t | a | 1 | gone", "−3.50"),
        ("t | a | 1 | gone ±", "3.50"),
        ("t | a, | gone", "+.50"),
        ("t | a | 2 | kept", "1,250"),
        ("t | a, | kept − t | a | 1 | kept", ".75"),
        ("t | a | 1 | kept − t | a, | kept", "−.75"),
    ],
)
def test_a_number_of_a_sentence_is_that_of_its_cell(cell, text):
    assert number(cell, {"t": TABLE}.__getitem__) == text


def test_a_sentence_takes_the_numbers_of_its_cells_and_leaves_the_rest_of_a_page():
    page = "Of .99 it keeps .99\n(.99), not .99."
    quotes = ["it keeps {t | a | 1 | kept} ({t | a | 1 | kept #2}), not"]
    assert with_numbers(page, quotes, {"t": TABLE}.__getitem__) == "Of .99 it keeps .25\n(.10), not .99."


@pytest.mark.parametrize(
    ("page", "sentence", "why"),
    [
        ("It keeps .25.", "It loses {t | a | 1 | kept}.", "expected a page to hold this once, it does 0 times: It loses"),
        ("It keeps .25. It keeps .25.", "It keeps {t | a | 1 | kept}.", "it does 2 times"),
        ("It keeps .25.", "It keeps {t | a | kept}.", r"expected one row of the table t to begin with \['a'\], 2 do"),
        ("It keeps .25.", "It keeps {t | a | 1 | left}.", "unknown column of the table t 'left'; legal: gone, kept, steps, way"),
        ("It keeps .25.", "It keeps {t | a | 1 | kept #4}.", r"expected 4 numbers in the cell .*, it says '0.25 \[0.10 to 0.40\]'"),
    ],
)
def test_a_sentence_that_a_page_or_table_does_not_hold_is_refused(page, sentence, why):
    with pytest.raises(LabError, match=why):
        with_numbers(page, [sentence], {"t": TABLE}.__getitem__)


def test_numbers_that_nothing_generates_are_found():
    text = "It answers .94 (0.90 to 1.00) of 200 questions, 12 % more, in 30 ms and 1,200 tokens: 7 of 12.\n\n| a | 0.50 | **3** |"
    assert unbacked_in(text) == [".94", "0.90", "1.00", "12", "30", "1,200", "7 of 12", "0.50", "3"]


def test_what_is_no_result_is_not_taken_for_one():
    text = (
        "`x=.5` at k=3, a 95% interval, asked at .05, Python 3.11, 2026-11-27, `make models` (176 MB: a model), R@5, smollm2-135m,\n"
        "```\ny = .7\n```\n<!-- table: a -->\n| 0.50 |\n<!-- end -->\n![c](a-0.5.png). Theirs was .74 ([paper](https://x.org/2.5))."
    )
    assert unbacked_in(text) == []


def test_every_table_of_results_is_quoted():
    assert not re.search(r"^\|", REGION.sub("", PAGES[root() / "docs/results.md"]), re.MULTILINE)


def test_a_quoted_table_follows_the_rows_beside_a_report(monkeypatch):
    rows = pd.DataFrame({
        "split": "test", "regime": "delayed", "setting": ["a", "a", "a", "b"], "score": [3.0, 1.0, 2.0, 4.0], "items": 4,
        "condition": ["memory/one", "baselines/rag_a", "baselines/rag_b", "memory/one"],
    })  # fmt: skip
    monkeypatch.setattr(quoted, "_rows", lambda reference: rows)
    columns = {"memory": {"condition": "memory/*"}, "best rag": {"condition": "baselines/rag_*"}}
    rows_of = {"first": {"setting": "a"}, "second": {"setting": "b"}}
    table = Quoted(head="asked", where={"reference": "any"}, columns=columns, rows=rows_of, text={"first": {"memory": "**{}**"}})
    assert list(table.lines())[2:] == ["| first | **0.75** | 0.50 |", "| second | 1.00 | – |"]
    other = Quoted(
        head="asked", where={"reference": "any"}, columns=columns, rows=rows_of, cells={"second": {"best rag": {"setting": "a"}}}
    )
    assert list(other.lines())[3] == "| second | 1.00 | 0.50 |"


def test_a_quoted_table_says_what_an_answer_costs_and_marks_an_invalid_cell(monkeypatch):
    rows = pd.DataFrame({
        "split": "test", "regime": "delayed", "score": [3.0, 4.0], "items": 4, "n_shown": [4.0, 12.0], "computed_tokens": [200.0, 40.0],
        "latency_ms": [40.0, 4.0], "retrieval_ms": [4.0, float("nan")], "condition": ["memory/one", "memory/two (k=3, INVALID)"],
    })  # fmt: skip
    monkeypatch.setattr(quoted, "_rows", lambda reference: rows)
    columns = {name: {"condition": f"memory/{name}"} for name in ("one", "two (k=3)", "*", "three")}
    text = "{} k={k}, {tokens} tokens, {ms} ms"
    table = Quoted(head="", where={"reference": "any"}, columns=columns, rows={"a": {}}, shown=dict.fromkeys(columns, text))
    shown = "0.75 k=1, 50 tokens, 11 ms"
    assert list(table.lines())[2] == f"| a | {shown} | INVALID | {shown} | – |"


def test_a_quoted_table_says_who_computed_the_answers_where_the_rows_know(monkeypatch):
    counts = {"by_model": [1.0, 4.0], "by_copying": [3.0, 0.0], "by_program": [0.0, 0.0]}
    rows = pd.DataFrame(
        {"split": "test", "regime": "delayed", "score": 3.0, "items": 4, "condition": ["memory/one", "memory/two"], **counts}
    )
    conditions = {name: {"condition": f"memory/{name}"} for name in ("one", "two", "three")}
    columns, shown = {"the memory": {}, "computed by": {}}, {"computed by": "{by}"}
    table = Quoted(head="asked", where={"reference": "any"}, columns=columns, rows=conditions, shown=shown)
    monkeypatch.setattr(quoted, "_rows", lambda reference: rows)
    lines = ["| one | 0.75 | program, model copies 0.75 |", "| two | 0.75 | model |", "| three | – | – |"]
    assert list(table.lines())[1:] == ["|---|--:|---|", *lines]
    monkeypatch.setattr(quoted, "_rows", lambda reference: rows.drop(columns=list(counts)))
    assert list(table.lines()) == ["| asked | the memory |", "|---|--:|", "| one | 0.75 |", "| two | 0.75 |", "| three | – |"]


def test_a_copied_table_may_be_the_second_of_its_head_and_show_some_rows():
    seeds = {"copied": "consolidation-seeds/index.md", "head": "| model | n | steps |", "only": ["steps", "questions"]}
    first, second = (list(Quoted(**seeds, under=heading).lines()) for heading in ("## Steps", "## What sleep brings"))
    assert len(first) == 6 and second == [*first[:2], "| 1000 | 150 |"]
    assert list(Quoted(**seeds, having={"steps": "250"}).lines()) == [*first[:2], "| 250 | 100 |"]
    with pytest.raises(LabError, match=r"has no table that begins with .* below '## Nothing'"):
        list(Quoted(**seeds, under="## Nothing").lines())


def test_a_quoted_table_that_no_report_holds_is_refused():
    with pytest.raises(LabError, match=r"unknown table of docs/tables\.yaml 'nothing'; legal: "):
        filled("<!-- table: nothing -->\n<!-- end -->")
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
            assert name in names_of_ours() or ":" in name, (path.name, name)
            for preset in re.findall(r"preset=(\S+)", words):
                file = f"params/presets/{preset}.yaml"
                assert (root() / file).is_file() or f"# {file}\n" in text, (path.name, preset)
