"""The table of held-out words: how memories and rags score on synonyms, question forms and names that occur in no training text.

Only some cues have held-out words (of episodes the paraphrases), so questions without any count only where they have such a cue.
"""

from typing import Any

from hippo_core.results import summaries
from hippo_core.results.conditions import base, is_control, ordered
from hippo_core.results.figures.palette import look
from hippo_core.results.formatting import NONE, count, share, span
from hippo_core.results.frames import Frame

LEAST_ITEMS, LEAST_WORLDS = 20, 2  # of a group, for a number to be shown
MEASURES = {"score": "answers right", "recall_1": "recall@1"}
Estimates = dict[tuple[str, str], dict[str, Any]]


def slices(rows: Frame) -> dict[str, Any] | None:
    """Answers right and recall@1 by group of questions: two lines a condition and regime. None where no question has held-out words, or
    there is neither a memory nor a rag."""
    rows = rows[rows["condition"].map(lambda name: _is_memory(name) or base(name).startswith("baselines/rag_"))]
    held_out = rows[rows["slices"] != ""]
    if held_out.empty:
        return None
    groups = {name: rows[chosen] for name, chosen in _groups(rows).items() if chosen.any()}
    estimates = {measure: {name: _estimates(group, measure) for name, group in groups.items()} for measure in MEASURES}
    lines = [
        _line(name, regime, words, [by_group.get((name, regime)) for by_group in estimates[measure].values()])
        for name in ordered(rows["condition"])
        for regime in summaries.regimes_of(rows[rows["condition"] == name])
        for measure, words in MEASURES.items()
        if any((name, regime) in by_group for by_group in estimates[measure].values())
    ]
    return {"groups": list(groups), "lines": lines, "note": _note(rows), "of_memory": rows["condition"].map(_is_memory).any()}


def _is_memory(condition: str) -> bool:
    return condition.startswith("memory/") and not is_control(condition)


def _groups(rows: Frame) -> dict[str, Frame]:
    """Which rows belong to each group: four that share no question, by words; two more, by names."""
    synonym, form, name = (_has(rows, word) for word in ("new_synonym", "new_template", "new_name"))
    comparable = rows["rung"].isin(_rungs(rows))
    return {
        "neither": comparable & ~synonym & ~form,
        "held-out synonym": synonym & ~form,
        "held-out question form": form & ~synonym,
        "both": synonym & form,
        "unseen name": name,
        "seen names": ~name & name.any(),
    }


def _has(rows: Frame, word: str) -> Frame:
    return rows["slices"].str.split(";").map(lambda words: word in words)


def _rungs(rows: Frame) -> list[str]:
    return summaries.order_of(rows[_has(rows, "new_synonym") | _has(rows, "new_template")], "rung")


def _estimates(rows: Frame, measure: str) -> Estimates:
    table = summaries.estimate(rows, ["condition", "regime"], measure)
    return {(line["condition"], line["regime"]): line for line in table.to_dict("records")}


def _line(name: str, regime: str, measure: str, estimates: list[dict[str, Any] | None]) -> dict[str, Any]:
    return {"name": look(name).label, "look": look(name), "regime": regime, "measure": measure, "cells": [_cell(one) for one in estimates]}


def _cell(estimate: dict[str, Any] | None) -> dict[str, str]:
    if estimate is None:
        return {"mean": NONE, "interval": NONE, "n": "0"}
    n = count(estimate["n"])
    if estimate["n"] < LEAST_ITEMS or estimate["n_worlds"] < LEAST_WORLDS:
        return {"mean": NONE, "interval": NONE, "n": n}
    return {"mean": share(estimate["mean"], estimate["low"], estimate["high"]), "interval": span(estimate["low"], estimate["high"]), "n": n}


def _note(rows: Frame) -> str:
    cues = [rung for rung in _rungs(rows) if rung]
    of_cues = f"The first groups hold questions with the cue {' or '.join(cues)}; the groups by name hold all cues. " if cues else ""
    return f"{of_cues}A group of fewer than {LEAST_ITEMS} questions or {LEAST_WORLDS} worlds shows only its size."
