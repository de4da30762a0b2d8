"""The README quotes only what the reference reports say, these say only what their rows give, and it names only what exists."""

import re

import pytest

from hippo_core.files import root
from hippo_core.results.report.rows import contradicted, read_run, rows_file, tables_of

README = (root() / "README.md").read_text(encoding="utf-8")
REFERENCE = root() / "reports" / "reference"
REPORTS = sorted(path for path in REFERENCE.iterdir() if path.is_dir())
WITHOUT_ROWS = {  # written before reports had a table of rows beside them: a report that is written again leaves this list
    "episodic",
    "episodic-real",
    "episodic-real-minilm",
    "episodic-real-rungs",
    "episodic-sweeps",
    "real",
}


def test_every_reference_report_has_its_rows_beside_it():
    assert {report.name for report in REPORTS if rows_file(report) is None} == WITHOUT_ROWS


def test_a_reference_report_says_what_its_rows_give():
    assert {report.name: found for report in REPORTS if rows_file(report) and (found := contradicted(report))} == {}


def test_every_row_of_results_stands_in_a_reference_report():
    told = "\n".join(map(tables, REPORTS))
    quoted = README.split("## How it went")[1].split("\n## ")[0]
    rows = [line for line in quoted.splitlines() if line.startswith("|") and not set(line) <= set("|-: ")]
    assert len(rows) > 5
    for row in rows:
        assert row in told, row


def tables(report):
    """The tables of a report: those that its rows give; where there are none, what it says."""
    if rows_file(report):
        return "\n".join(table for _, table in tables_of(read_run(report)))
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(report.rglob("*.md")))


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_links_lead_somewhere(link):
    assert (root() / link).exists()


def test_every_make_target_it_names_exists():
    makefile = (root() / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"make ([a-z][a-z-]+)", README.replace("make git", ""))):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
