"""The figure of what each suite asks: bars that add up, and labels only where they fit."""

import pandas as pd
import pytest

from hippo_core.protocols.questions.figures.composition import composition


def test_each_bar_adds_up_and_only_what_fits_is_named():
    rows = [("few", "kinds", "all", 20), *(("many", "kinds", f"kind {number}", 1) for number in range(100)), ("few", "rungs", "exact", 20)]
    figure = composition(pd.DataFrame(rows, columns=["suite", "by", "name", "items"]))
    kinds = figure.axes[0]
    assert [label.get_text() for label in kinds.get_yticklabels()] == ["few", "many"]
    for row in range(2):
        assert sum(bar.get_width() for bar in kinds.patches if bar.get_y() == pytest.approx(row - 0.4)) == pytest.approx(1)
    assert {text.get_text() for text in kinds.texts} == {"all 20", ""}
