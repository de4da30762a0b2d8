"""Whether a condition ignores the window is what the method of its preset says. Figures and tables show suites, rungs and regimes of one's
own, and say so where nothing was scored."""

import pandas as pd
import pytest

from hippo_core.errors import LabError
from hippo_core.methods import presets
from hippo_core.methods.presets import load_preset, preset_names
from hippo_core.protocols.questions.figures import plots
from hippo_core.results import summaries
from hippo_core.results.conditions import ignores_window
from hippo_core.results.figures import palette
from hippo_core.results.figures.palette import style_of
from tests.results.fake_records import make_rows


def test_of_our_presets_two_use_the_window():
    assert {name for name in preset_names() if not ignores_window(name)} == {"baselines/core", "baselines/span_short"}


def test_a_presets_look_is_data_beside_it_that_no_setting_and_no_record_knows(other_lab):
    file = other_lab / "params" / "presets" / "mine" / "recent.yaml"
    before = load_preset("mine/recent").described()
    file.write_text(file.read_text() + 'look: {order: 3, colour: "#123456", marker: o}\n')
    for cached in (palette._styles_in, presets._styles_of_presets):
        cached.cache_clear()
    assert style_of("mine/recent").colour == "#123456" and load_preset("mine/recent").described() == before
    file.write_text(file.read_text().replace("marker", "market"))
    for cached in (palette._styles_in, presets._styles_of_presets):
        cached.cache_clear()
    with pytest.raises(LabError, match="market is unknown or missing"):
        style_of("mine/recent")


def test_a_variant_does_as_its_preset_does():
    assert not ignores_window("baselines/core (delivery=kv)") and ignores_window("memory/hei_nw (k=5)")


def test_a_preset_of_ones_own_that_uses_the_window_is_seen_in_its_own_lab_only(other_lab, monkeypatch):
    assert not ignores_window("mine/recent") and not ignores_window("mine/recent (control=shuffled)")
    monkeypatch.delenv("HIPPO_ROOT")
    assert ignores_window("mine/recent")


def test_a_preset_that_cannot_be_loaded_here_ignores_the_window_until_it_can(other_lab):
    assert all(map(ignores_window, ("mine/newer_library", "mine/no_module", "mine/later")))
    (other_lab / "params" / "presets" / "mine" / "later.yaml").write_text("method: own_window:Recent\n")
    assert not ignores_window("mine/later")


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
