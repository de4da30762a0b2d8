"""Held-out words are reported apart: each question in its group and no other, with number and interval, and nothing of too few."""

import numpy as np
import pandas as pd

from hippo_core.protocols.questions.report.tables import slices
from hippo_core.results.formatting import share, span
from hippo_core.results.scores import RANKING_COLUMNS
from hippo_core.results.statistics.interval import cluster_interval
from hippo_core.results.summaries import labelled
from tests.results import fake_records

WORDS = ("", "new_synonym", "new_template", "new_template;new_synonym")  # of paraphrases, in turn
GROUPS = ["neither", "held-out synonym", "held-out question form", "both", "unseen name", "seen names"]


def rows_of(preset, n=480):
    """Two questions in five right; a fourth are paraphrases, of which a fourth each have these words; of five worlds one has new names."""
    rows = fake_records.make_rows("episodic", preset, "delayed", n=n)
    number = rows["idx"].to_numpy()
    words = np.where(rows["rung"] == "paraphrase", np.array(WORDS, object)[(number // 4) % 4], "")
    new = (number // 5) % 5 == 0
    joined = [";".join(filter(None, [word, "new_name" if is_new else ""])) for word, is_new in zip(words, new, strict=True)]
    right = (np.random.default_rng(n).random(n) < 0.4).astype(float)
    return rows.assign(slices=joined, score=right, **dict.fromkeys(RANKING_COLUMNS, 1.0 - right))


def of_run(rows, preset="memory/hei_nw"):
    """The rows with the columns of a run."""
    return labelled(rows.assign(preset=preset))


def masks(rows):
    """The groups, told another way."""
    marks = [set(text.split(";")) - {""} for text in rows["slices"]]
    apart = [frozenset(mark - {"new_name"}) for mark in marks]
    names = dict(zip(GROUPS, [*({*word.split(";")} - {""} for word in WORDS)], strict=False))
    by_group = {group: np.array([mark == names[group] for mark in apart]) & (rows["rung"] == "paraphrase") for group in GROUPS[:4]}
    new = np.array(["new_name" in mark for mark in marks])
    return by_group | {"unseen name": new, "seen names": ~new}


def test_each_group_has_its_share_interval_and_number():
    rows = rows_of("memory/hei_nw")
    table = slices(of_run(rows))
    assert table["groups"] == GROUPS
    assert [line["measure"] for line in table["lines"]] == ["answers right", "recall@1"]
    for line, column in zip(table["lines"], ("score", "recall_1"), strict=True):
        for cell, mask in zip(line["cells"], masks(rows).values(), strict=True):
            due = cluster_interval(rows[column][mask], rows["world"][mask])
            assert cell == {"mean": share(due.mean, due.low, due.high), "interval": span(due.low, due.high), "n": str(due.n)}
    assert "questions with the cue paraphrase;" in table["note"]


def test_small_groups_show_their_number_alone():
    rows = rows_of("memory/hei_nw", n=240)
    [line, _] = slices(of_run(rows))["lines"]
    counts = [int(mask.sum()) for mask in masks(rows).values()]
    assert min(counts) < 20 <= max(counts)
    assert [(cell["mean"] == "–", cell["interval"] == "–", cell["n"]) for cell in line["cells"]] == [
        (n < 20, n < 20, str(n)) for n in counts
    ]
    [line, _] = slices(of_run(rows.assign(world="w")))["lines"]
    assert {cell["mean"] for cell in line["cells"]} == {"–"}


def test_memories_and_rags_are_shown_and_nothing_else_is():
    kinds = ("memory/hei_nw", "baselines/rag_bm25", "baselines/core", "controls/oracle", "ablations/hopfield")
    rows = [of_run(rows_of("memory/hei_nw"), preset) for preset in kinds]
    table = slices(pd.concat(rows, ignore_index=True))
    assert [line["name"] for line in table["lines"]] == ["rag_bm25", "rag_bm25", "hei_nw", "hei_nw"] and table["of_memory"]
    assert not slices(rows[1])["of_memory"]
    assert slices(rows[2]) is None
    assert slices(rows[0].assign(slices="")) is None
