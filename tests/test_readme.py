"""README and docs quote only what the reference reports say, these say only what their rows give, and they name only what exists."""

import re

import pandas as pd
import pytest

from hippo_core.experiments import OURS
from hippo_core.experiments.consolidation.table import TITLES, changes
from hippo_core.files import root
from hippo_core.results.formatting import span
from tests.experiments.asking.report.rows_again import contradicted, read_run, rows_file, tables_of

WRITTEN = sorted((root() / "docs").glob("*.md"))
PAGES = {path: path.read_text(encoding="utf-8") for path in (root() / "README.md", *WRITTEN)}
RESULTS = {"results.md": ""}  # pages with results, and the heading that these stand below
REFERENCE = root() / "reports" / "reference"
REPORTS = sorted(path for path in REFERENCE.iterdir() if path.is_dir())
WITHOUT_ROWS = {  # no report of a run
    "retrieval",  # tables that benchmarks print
    "consolidation",  # a table of its own, compared below
    "sleeps",  # matrices of each cell
    "cache",  # curves; a row for each of 100,000 readings is left out
    "forgetting",  # likewise
    "conversation",  # likewise: what `aggregate` makes of five records
}


def test_every_reference_report_has_its_rows_beside_it():
    assert {report.name for report in REPORTS if rows_file(report) is None} == WITHOUT_ROWS


def test_a_reference_report_says_what_its_rows_give():
    assert {report.name: found for report in REPORTS if rows_file(report) and (found := contradicted(report))} == {}


def test_the_reference_of_consolidation_says_what_its_rows_give():
    page = (REFERENCE / "consolidation/index.md").read_text(encoding="utf-8")
    rows = pd.read_csv(REFERENCE / "consolidation/consolidate.csv.gz", keep_default_na=False, na_values={"score": "", "nats": ""})
    told = ["n", "way", "steps", "wordings", "replay"]
    cells = [cell for _, cell in rows.groupby(told)]
    assert len(cells) == 10
    for cell in cells:
        differences = changes(cell)
        for probe in ("off", "memory", "rag", "longctx"):
            change = differences[probe]["post_1"]
            line = " | ".join(str(cell[name].iloc[0]) for name in told) + f" | {TITLES[probe]} |"
            [shown] = [one for one in page.splitlines() if line in one]
            assert f"| {round(change['difference'], 3):.3g} | {span(change['low'], change['high'])} |" in shown


def test_every_row_of_results_stands_in_a_reference_report():
    reported = "\n".join(map(tables, REPORTS))
    rows = [row for path, text in PAGES.items() if path.name in RESULTS for row in rows_of(text, RESULTS[path.name])]
    assert len(rows) > 5
    assert [row for row in rows if row not in reported] == []


def rows_of(text, heading):
    """The rows of the tables below a heading of a page, or of the whole page where it has no such heading."""
    part = text.split(f"{heading}\n")[1].split("\n## ")[0] if heading and heading in text else "" if heading else text
    return [line for line in part.splitlines() if line.startswith("|") and not set(line) <= set("|-: ")]


def tables(report):
    """The tables of a report: those that its rows give; where there are none, what it says."""
    if rows_file(report):
        return "\n".join(table for _, table in tables_of(read_run(report)))
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(report.rglob("*.md")))


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
