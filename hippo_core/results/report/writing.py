"""The report of a run: one HTML page that needs no network, markdown beside it, figures, verdicts, and the items behind every number.

    out/index.html, index.md         the report
    out/found.md                     what the run found in three sentences, and its conditions in words
    out/criteria.json                every success criterion with its verdict
    out/rows.csv, or rows.csv.gz     the answers summed by world, from which the tables of scores can be made again
    out/<setting>/summary.md         tables and claims of one setting
    out/figures/*.png                the figures, with their titles
    out/items/*.html                 the items of each cell, and of each setting under all conditions

The same records give the same bytes: nothing here depends on the clock or on where the run lies.
"""

import base64
import os
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from hippo_core.files import LabError, write_text
from hippo_core.results.criteria import TableRows, Verdict, judge, judge_tables, load_criteria, write_criteria
from hippo_core.results.records import records_of, records_with
from hippo_core.results.report import found, items, overview, sections, verdicts, views, warnings
from hippo_core.results.report.pages import Links, html, markdown, slug
from hippo_core.results.report.rows import write_rows_of
from hippo_core.results.report.runs import Run, load_run, not_listed
from hippo_core.results.report.sections import Section
from hippo_core.results.report.telemetry import telemetry

MADE = ("items", "figures")
Views = list[dict[str, Any]]


@dataclass(frozen=True)
class Group:
    """What an experiment with tables of its own brings to a report."""

    experiment: str
    tables: Sequence[TableRows]
    sections: Sequence[Section]


def write_report(run_folder: Path, out: Path, groups: Sequence[Group] = ()) -> Path:
    """Write the report of `run_folder` to `out`, in the place of an earlier one, and return the path of its HTML page. `groups`: what the
    experiments of the run bring whose rows are not answers. LabError where the run holds no finished record with test rows and there are
    none of these, or where `out` lies inside the run."""
    if out.resolve().is_relative_to(run_folder.resolve()):
        raise LabError(f"a report cannot lie among the records: {out} is inside {run_folder}; name another folder")
    for name in MADE:
        shutil.rmtree(out / name, ignore_errors=True)
    of_tables, extra = _written_groups(groups, out)
    if groups and not records_of(run_folder, split=None, dry_run=True):
        records = [record.relative_to(run_folder).as_posix() for record in records_with(run_folder, dry_run=True)]
        words = {"run": run_folder.name, "records": Path(os.path.relpath(run_folder, out)).as_posix(), "cells": records, "extra": extra}
        write_criteria(out / "criteria.json", of_tables)
        write_text(out / "found.md", "## What this run found\n\n" + "\n".join(f"- {one['sentence']}" for one in extra["sections"]) + "\n")
        write_text(out / "index.md", markdown("tables.md.j2", **words))
        write_text(out / "index.html", html("tables.html.j2", **words))
        return out / "index.html"
    run = load_run(run_folder)
    links = {name: Links(run.cells_of(name), f"{slug(name)}.html") for name in run.settings}
    judged, swept, settings = _judged_and_written(run, links, out)
    words = _words(run, judged, links, settings, out) | {"sweeps": swept, "found": _found(run, judged, out), "extra": extra}
    write_criteria(out / "criteria.json", [*judged, *of_tables])
    write_rows_of(run, out)
    write_text(out / "found.md", markdown("found.md.j2", **words))
    write_text(out / "index.md", markdown("index.md.j2", **words))
    write_text(out / "index.html", html("report.html.j2", **words))
    return out / "index.html"


def _written_groups(groups: Sequence[Group], out: Path) -> tuple[list[Verdict], dict[str, Any]]:
    """The verdicts on experiments' tables, and what the templates show of these experiments; the pictures are written."""
    judged = judge_tables(load_criteria(), [table for group in groups for table in group.tables])
    shown = []
    for number, section in enumerate(section for group in groups for section in group.sections):
        words, pictures = sections.view(section, number + 1)
        _write_pictures(out, pictures)
        data = {file: base64.b64encode(picture).decode() for file, picture in pictures.items()}
        shown.append(words | {"data": data.get(words["figure"], "")})
    return judged, {"sections": shown, "verdicts": verdicts.of_tables(judged)}


def verdicts_of(run: Run) -> list[Verdict]:
    """Every success criterion judged on the run; its validation worlds choose the best rag, and a claim that rests on too few worlds is
    excused only where that was said before the run."""
    return judge(load_criteria(), run.numbers, run.validation, run.declared)


def _judged_and_written(run: Run, links: dict[str, Links], out: Path) -> tuple[list[Verdict], Views, Views]:
    """The verdicts, the sweeps, and each setting; what they show is written. As many at a time as there are cores, in processes forked
    from this one: they find the rows in memory."""
    jobs = min(len(run.settings) + 2, os.cpu_count() or 1)
    with ProcessPoolExecutor(jobs, get_context("fork"), _SHARED.update, ({"run": run, "links": links, "out": out},)) as pool:
        judged, swept = pool.submit(_judge), pool.submit(_write_sweeps)
        written = list(pool.map(_write_setting, run.settings))
        return judged.result(), swept.result(), written


_SHARED: dict[str, Any] = {}  # what a forked process was given


def _judge() -> list[Verdict]:
    return verdicts_of(_SHARED["run"])


def _write_sweeps() -> list[dict[str, Any]]:
    sweep_views, pictures = views.sweeps(_SHARED["run"])
    _write_pictures(_SHARED["out"], pictures)
    return sweep_views


def _write_pictures(out: Path, pictures: Mapping[str, bytes]) -> None:
    for file, data in pictures.items():
        (out / file).parent.mkdir(parents=True, exist_ok=True)
        (out / file).write_bytes(data)


def _write_setting(name: str) -> dict[str, Any]:
    run, links, out = _SHARED["run"], _SHARED["links"][name], _SHARED["out"]
    view, pictures = views.setting(run, name, links)
    _write_pictures(out, pictures)
    for file, text in items.pages(run, name, view["slug"], out):
        _write(out / "items" / file, text)
    write_text(out / view["folder"] / "summary.md", markdown("summary.md.j2", run=run.folder.name, one=view))
    return view


def _found(run: Run, judged: list[Verdict], out: Path) -> dict[str, Any]:
    """The first screen: for each model its sentences, the figure where there is one, and the conditions in words."""
    drawn = found.picture(run)
    if drawn:
        _write_pictures(out, {found.FILE: drawn[1]})
    return {
        "parts": [{"model": model, "sentences": found.sentences(run, model, judged)} for model in run.models],
        "figure": views.figure_view(found.FILE, "found", drawn[0], found.CAPTION, drawn[1]) if drawn else None,
        "legend": found.legend(run),
    }


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def _words(run: Run, judged: list[Verdict], links: dict[str, Links], settings: list[dict[str, Any]], out: Path) -> dict[str, Any]:
    return {
        "run": run.folder.name,
        "facts": overview.facts(run),
        "records": Path(os.path.relpath(run.folder, out)).as_posix(),
        "failed": run.unfinished,
        "settings": settings,
        "models": run.models,
        "glance": overview.glance(run, links),
        "glance_validation": overview.glance_validation(run),
        "verdicts": verdicts.by_model(run, judged, links),
        "telemetry": telemetry(run),
        "not_measured": warnings.not_measured(run),
        "versions": overview.versions(run),
        "cells": overview.cells(run),
        "not_listed": not_listed(run.cells),
    }
