"""The pages behind the numbers: every item of a cell with its prompt and answer, and every item of a setting under all conditions."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from hippo_core.protocols.questions.report.runs import TEMPLATES, RecordView, Run, not_listed
from hippo_core.protocols.questions.report.tables import CONDITION_KEY, condition_keys
from hippo_core.results.figures.palette import style_of
from hippo_core.results.formatting import NONE, count, missing, share
from hippo_core.results.frames import Frame
from hippo_core.results.summaries import order_of

SHOWN = ["item_id", "rung", "kind", "question", "prompt", "answer", "pred", "flags", "score", "f1", "recall_1", "prompt_tokens"]
RECALLED, READ = "recalled_texts", "read"  # columns that older records lack


def pages(run: Run, setting: str, slug: str, out: Path) -> Iterator[tuple[str, str]]:
    """(file name, text) of the setting's page and of each of its listed cells' pages; `out` is the report's folder, for links to the
    records."""
    cells = [cell for cell in run.cells if cell.setting == setting and cell.listed]
    rows = pd.concat([run.rows, run.validation]) if len(run.validation) else run.rows
    rows = rows[rows["record"].isin([cell.record for cell in cells])]
    by_record = dict(tuple(rows.groupby("record", sort=False)))
    for cell in cells:
        folder = os.path.relpath(run.folder / cell.record, out / "items")
        yield cell.page, _cell_page(cell, by_record[cell.record], slug, Path(folder).as_posix())
    yield f"{slug}.html", _pairs_page(run, setting, slug, rows[rows["split"] == "test"])


def _cell_page(cell: RecordView, rows: Frame, slug: str, record: str) -> str:
    split = "" if cell.split == "test" else f", {cell.split} worlds"
    return TEMPLATES.html(
        "items.html.j2",
        title=f"{cell.setting}: {style_of(cell.condition).label}, {cell.regime}{split}",
        facts=f"{cell.model}, n={cell.n}, seed {cell.seed}. Chance {share(rows['chance'].mean())}.",
        record=record,
        slug=slug,
        **_choices(rows),
        recalls=RECALLED in rows and bool(rows[RECALLED].astype(bool).any()),
        ranks=bool(rows["recall_1"].notna().any()),
        items=[_item(row) for row in rows.reindex(columns=[*SHOWN, RECALLED, READ, "composed_by"]).to_dict("records")],
    )


def _choices(rows: Frame) -> dict[str, list[str]]:
    """What the items of a page can be chosen by."""
    return {f"{by}s": [str(value) for value in order_of(rows, by) if value != ""] for by in ("rung", "kind")}


def _item(row: dict[str, Any]) -> dict[str, Any]:
    verdict = verdict_of(row["score"])
    return {
        "id": row["item_id"],
        **{name: row[name] for name in ("rung", "kind", "question", "prompt", "answer")},
        "recalled": recalled(row[RECALLED]),
        "read": read(row[READ]),
        "composed_by": row["composed_by"],
        "pred": shown_text(row["pred"]),
        "flags": row["flags"].replace(";", ", "),
        "verdict": verdict,
        "mark": MARKS[verdict],
        "score": f"{row['score']:.0f}" if row["score"] in (0, 1) else share(row["score"]),
        "f1": share(row["f1"]),
        "recall": share(row["recall_1"]),
        "tokens": count(row["prompt_tokens"]),
    }


def recalled(texts: object) -> list[dict[str, str]]:
    """What was recalled, best first, each with its score where that is known."""
    if not isinstance(texts, str) or not texts:
        return []
    return [{"text": text, "score": "" if score is None else f"{score:.3g}"} for text, score in json.loads(texts)]


def read(parts: object) -> str:
    """What the model read of the item's own, a part a line, with what a program wrote."""
    if not isinstance(parts, str) or not parts:
        return ""
    return "\n".join(f"{text}{' (written by a program)' if by == 'program' else ''}" for text, by in json.loads(parts))


MARKS = {"1": "✓", "0": "✗", "": NONE}
CSS_CLASSES = {"1": "right", "0": "wrong", "": "quiet"}


def verdict_of(score: float) -> str:
    """ "1" for a right answer, "0" for a wrong one, "" for one that was not scored."""
    return "" if missing(score) else "1" if score >= 0.5 else "0"


def shown_text(text: str) -> str:
    """An answer, which may be empty, as it is shown."""
    return text if text.strip() else "(nothing)"


def _pairs_page(run: Run, setting: str, slug: str, rows: Frame) -> str:
    columns = {key: f"{style_of(key[0]).label}, {key[1]}" for key in condition_keys(rows)}
    cells = run.cells_of(setting)
    where = {cell.record: cell.page for cell in cells}
    answers = {key: _answers(group, where) for key, group in rows.groupby(CONDITION_KEY, sort=False)}
    several = rows["seed"].nunique() > 1
    items = [
        {
            "id": f"{row['seed']}/{row['item_id']}" if several else row["item_id"],
            **{name: row[name] for name in ("rung", "kind", "question", "answer")},
            "cells": [{"column": column, **answers[key].get(row["key"], _NOTHING)} for key, column in columns.items()],
        }
        for row in rows.drop_duplicates("key").to_dict("records")
    ]
    return TEMPLATES.html(
        "pairs.html.j2",
        title=f"{setting}: all items",
        slug=slug,
        **_choices(rows),
        columns=list(columns.values()),
        items=items,
        not_listed=not_listed(cells),
    )


_NOTHING = {"score": "", "look": "quiet", "mark": NONE, "pred": "", "link": ""}


def _answers(rows: Frame, where: dict[str, str]) -> dict[str, dict[str, str]]:
    answers = {}
    for row in rows[["key", "item_id", "record", "score", "pred"]].to_dict("records"):
        verdict = verdict_of(row["score"])
        answers[row["key"]] = {
            "score": "" if missing(row["score"]) else f"{row['score']:g}",
            "look": CSS_CLASSES[verdict],
            "mark": MARKS[verdict],
            "pred": "" if verdict == "1" else shown_text(row["pred"]),
            "link": f"{where[row['record']]}#{row['item_id']}",
        }
    return answers
