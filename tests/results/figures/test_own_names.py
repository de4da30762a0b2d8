"""Figures and tables show suites, rungs and regimes of one's own, and say so where nothing was scored."""

import pandas as pd
import pytest

from hippo_core.protocols.questions.figures import plots
from hippo_core.results import summaries
from tests.results.fake_records import make_rows


@pytest.fixture
def rows():
    both = [make_rows("mine", name, "delayed", n=24).assign(seed=1, preset=name) for name in ("baselines/core", "baselines/rag_bm25")]
    return pd.concat(both, ignore_index=True)


@pytest.mark.parametrize(
    ("names", "order"),
    [(["hard", "easy"], ["easy", "hard"]), (["mine", "noisy", "exact"], ["exact", "noisy", "mine"]), (["b", "a", "c"], ["a", "b", "c"])],
)
def test_rungs_of_ones_own_are_shown_behind_the_labs(rows, names, order):
    rows = rows.assign(rung=[names[row % len(names)] for row in range(len(rows))])
    assert summaries.order_of(rows, "rung") == order
    shown = plots.rungs_by_condition(rows)
    assert [text.get_text() for text in shown.axes[-1].get_xticklabels()] == order


def test_regimes_of_ones_own_come_last(rows):
    assert summaries.regimes_of(pd.concat([rows.assign(regime="later"), rows.assign(regime="delayed")])) == ["delayed", "later"]


@pytest.mark.parametrize("draw", [plots.rungs_by_condition, plots.conditions_overview, plots.tokens_against_accuracy, plots.recall_at_k])
def test_nothing_scored_is_a_figure_that_says_so(rows, draw):
    figure = draw(rows.assign(score=float("nan"), recall_1=float("nan")))
    assert "Nothing was scored" in str([text.get_text() for text in figure.findobj(match=lambda artist: hasattr(artist, "get_text"))])
