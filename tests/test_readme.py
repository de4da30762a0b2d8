"""The README quotes only what the reference reports say, and names only what exists."""

import re

import pytest

from hippo_core.files import root

README = (root() / "README.md").read_text(encoding="utf-8")
REFERENCE = root() / "reports" / "reference"


def test_every_row_of_results_stands_in_a_reference_report():
    told = "\n".join(path.read_text(encoding="utf-8") for path in sorted(REFERENCE.rglob("*.md")))
    quoted = README.split("## How it went")[1].split("\n## ")[0]
    rows = [line for line in quoted.splitlines() if line.startswith("|") and not set(line) <= set("|-: ")]
    assert len(rows) > 5
    for row in rows:
        assert row in told, row


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_links_lead_somewhere(link):
    assert (root() / link).exists()


def test_every_make_target_it_names_exists():
    makefile = (root() / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"make ([a-z][a-z-]+)", README.replace("make git", ""))):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
