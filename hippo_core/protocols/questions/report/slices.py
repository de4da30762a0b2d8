"""The table of held-out words: how memories and rags score on synonyms, question forms and names that occur in no training text.

Only some cues have held-out words (of episodes the paraphrases), so questions without any count only where they have such a cue.
"""

from typing import Any

from hippo_core.protocols.questions.report.tables import CONDITION_KEY, condition_keys, estimated, estimates, named
from hippo_core.results import summaries
from hippo_core.results.conditions import base, is_control
from hippo_core.results.formatting import NONE, count
from hippo_core.results.frames import Frame, Row

LEAST_ITEMS, LEAST_WORLDS = 20, 2  # of a group, for a number to be shown
MEASURES = {"score": "answers right", "recall_1": "recall@1"}


def slices(rows: Frame) -> dict[str, Any] | None:
    """Answers right and recall@1 by group of questions: two lines a condition and regime. None where no question has held-out words, or
    there is neither a memory nor a rag."""
    rows = rows[rows["condition"].map(lambda name: _is_memory(name) or base(name).startswith("baselines/rag_"))]
    if not (rows["slices"] != "").any():
        return None
    held_out = _has(rows, "new_synonym") | _has(rows, "new_template")
    cues = summaries.order_of(rows[held_out], "rung")
    groups = {name: rows[chosen] for name, chosen in _groups(rows, cues).items() if chosen.any()}
    tables = {measure: [estimates(group, CONDITION_KEY, measure) for group in groups.values()] for measure in MEASURES}
    lines = [
        {**named(*key), "measure": words, "cells": [_cell(group.get(key)) for group in tables[measure]]}
        for key in condition_keys(rows)
        for measure, words in MEASURES.items()
        if any(key in group for group in tables[measure])
    ]
    return {"groups": list(groups), "lines": lines, "note": _note(cues), "of_memory": rows["condition"].map(_is_memory).any()}


def _is_memory(condition: str) -> bool:
    return condition.startswith("memory/") and not is_control(condition)


def _groups(rows: Frame, cues: list[str]) -> dict[str, Frame]:
    """Which rows belong to each group: four that share no question, by words; two more, by names."""
    synonym, form, name = (_has(rows, word) for word in ("new_synonym", "new_template", "new_name"))
    return {
        "neither": rows["rung"].isin(cues) & ~synonym & ~form,
        "held-out synonym": synonym & ~form,
        "held-out question form": form & ~synonym,
        "both": synonym & form,
        "unseen name": name,
        "seen names": ~name & name.any(),
    }


def _has(rows: Frame, word: str) -> Frame:
    return rows["slices"].str.split(";").map(lambda words: word in words)


def _cell(row: Row | None) -> dict[str, str]:
    few = row is None or row["n"] < LEAST_ITEMS or row["n_worlds"] < LEAST_WORLDS
    shown = {"mean": NONE, "interval": NONE} if few else estimated(row)
    return {**shown, "n": "0" if row is None else count(row["n"])}


def _note(cues: list[str]) -> str:
    named_cues = " or ".join(filter(None, cues))
    of_cues = f"The first groups hold questions with the cue {named_cues}; the groups by name hold all cues. " if named_cues else ""
    return f"{of_cues}A group of fewer than {LEAST_ITEMS} questions or {LEAST_WORLDS} worlds shows only its size."
