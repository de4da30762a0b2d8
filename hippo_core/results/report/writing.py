"""The report of a run: one HTML page that needs no network, markdown beside it, and the verdicts. Experiments bring sections of their
tables, or pages of their own.

    out/index.html, index.md         the report
    out/found.md                     what the run found in a few sentences
    out/criteria.json                every success criterion with its verdict, and what may say nothing
    out/figures/*.png                the figures of sections

The same records give the same bytes: nothing here depends on the clock or on where the run lies.
"""

import base64
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from hippo_core.errors import LabError
from hippo_core.files import remove_made, write_text
from hippo_core.results.criteria import TableRows, Verdict, judge_tables, load_criteria, write_criteria
from hippo_core.results.records import damaged, records_with
from hippo_core.results.report import sections, verdicts
from hippo_core.results.report.pages import Templates, write_pictures
from hippo_core.results.report.sections import Section
from hippo_core.results.verdicts import by_group, counted
from hippo_core.spoken import number_of

MADE = ("items", "figures")  # folders of an earlier report that are made anew
TEMPLATES = Templates()


@dataclass(frozen=True)
class ExperimentGroup:
    """What an experiment with tables of its own brings to a report."""

    experiment: str
    tables: Sequence[TableRows]
    sections: Sequence[Section]


@dataclass(frozen=True)
class PageBlock:
    """A stretch of the report's page as HTML and as markdown. `links`: its part of the navigation, (anchor, title) each; without an anchor
    a title is a word between links."""

    links: Sequence[tuple[str, str]] = ()
    html: str = ""
    markdown: str = ""


@dataclass(frozen=True)
class PagePart:
    """What experiments with pages of their own bring to the report's page.

    Args:
        facts: the run in a sentence, for the head of the page.
        findings: what the run found, as markdown.
        before, after: what stands before and after the sections of other experiments.
        verdicts: on their records.
        invalid: what of their records may say nothing and why, in sentences.
    """

    facts: str
    findings: str
    before: PageBlock = PageBlock()
    after: PageBlock = PageBlock()
    verdicts: Sequence[Verdict] = ()
    invalid: Sequence[str] = ()


# Writes pages of a run (first) below a report's folder; nothing where it has no such records.
Pages = Callable[[Path, Path], Sequence[PagePart]]


def write_report(run_folder: Path, out: Path, groups: Sequence[ExperimentGroup] = (), pages: Sequence[Pages] = ()) -> Path:
    """Write the report of `run_folder` to `out`, in the place of an earlier one, and return the path of its HTML page. LabError where the
    run holds neither experiments with sections (`groups`) nor with `pages`, or where `out` lies inside the run."""
    if out.resolve().is_relative_to(run_folder.resolve()):
        raise LabError(f"a report cannot lie among the records: {out} is inside {run_folder}; name another folder")
    if not run_folder.is_dir():
        raise LabError(f"no run at {run_folder}; run a grid first: make grid")
    for name in MADE:
        remove_made(out / name)
    parts = [part for write in pages for part in write(run_folder, out)]
    if not parts and not groups:
        raise LabError(f"no finished record with rows at {run_folder}; run a grid first: make grid")
    of_tables, extra = _written_groups(groups, out)
    parts = parts or [_of_sections(run_folder, out, extra)]
    facts = " ".join(part.facts for part in parts)
    judged = [*(verdict for part in parts for verdict in part.verdicts), *of_tables]
    counts = by_group(map(vars, judged))
    words = {"run": run_folder.name, "facts": facts, "parts": parts, "extra": extra, "counts": counts, "left_out": damaged(run_folder)}
    write_criteria(out / "criteria.json", judged, [sentence for part in parts for sentence in part.invalid])
    write_text(out / "found.md", "".join(part.findings for part in parts))
    write_text(out / "index.md", TEMPLATES.markdown("page.md.j2", **words))
    write_text(out / "index.html", TEMPLATES.html("page.html.j2", **words))
    return out / "index.html"


def _written_groups(groups: Sequence[ExperimentGroup], out: Path) -> tuple[list[Verdict], dict[str, Any]]:
    """The verdicts on experiments' tables, and what the templates show of these experiments; the pictures are written."""
    judged = judge_tables(load_criteria(), [table for group in groups for table in group.tables])
    shown = []
    for number, section in enumerate(section for group in groups for section in group.sections):
        words = sections.view(section, number + 1)
        picture = section.figure or b""
        write_pictures(out, {words["figure"]: picture} if picture else {})
        shown.append(words | {"data": base64.b64encode(picture).decode()})
    rows = [list(own) for _, own in groupby(shown, itemgetter("group"))]
    blocks = [(f"group-{own[0]['slug']}", own[0]["group"], own) for own in rows]
    extra = {"sections": shown, "blocks": blocks, "verdicts": verdicts.of_tables(judged)}
    return judged, extra | {"counted": counted(verdict.verdict for verdict in judged)}


def _of_sections(run_folder: Path, out: Path, extra: dict[str, Any]) -> PagePart:
    """What stands around the sections of a run where no experiment has pages of its own: the list of its records."""
    cells = [record.relative_to(run_folder).as_posix() for record in records_with(run_folder, dry_run=True)]
    words = {"records": Path(os.path.relpath(run_folder, out)).as_posix(), "cells": cells}
    records = PageBlock([("records", "Records")], TEMPLATES.html("records.html.j2", **words), TEMPLATES.markdown("records.md.j2", **words))
    findings = [finding for section in extra["sections"] for finding in section["findings"]]
    sentences = dict.fromkeys(findings or [section["sentence"] for section in extra["sections"]])
    items = "\n".join(f"- {sentence}" for sentence in sentences if sentence)
    judged = [("table-verdicts", "Verdicts")] if extra["verdicts"] else []
    return PagePart(f"{number_of(len(cells), 'record')}.", f"## What this run found\n\n{items}\n", before=PageBlock(judged), after=records)
