"""What the report says of a run as a whole: the matrix of all scores, what the records are made of, where they lie."""

import json
from collections import Counter
from typing import Any

from hippo_core.protocols.questions.report.runs import Links, Run, natural
from hippo_core.protocols.questions.report.tables import CONDITION_KEY, condition_keys, estimates, named
from hippo_core.results.conditions import ignores_window
from hippo_core.results.figures.palette import style_of
from hippo_core.results.formatting import NONE, listing, share, span
from hippo_core.results.frames import Frame, Row
from hippo_core.spoken import number_of


def preview(run: Run, links: dict[str, Links]) -> list[dict[str, Any]]:
    """For each model the matrix of its settings and conditions, with the tint of each number."""
    rows = run.numbers
    return [_matrix(model, rows[rows["model"] == model], "setting", run.settings_of(model), links) for model in run.models]


def preview_validation(run: Run) -> list[dict[str, Any]]:
    """The same of validation worlds, on which choices are made; a model that was asked nothing there is left out."""
    matrices = []
    for model in run.models:
        rows = run.validation[run.validation["model"] == model]
        names = {name: name.removeprefix(f"{model} · ") for name in sorted(set(rows["place"]), key=natural)}
        matrices += [_matrix(model, rows, "place", names, {})] if len(rows) else []
    return matrices


def _matrix(model: str, rows: Frame, column: str, names: dict[str, str], links: dict[str, Links]) -> dict[str, Any]:
    """The matrix of one model's conditions and settings, which are the values of a column, each with its name."""
    scores = estimates(rows, [column, *CONDITION_KEY])
    lines = []
    for name, regime in condition_keys(rows):
        cells = [_tinted(scores.get((setting, name, regime)), name, regime, links.get(setting)) for setting in names]
        lines.append({**named(name, "" if regime == "delayed" and ignores_window(name) else regime), "cells": cells})
    titles = [name.split(" · ", 1) for name in names.values()]
    columns = [" · ".join([suite.replace("_", " "), *rest]) for suite, *rest in titles]
    chance = [share(rows.loc[rows[column] == setting, "chance"].mean()) for setting in names]
    return {"model": model, "columns": columns, "lines": lines, "chance": chance}


def _tinted(row: Row | None, condition: str, regime: str, links: Links | None) -> dict[str, Any]:
    if row is None:
        return {"em": NONE, "link": "", "interval": "", "tint": ""}
    depth = float(row["mean"]) ** 1.5
    words = f"{span(row['low'], row['high'])}, n = {row['n']:.0f}"
    link = links.items(condition, regime) if links else ""
    return {"em": share(row["mean"]), "link": link, "interval": words, "tint": f"{100 * depth:.0f}%", "dark": depth > 0.55}


def facts(run: Run) -> str:
    """The run in one sentence."""
    rows = run.rows
    notes = " Dry run: five items a cell, for plumbing only." if run.dry else ""
    notes += " Validation worlds only, on which settings are chosen: nothing is judged." if run.split == "val" else ""
    counts = {"record": len(run.cells), "setting": len(run.settings), "condition": rows["condition"].nunique()}
    counted = ", ".join(number_of(count, noun) for noun, count in counts.items())
    return f"{', '.join(run.models)}; {counted}, {len(rows):,} answers scored.{notes}"


def versions(run: Run) -> list[tuple[str, str]]:
    """What all records share, and where they do not, each value with the number of its records."""
    seen: dict[str, Counter[str]] = {}
    for meta in (cell.meta for cell in run.cells):  # the data and config hashes of each stand in the table of records
        identity = [("commit", meta.get("git_sha")), ("device", meta.get("device")), ("threads", meta.get("threads"))]
        identity += sorted(meta.get("versions", {}).items())
        identity += [(f"{name} sha256", value) for name, value in sorted(meta.get("checksums", {}).items()) if name != "data"]
        for name, value in identity:
            if value is not None:
                seen.setdefault(name, Counter())[value if isinstance(value, str) else json.dumps(value)] += 1
    seeds = listing(sorted({cell.seed for cell in run.cells}))
    return [("seeds", seeds), *((name, _shares(counts)) for name, counts in seen.items())]


def _shares(counts: Counter[str]) -> str:
    return next(iter(counts)) if len(counts) == 1 else "; ".join(f"{value} ({n} records)" for value, n in counts.items())


def cells(run: Run) -> list[dict[str, Any]]:
    """A line for each record whose items are listed: which cell it is and where its files lie."""
    return [
        {
            **{name: getattr(cell, name) for name in ("setting", "regime", "split", "n", "seed", "record")},
            "condition": style_of(cell.condition).label,
            "items": f"items/{cell.page}" if cell.setting in run.settings else "",
            "data": str(cell.meta.get("checksums", {}).get("data", NONE)),
            "config": str(cell.meta.get("config_hash", NONE)),
        }
        for cell in run.cells
        if cell.listed
    ]
