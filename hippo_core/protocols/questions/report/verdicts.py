"""The verdict table: each success criterion as a reader sees it, with its effect as a dot and bar and the way to its evidence."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from hippo_core.protocols.questions.report.pages import Links
from hippo_core.protocols.questions.report.runs import RecordView, Run
from hippo_core.results.criteria import VERDICTS, Verdict, load_criteria
from hippo_core.results.figures.palette import look
from hippo_core.results.formatting import missing, share
from hippo_core.results.frames import Frame
from hippo_core.results.policies import SCORES
from hippo_core.results.report.svg import strip
from hippo_core.results.report.verdicts import COLOURS, MARKS, verdict_row
from hippo_core.results.statistics.interval import LEAST_WORLDS
from hippo_core.results.summaries import OWN_VECTORS
from hippo_core.results.verdicts import counted
from hippo_core.spoken import number_of

SHARES = (
    "score",
    *SCORES,
    "em_raw",
    "em_norm",
    "success",
    "recall_1",
    "recall_5",
)  # of which an item has more on one side where that is right
SECTIONS = (
    (
        "claim",
        "Claims",
        "What a memory must be worth beside what it is compared with. A rival at chance proves nothing, so against it nothing is judged.",
    ),
    ("control", "Controls", "That the memory reaches the model at all, and that the answers come from what was stored."),
    (
        "instrument",
        "The instrument",
        "What the plan expected of suites, model and baselines. These say whether the run can be trusted, nothing of a memory.",
    ),
)


def claims(verdicts: Frame) -> Frame:
    """What a reader looks for first, a line each, of verdicts as `read_criteria` gives them: the claims that were judged,
    then controls, and expectations of the instrument, that are not met or not shown."""
    told = verdicts[(verdicts["verdict"] != "not judged") & ((verdicts["about"] == "claim") | (verdicts["verdict"] != "met"))]
    lines = []
    for about in ("claim", "control", "instrument"):
        for one in told[told["about"] == about].to_dict("records"):
            values: dict[str, Any] = {str(name): tuple(value) if isinstance(value, list) else value for name, value in one.items()}
            row = verdict_row(Verdict(**values))
            line = {"about": about, "verdict": f"{row['mark']} {row['verdict']}"}
            line |= {"question": row["question"], "suite": one["suite"], "holds if": row["met_when"]}
            line |= {"value": row["value"], "95% interval": row["interval"], "n": row["n"], "worlds": row["worlds"], "p": row["p"]}
            lines.append(line | {"compared": " against ".join(look(side).label for side in (one["a"], one["b"]) if side)})
    return pd.DataFrame(lines)


def by_model(run: Run, verdicts: Sequence[Verdict], links: dict[str, Links]) -> list[dict[str, Any]]:
    """For each model its verdicts: how many of each, the judged ones one by one and by question, and those not judged with the reason."""
    return [_of_model(run, model, [verdict for verdict in verdicts if verdict.model == model], links) for model in run.models]


def _of_model(run: Run, model: str, verdicts: Sequence[Verdict], links: dict[str, Links]) -> dict[str, Any]:
    cells = {cell.id: cell for cell in run.cells}
    mark = "" if model == run.models[0] else f"{model}--"  # an id of its own on the page
    lines = [_row(verdict, [cells[name] for name in verdict.cells if name in cells], links, mark) for verdict in verdicts]
    sections = [_section(*about, [line for line in lines if line["about"] == about[0]]) for about in SECTIONS]
    return {
        "model": model,
        "counted": counted(verdict.verdict for verdict in verdicts),
        "sections": [section for section in sections if section["judged"]],
        "judged": [line for line in lines if line["verdict"] != "not judged"],
        "unjudged": _gathered(unjudged := [line for line in lines if line["verdict"] == "not judged"]),
        "n_unjudged": len(unjudged),
        "unasked": _unasked(run, model, verdicts),
        "not_asked": len(load_criteria().single()) - len(verdicts),
    }


def _section(about: str, title: str, note: str, lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The judged rows that are about one thing, by question, with the count of each verdict."""
    judged = [line for line in lines if line["verdict"] != "not judged"]
    counts = Counter(line["verdict"] for line in judged)
    words = ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name])
    return {"about": about, "title": title, "note": note, "words": words, "judged": judged, "questions": questions(judged)}


def _unasked(run: Run, model: str, verdicts: Sequence[Verdict]) -> list[str]:
    """Why there is no verdict on a suite of which a model was asked: no criterion is about it, or none about the presets that ran there."""
    criteria, reasons = load_criteria().single(), []
    rows = run.numbers[run.numbers["model"] == model]
    for suite in dict.fromkeys(rows["suite"]):
        if any(verdict.suite == suite for verdict in verdicts):
            continue
        if not any(suite in criterion.suites for criterion in criteria):
            reasons.append(f"{suite}: no criterion is about this suite")
        else:
            reasons.append(f"{suite}: no criterion is about the presets, worlds and settings that were run there")
        here = rows[rows["suite"] == suite]
        worlds = here["cluster"].nunique()
        if worlds < LEAST_WORLDS:
            asked = f"{number_of(here['key'].nunique(), 'question')} in {number_of(worlds, 'world')}"
            reasons[-1] += f", and {asked} give no interval: that takes {LEAST_WORLDS}"
    return reasons


def _row(verdict: Verdict, cells: list[RecordView], links: dict[str, Links], mark: str) -> dict[str, Any]:
    paired = not missing(verdict.only_a) and verdict.metric in SHARES
    several = len({cell.seed for cell in cells}) > 1
    return verdict_row(verdict) | {
        "id": mark + verdict.id,
        "suite": verdict.suite,
        "place": _scope(verdict),
        "paired": paired,
        "sides": f"{_label(verdict.a)} alone right / {_label(verdict.b)} alone right" if paired else "",
        "differing": _differing(verdict, cells, links) if paired else "",
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
    counts, values = Counter(row["verdict"] for row in rows), [row["order"] for row in rows]
    verdict = rows[0]["verdict"] if len(counts) == 1 else "mixed"
    words = ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name])
    words = words if verdict == "mixed" else f"{verdict} in all {len(rows)}"
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
        "met_when": first["met_when"],
        "values": f"{share(min(values), sign=sign)} to {share(max(values), sign=sign)}",
        "strip": strip(dots, first["domain"], f"{words}: {share(min(values))} to {share(max(values))}", first["guide"], first["ticks"]),
    }


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


def _evidence(cell: RecordView, several: bool) -> dict[str, str]:
    return {
        "name": look(cell.condition).label + (f", seed {cell.seed}" if several else ""),
        "items": f"items/{cell.page}",
        "record": cell.record,
    }


def _label(side: str) -> str:
    """A side of a criterion as tables name it."""
    return look(side).label


def _differing(verdict: Verdict, cells: list[RecordView], links: dict[str, Links]) -> str:
    """The page of the items on which a (the first cells) and b differ in score, where these are two conditions of one setting."""
    sides = list(dict.fromkeys((cell.condition, cell.regime) for cell in cells))
    settings = {cell.setting for cell in cells}
    if len(sides) != 2 or len(settings) != 1 or verdict.metric != "score":
        return ""
    return links[settings.pop()].differing(sides[0], sides[1], **({"rung": verdict.rung} if verdict.rung else {}))
