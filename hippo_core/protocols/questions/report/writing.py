"""The pages of what asks questions about suites: tables, claims and figures of each setting, and the items behind every number.

out/rows.csv, or rows.csv.gz     the answers summed by world, from which the tables of scores can be made again
out/<setting>/summary.md         tables and claims of one setting
out/figures/*.png                the figures, with their titles
out/items/*.html                 the items of each cell, and of each setting under all conditions
"""

import gzip
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hippo_core.files import made_folder, write_bytes, write_text
from hippo_core.protocols.questions.report import findings, gates, items, overview, verdicts, views, warnings
from hippo_core.protocols.questions.report.contract import valid, violation_messages
from hippo_core.protocols.questions.report.runs import TEMPLATES, Links, Run, load_run, not_listed
from hippo_core.protocols.questions.report.tables import FURTHER
from hippo_core.protocols.questions.report.telemetry import telemetry
from hippo_core.results.criteria import Verdict, judge, load_criteria
from hippo_core.results.frames import Frame
from hippo_core.results.policies import ABSTAINED, SCORES
from hippo_core.results.records import records_of
from hippo_core.results.report import PageBlock, PagePart
from hippo_core.results.report.pages import slug
from hippo_core.results.summaries import ANSWERED_BY

Views = list[dict[str, Any]]
AFTER = [("not-measured", "Not measured"), ("versions", "Versions")]
KEYS = ["model", "suite", "place", "setting", "split", "condition", "regime", "seed", "world", "rung", "kind", "slices", "control"]
SHARES = ["score", *SCORES, "abstained", *ABSTAINED, "em_raw", "em_norm", "f1", "success", "recall_1", "recall_5"]  # 0 to 1 for each answer
RETRIEVAL = ["recall_2", "recall_20", "all_gold_5", "answer_recall_1", "answer_recall_5", "n_shown", "retrieval_ms"]
COSTS = ["prompt_tokens", "generated_tokens", "computed_tokens", "once_tokens", "latency_ms"]
MEASURES = [*SHARES, *RETRIEVAL, "chance", *COSTS, *ANSWERED_BY, *FURTHER]
PLAIN, PACKED = "rows.csv", "rows.csv.gz"
LARGE = 300_000  # bytes from which on it is packed


def write_pages(run_folder: Path, out: Path) -> list[PagePart]:
    """Write the pages of a run's answers below `out`; what of them stands on the report's page. Empty where the run holds no answers."""
    if not records_of(run_folder, split=None, dry_run=True):
        return []
    run = load_run(run_folder)
    links = {name: Links(run.cells_of(name), f"{slug(name)}.html") for name in run.settings}
    judged, swept, settings = _judged_and_written(run, links, out)
    words = _words(run, judged, links, settings, swept, out)
    findings_text = TEMPLATES.markdown("found.md.j2", **words)
    before, after = _block("before", _navigation(words), words), _block("after", AFTER, words)
    return [PagePart(words["facts"], findings_text, before, after, judged, violation_messages(run.invalid))]


def _block(name: str, links: list[tuple[str, str]], words: dict[str, Any]) -> PageBlock:
    return PageBlock(links, TEMPLATES.html(f"{name}.html.j2", **words), TEMPLATES.markdown(f"{name}.md.j2", **words))


def _navigation(words: dict[str, Any]) -> list[tuple[str, str]]:
    """The links to what is on the page; of several models the settings stand behind the model's name."""
    links = [("found", "Found"), ("verdicts", "Verdicts"), ("glance", "At a glance")]
    links += [("sweeps", "Sweeps")] if words["sweeps"] else []
    model = ""
    for setting in words["settings"]:
        if len(words["models"]) > 1 and setting["model"] != model:
            links.append(("", model := setting["model"]))
        links.append((setting["slug"], setting["short"]))
    return [*links, *([("telemetry", "Memory at work")] if any(words["telemetry"].values()) else [])]


def verdicts_of(run: Run) -> list[Verdict]:
    """Every success criterion judged on the run; its validation worlds choose the best rag, and a claim that rests on too few worlds is
    excused only where that was said before the run. No verdict rests on a cell that breaks the contract, and none on validation worlds."""
    if run.split == "val":
        return []
    return judge(load_criteria(), valid(run.numbers), valid(run.validation), run.declared)


def _judged_and_written(run: Run, links: dict[str, Links], out: Path) -> tuple[list[Verdict], Views, Views]:
    """The verdicts, the sweeps, and each setting; what they show is written, and all rows. As many at a time as there are cores, in
    processes forked from this one: they find the rows in memory."""
    jobs = min(len(run.settings) + 3, os.cpu_count() or 1)
    with ProcessPoolExecutor(jobs, get_context("fork"), _RUNS.append, (run,)) as pool:
        rows = pool.submit(_of_run, write_rows_of, out)
        judged, swept = pool.submit(_of_run, verdicts_of), pool.submit(_of_run, views.sweeps, out)
        written = [pool.submit(_of_run, _write_setting, name, links[name], out) for name in run.settings]
        rows.result()
        return judged.result(), swept.result(), [future.result() for future in written]


_RUNS: list[Run] = []  # the run that a forked process was given


def _of_run(do: Callable[..., Any], *more: Any) -> Any:
    return do(_RUNS[0], *more)


def _write_setting(run: Run, name: str, links: Links, out: Path) -> dict[str, Any]:
    view = views.setting(run, name, links, out)
    for file, text in items.pages(run, name, view["slug"], out):
        (made_folder(out / "items") / file).write_text(text, encoding="utf-8", newline="\n")
    write_text(out / view["folder"] / "summary.md", TEMPLATES.markdown("summary.md.j2", run=run.folder.name, one=view))
    return view


def _words(run: Run, judged: list[Verdict], links: dict[str, Links], settings: Views, swept: Views, out: Path) -> dict[str, Any]:
    drawn = findings.picture(run)
    return {
        "found": {  # the first screen: for each model its sentences, the figure where there is one, and the conditions in words
            "parts": [{"model": model, "sentences": findings.sentences(run, model, judged)} for model in run.models],
            "figure": views.figure_view(out, findings.FILE, "found", drawn[0], findings.CAPTION, drawn[1]) if drawn else None,
            "legend": findings.legend(run),
        },
        "sweeps": swept,
        "run": run.folder.name,
        "facts": overview.facts(run),
        "records": Path(os.path.relpath(run.folder, out)).as_posix(),
        "failed": run.unfinished,
        "settings": settings,
        "models": run.models,
        "glance": overview.preview(run, links),
        "glance_validation": overview.preview_validation(run),
        "verdicts": verdicts.by_model(run, judged, links),
        "telemetry": telemetry(run),
        "gate_columns": gates.COLUMNS,
        "not_measured": warnings.not_measured(run),
        "versions": overview.versions(run),
        "cells": overview.cells(run),
        "not_listed": not_listed(run.cells),
    }


def write_rows_of(run: Run, out: Path) -> Path:
    """Write the table of a run's rows beside its report, packed where it is large; the same rows give the same bytes."""
    sums = _summed(pd.concat([run.numbers, run.validation]) if len(run.validation) else run.numbers)
    text = sums.to_csv(index=False, float_format="%.12g", lineterminator="\n").encode()
    for name in (PLAIN, PACKED):
        (out / name).unlink(missing_ok=True)
    path = out / (PACKED if len(text) > LARGE else PLAIN)
    write_bytes(path, gzip.compress(text, mtime=0) if path.name == PACKED else text)
    return path


def _summed(rows: Frame) -> Frame:
    """A line for all answers that agree in KEYS and in what was measured, in the order of the keys."""
    rows = rows.assign(control=rows.get("control", "")).reindex(columns=[*KEYS, *MEASURES])
    measured = rows[MEASURES].notna().to_numpy() @ (2 ** np.arange(len(MEASURES)))
    groups = rows.groupby([*KEYS, measured], sort=True)
    sums = groups[MEASURES].sum(min_count=1)
    sums.insert(0, "items", groups.size())
    return sums.reset_index(KEYS).reset_index(drop=True)
