"""The verdict table: each success criterion as a reader sees it, with its effect as a dot and bar and the way to its evidence."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from hippo_core.protocols.questions.report.runs import Links, RecordView, Run
from hippo_core.results.criteria import VERDICTS, Verdict, load_criteria
from hippo_core.results.figures.palette import style_of
from hippo_core.results.formatting import missing, share
from hippo_core.results.frames import Frame
from hippo_core.results.policies import SCORES
from hippo_core.results.report.pages import strip
from hippo_core.results.report.verdicts import COLOURS, MARKS, verdict_row
from hippo_core.results.statistics.interval import LEAST_WORLDS
from hippo_core.results.summaries import OWN_VECTORS
from hippo_core.results.verdicts import counted
from hippo_core.spoken import number_of

# Of these an item has more on one side where that is right.
SHARES = ("score", *SCORES, "em_raw", "em_norm", "success", "recall_1", "recall_5")
CLAIMS = "What a memory must be worth beside what it is compared with. A rival at chance proves nothing, so against it nothing is judged."
CONTROLS = "That the memory reaches the model at all, and that the answers come from what was stored."
INSTRUMENT = "What the plan expected of suites, model and baselines. These say whether the run can be trusted, nothing of a memory."
SECTIONS = {"claim": ("Claims", CLAIMS), "control": ("Controls", CONTROLS), "instrument": ("The instrument", INSTRUMENT)}


def claims(verdicts: Frame) -> Frame:
    """What a reader looks for first, a line each, of verdicts as `read_criteria` gives them: the claims that were judged,
    then controls, and expectations of the instrument, that are not met or not shown."""
    shown = verdicts[(verdicts["verdict"] != "not judged") & ((verdicts["about"] == "claim") | (verdicts["verdict"] != "met"))]
    lines = []
    for about in SECTIONS:
        for record in shown[shown["about"] == about].to_dict("records"):
            values: dict[str, Any] = {str(name): tuple(value) if isinstance(value, list) else value for name, value in record.items()}
            row = verdict_row(Verdict(**values))
            line = {"about": about, "verdict": f"{row['mark']} {row['verdict']}"}
            line |= {"question": row["question"], "suite": record["suite"], "holds if": row["met_when"]}
            line |= {"value": row["value"], "95% interval": row["interval"], "n": row["n"], "worlds": row["worlds"], "p": row["p"]}
            lines.append(
                line | {"compared": " against ".join(style_of(condition).label for condition in (record["a"], record["b"]) if condition)}
            )
    return pd.DataFrame(lines)


def by_model(run: Run, verdicts: Sequence[Verdict], links: dict[str, Links]) -> list[dict[str, Any]]:
    """For each model its verdicts: how many of each, the judged ones one by one and by question, and those not judged with the reason."""
    return [_of_model(run, model, [verdict for verdict in verdicts if verdict.model == model], links) for model in run.models]


def _of_model(run: Run, model: str, verdicts: Sequence[Verdict], links: dict[str, Links]) -> dict[str, Any]:
    cells = {cell.id: cell for cell in run.cells}
    mark = "" if model == run.models[0] else f"{model}--"  # an id of its own on the page
    lines = [_row(verdict, [cells[name] for name in verdict.cells if name in cells], links, mark) for verdict in verdicts]
    judged, unjudged = ([line for line in lines if (line["verdict"] == "not judged") == without] for without in (False, True))
    sections = []
    for about, (title, note) in SECTIONS.items():
        if mine := [line for line in judged if line["about"] == about]:
            words = _words(Counter(line["verdict"] for line in mine))
            sections.append({"title": title, "note": note, "words": words, "judged": mine, "questions": _questions(mine)})
    return {
        "model": model,
        "counted": counted(verdict.verdict for verdict in verdicts),
        "sections": sections,
        "judged": judged,
        "unjudged": [{**rows[0], "places": [row["place"] for row in rows]} for rows in _gathered(unjudged, ("question", "text", "reason"))],
        "n_unjudged": len(unjudged),
        "unasked": _unasked(run, model, verdicts),
        "not_asked": len(load_criteria().single()) - len(verdicts),
    }


def _words(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name])


def _gathered(lines: Sequence[dict[str, Any]], by: Sequence[str]) -> list[list[dict[str, Any]]]:
    """The lines that agree in these columns together."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for line in lines:
        groups.setdefault(tuple(line[name] for name in by), []).append(line)
    return list(groups.values())


def _unasked(run: Run, model: str, verdicts: Sequence[Verdict]) -> list[str]:
    """Why there is no verdict on a suite of which a model was asked: no criterion is about it, or none about the presets that ran there."""
    criteria, reasons = load_criteria().single(), []
    rows = run.numbers[run.numbers["model"] == model]
    for suite in dict.fromkeys(rows["suite"]):
        if any(verdict.suite == suite for verdict in verdicts):
            continue
        known = any(suite in criterion.suites for criterion in criteria)
        reason = f"{suite}: no criterion is about {'the presets, worlds and settings that were run there' if known else 'this suite'}"
        here = rows[rows["suite"] == suite]
        worlds = here["cluster"].nunique()
        if worlds < LEAST_WORLDS:
            asked = f"{number_of(here['key'].nunique(), 'question')} in {number_of(worlds, 'world')}"
            reason += f", and {asked} give no interval: that takes {LEAST_WORLDS}"
        reasons.append(reason)
    return reasons


def _row(verdict: Verdict, cells: list[RecordView], links: dict[str, Links], mark: str) -> dict[str, Any]:
    paired = not missing(verdict.only_a) and verdict.metric in SHARES
    several = len({cell.seed for cell in cells}) > 1
    evidence = [
        {
            "name": style_of(cell.condition).label + (f", seed {cell.seed}" if several else ""),
            "items": f"items/{cell.page}",
            "record": cell.record,
        }
        for cell in cells
        if cell.listed
    ]
    return verdict_row(verdict) | {
        "id": mark + verdict.id,
        "place": _scope(verdict),
        "paired": paired,
        "sides": f"{style_of(verdict.a).label} alone right / {style_of(verdict.b).label} alone right" if paired else "",
        "differing": _differing(verdict, cells, links) if paired else "",
        "cells": evidence,
        "n_cells": len(cells),
    }


def _questions(judged: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The judged rows of a model gathered by question: one line where it was asked once, else a summary line over its suites."""
    lines = []
    for rows in _gathered(judged, ("question", "text")):
        counts, values, first = Counter(row["verdict"] for row in rows), [row["order"] for row in rows], rows[0]
        verdict = first["verdict"] if len(counts) == 1 else "mixed"
        words = _words(counts) if verdict == "mixed" else f"{verdict} in all {len(rows)}"
        sign = first["kind"] not in ("mean", "ratio")
        dots = [(row["order"], COLOURS[row["verdict"]]) for row in rows]
        alt = f"{words}: {share(min(values))} to {share(max(values))}"
        lines.append(
            {
                **{name: first[name] for name in ("question", "text", "met_when")},
                "rows": rows,
                "verdict": verdict,
                "mark": MARKS.get(verdict, "±"),
                "words": words,
                "values": f"{share(min(values), sign=sign)} to {share(max(values), sign=sign)}",
                "strip": strip(dots, first["domain"], alt, first["guide"], first["ticks"]),
            }
        )
    return lines


def _scope(verdict: Verdict) -> str:
    """Where a verdict was reached. A rag that shows all of the right facts leaves nothing to gain, so it is said how many it shows."""
    profile = "" if verdict.profile == "default" else verdict.profile
    rival = OWN_VECTORS if OWN_VECTORS in verdict.reason else ""
    shows = "" if missing(verdict.rival_shows) else f"the rag shows {share(verdict.rival_shows)} of the right facts (validation)"
    return " · ".join(filter(None, [verdict.suite, verdict.worlds.replace(";", ", "), profile, verdict.regime, rival, shows]))


def _differing(verdict: Verdict, cells: list[RecordView], links: dict[str, Links]) -> str:
    """The page of the items on which a (the first cells) and b differ in score, where these are two conditions of one setting."""
    keys = list(dict.fromkeys((cell.condition, cell.regime) for cell in cells))
    settings = {cell.setting for cell in cells}
    if len(keys) != 2 or len(settings) != 1 or verdict.metric != "score":
        return ""
    return links[settings.pop()].differing(keys[0], keys[1], **({"rung": verdict.rung} if verdict.rung else {}))
