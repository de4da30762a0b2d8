"""The verdict table: each success criterion as a reader sees it, with its effect as a dot and bar and the way to its evidence."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from hippo_core.results.criteria import Verdict, load_criteria
from hippo_core.results.figures.palette import look
from hippo_core.results.formatting import NONE, count, missing, probability, share, span
from hippo_core.results.report.comparisons import needed
from hippo_core.results.report.pages import Links
from hippo_core.results.report.runs import Cell, Run
from hippo_core.results.report.svg import dot_and_bar, strip
from hippo_core.results.summaries import OWN_VECTORS

COLOURS = {"met": "#0b6b4f", "missed": "#a63603", "not judged": "#6b7280"}
MARKS = {"met": "✓", "missed": "✗", "not judged": "–"}


def by_model(run: Run, verdicts: Sequence[Verdict], links: dict[str, Links]) -> list[dict[str, Any]]:
    """For each model its verdicts: how many of each, the judged ones one by one and by question, and those not judged with the reason."""
    return [_of_model(run, model, [verdict for verdict in verdicts if verdict.model == model], links) for model in run.models]


def _of_model(run: Run, model: str, verdicts: Sequence[Verdict], links: dict[str, Links]) -> dict[str, Any]:
    cells = {cell.id: cell for cell in run.cells}
    mark = "" if model == run.models[0] else f"{model}--"  # an id of its own on the page
    lines = [_row(verdict, [cells[name] for name in verdict.cells if name in cells], links, mark) for verdict in verdicts]
    judged = [line for line in lines if line["verdict"] != "not judged"]
    unjudged = _gathered([line for line in lines if line["verdict"] == "not judged"])
    return {
        "model": model,
        "tally": tally(verdicts),
        "judged": judged,
        "questions": questions(judged),
        "unjudged": unjudged,
        "not_asked": len(load_criteria().single()) - len(verdicts),
    }


def _row(verdict: Verdict, cells: list[Cell], links: dict[str, Links], mark: str) -> dict[str, Any]:
    kind, domain, guide = _scale(verdict)
    signed = kind == "difference"
    value, interval = share(verdict.value, verdict.low, verdict.high, signed), span(verdict.low, verdict.high, signed)
    paired, several = not missing(verdict.only_a), len({cell.seed for cell in cells}) > 1
    return {
        "id": mark + verdict.id,
        "criterion": verdict.id,
        **{name: getattr(verdict, name) for name in ("suite", "question", "text", "reason", "family", "verdict")},
        "mark": MARKS[verdict.verdict],
        "place": _scope(verdict),
        "kind": kind,
        "value": value,
        "interval": interval,
        "target": _target(verdict),
        "order": verdict.value,
        "domain": domain,
        "guide": guide,
        "ticks": verdict.target,
        "bar": dot_and_bar(
            verdict.value, verdict.low, verdict.high, domain, COLOURS[verdict.verdict], f"{kind} {value}, {interval}", guide, verdict.target
        ),
        "n": count(verdict.n) if verdict.n else NONE,
        "worlds": count(verdict.n_worlds) if verdict.n_worlds else NONE,
        "p": probability(verdict.p if missing(verdict.p_holm) else verdict.p_holm),
        "corrected": not missing(verdict.p_holm),
        "p_mcnemar": probability(verdict.p_mcnemar),
        "needed": needed(verdict.n_needed),
        "only_a": count(verdict.only_a),
        "only_b": count(verdict.only_b),
        "paired": paired,
        "differing": _differing(cells, links) if paired else "",
        "cells": [_evidence(cell, several) for cell in cells if cell.listed],
        "n_cells": len(cells),
    }


def questions(judged: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The judged rows of a model gathered by question: one line where it was asked once, else a summary line over its suites."""
    rows_by_question: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in judged:
        rows_by_question.setdefault((row["question"], row["text"]), []).append(row)
    return [_question(question, text, rows) for (question, text), rows in rows_by_question.items()]


def _question(question: str, text: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    met, values = sum(row["verdict"] == "met" for row in rows), [row["order"] for row in rows]
    verdict = "met" if met == len(rows) else "missed" if met == 0 else "mixed"
    words = f"met in {met} of {len(rows)}" if verdict == "mixed" else f"{verdict} in all {len(rows)}"
    first = rows[0]
    sign = first["kind"] != "mean" and first["kind"] != "ratio"
    dots = [(row["order"], COLOURS[row["verdict"]]) for row in rows]
    return {
        "question": question,
        "text": text,
        "rows": rows,
        "verdict": verdict,
        "mark": MARKS.get(verdict, "±"),
        "words": words,
        "kind": first["kind"],
        "target": first["target"],
        "values": f"{share(min(values), sign=sign)} to {share(max(values), sign=sign)}",
        "strip": strip(dots, first["domain"], f"{words}: {share(min(values))} to {share(max(values))}", first["guide"], first["ticks"]),
    }


def _scale(verdict: Verdict) -> tuple[str, tuple[float, float], float | None]:
    """What the value is, the axis it is drawn on, and its guide line (no effect)."""
    if verdict.rule == "at_most_chance_plus":
        return "above chance", (-1.0, 1.0), 0.0
    if missing(verdict.mean_a):
        return "mean", (0.0, 1.0 if missing(verdict.high) or verdict.high <= 1 else 2.0), None
    if math.isclose(verdict.value, verdict.mean_a - verdict.mean_b, abs_tol=1e-6):
        return "difference", (-1.0, 1.0), 0.0
    return "ratio", (0.0, 2.0), 1.0


def _target(verdict: Verdict) -> str:
    if isinstance(verdict.target, tuple):
        return f"{share(verdict.target[0])} to {share(verdict.target[1])}"
    if verdict.rule == "same":
        return "all the same"
    signs = {"at_least": "≥ ", "not_below": "≥ ", "at_most": "≤ ", "at_most_chance_plus": "≤ chance + "}
    return signs.get(verdict.rule, "") + share(verdict.target)


def _scope(verdict: Verdict) -> str:
    profile = "" if verdict.profile == "default" else verdict.profile
    worlds = verdict.worlds.replace(";", ", ")
    rival = OWN_VECTORS if OWN_VECTORS in verdict.reason else ""
    return " · ".join(filter(None, [verdict.suite, worlds, profile, verdict.regime, rival, _room(verdict)]))


def _room(verdict: Verdict) -> str:
    """How many of the right facts the rag shows in itself: where it is all of them there is nothing to gain."""
    return "" if missing(verdict.rival_shows) else f"the rag shows {share(verdict.rival_shows)} of the right facts (validation)"


def _gathered(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    lines_by_reason: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for line in lines:
        lines_by_reason.setdefault((line["question"], line["text"], line["reason"]), []).append(line)
    return [{**rows[0], "places": [row["place"] for row in rows]} for rows in lines_by_reason.values()]


def _evidence(cell: Cell, several: bool) -> dict[str, str]:
    return {
        "name": look(cell.condition).label + (f", seed {cell.seed}" if several else ""),
        "items": f"items/{cell.page}",
        "record": cell.record,
    }


def _differing(cells: list[Cell], links: dict[str, Links]) -> str:
    """The page of the items on which the two sides differ, where the cells are those of two conditions of one setting."""
    sides = list(dict.fromkeys((cell.condition, cell.regime) for cell in cells))
    settings = {cell.setting for cell in cells}
    return links[settings.pop()].differing(sides[0], sides[1]) if len(sides) == 2 and len(settings) == 1 else ""


def tally(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """How many criteria are met, missed and not judged."""
    counts = Counter(verdict.verdict for verdict in verdicts)
    return {name: counts[name] for name in MARKS}  # type: ignore[index]
