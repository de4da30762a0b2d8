"""A table of a notebook: what stands in it, and on which side."""

import re

import numpy as np
import pandas as pd

from hippo_core import lab


def cells(shown):
    return [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<t[hd][^>]*class=\"[^\"]*col\d[^>]*>.*?</t[hd]>", shown.data)]


def alignment(shown, column):
    return re.search(rf"\.col{column} {{\s*text-align: (\w+)", shown.data)[1]


def test_words_stand_at_the_left_and_numbers_at_the_right_with_as_many_decimals_as_they_deserve():
    rows = pd.DataFrame(
        {
            "said": ["a <b>", None, "c"],
            "score": [1.0, 0.5, np.nan],
            "loss_mean": [0.12345, np.float32(2), 3],
            "kept_bytes": [212424.25, 1.0, 2.0],
            "n": [1, 22, 3333],
            "p": ["0.04", "−1,024", "–"],
            "trace": [1.0, 2.0, np.nan],
        }
    )
    shown = lab.table(rows)
    assert cells(shown) == [
        *("said", "score", "loss mean", "kept bytes", "n", "p", "trace"),
        *("a &lt;b&gt;", "1.00", "0.12", "212,424", "1", "0.04", "1"),
        *("–", "0.50", "2.00", "1", "22", "−1,024", "2"),
        *("c", "–", "3.00", "2", "3,333", "–", "–"),
    ]
    assert [alignment(shown, column) for column in range(7)] == ["left", *["right"] * 6]
    assert cells(lab.table(rows, digits=3))[9] == "0.123"


def test_a_named_index_is_columns_and_another_is_left_out():
    rows = pd.DataFrame({"task": ["copy", "copy", "sort"], "phase": [0, 1, 0], "right": [0.0, 0.5, 1.0]})
    means = rows.groupby(["task", "phase"])[["right"]].mean()
    assert cells(lab.table(means))[:6] == ["task", "phase", "right", "copy", "0", "0.00"]
    assert cells(lab.table(means.reset_index()[::-1]))[3:6] == ["sort", "0", "1.00"]
    pivoted = rows.pivot(index="task", columns="phase", values="right")
    assert cells(lab.table(pivoted)) == ["task", "0", "1", "copy", "0.00", "0.50", "sort", "1.00", "–"]


def test_a_table_is_the_same_each_time_and_an_empty_one_says_so():
    rows = pd.DataFrame({"rule": ["a"]})
    assert lab.table(rows).data == lab.table(rows.copy()).data
    assert "No rows." in lab.table(rows[:0]).data
