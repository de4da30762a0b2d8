"""Figures: fixed looks and order, claims from numbers, chance lines, the same bytes for the same rows."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from hippo_core import lab
from hippo_core.protocols.questions.figures import plots, titles
from hippo_core.protocols.questions.figures.composition import composition
from hippo_core.protocols.questions.figures.salience import gate_spread
from hippo_core.results import summaries
from hippo_core.results.conditions import base, is_bound, ordered
from hippo_core.results.figures import drawing
from hippo_core.results.figures.palette import style_of, styles
from tests.results import fake_records

FIGURES = (plots.conditions_overview, plots.rungs_by_condition, plots.recall_at_k, plots.tokens_against_accuracy)


def rows_of(suite: str = "episodic", presets: tuple[str, ...] = fake_records.PRESETS) -> pd.DataFrame:
    cells = []
    for preset in presets:
        windowed = preset in fake_records.WINDOWED and suite != "episodic_cross"
        for regime in ("immediate", "delayed") if windowed else ("delayed",):
            cells.append(fake_records.make_rows(suite, preset, regime).assign(preset=preset, regime=regime, seed=1337))
    return pd.concat(cells, ignore_index=True)


def test_order_is_baselines_then_memories_then_controls_whatever_comes_in():
    assert ordered(reversed(styles())) == list(styles())
    assert ordered(["controls/oracle", "memory/new", "baselines/new"]) == ["baselines/new", "memory/new", "controls/oracle"]


@pytest.mark.parametrize("family", ["baselines", "memory"])
def test_looks_of_a_family_differ_in_grey_by_lightness_or_marker(family):
    assert len({style.colour for style in styles().values()}) == len(styles())
    group = [style for name, style in styles().items() if name.startswith(family)]
    assert not any(style.hollow for style in group)
    assert len({style.marker for style in group}) == len(group)
    assert all(0.05 < np.dot(to_rgb(style.colour), (0.299, 0.587, 0.114)) < 0.75 for style in group)


@pytest.mark.parametrize(
    "name", ["memory/hei_nw (control=empty)", "mine/newest (control=shuffled)", "mine/newest_random (control=random)", "controls/mine"]
)
def test_a_control_of_ones_own_has_a_look_of_its_own_and_stands_with_the_controls(name):
    mine, memory = style_of(name), style_of(base(name).removesuffix("_random"))
    assert mine.hollow and is_bound(name) and ordered([name, "memory/smpd"]) == ["memory/smpd", name]
    if base(name) != "controls/mine":
        assert mine.colour != memory.colour and mine.marker != memory.marker and not memory.hollow
    assert mine.colour not in {style.colour for style in styles().values()}
    assert mine.label == name.split("/")[1] and not is_bound("memory/hei_nw (control=none)")


def test_a_variant_with_an_encoder_keeps_the_look_of_that_and_stands_behind_it_in_order_of_its_numbers():
    plain, variant = style_of("baselines/rag_dense (minilm)"), style_of("baselines/rag_dense (minilm, k=5)")
    assert (variant.colour, variant.marker, variant.label) == (plain.colour, plain.marker, "rag_dense (minilm, k=5)")
    names = ["baselines/rag_dense", "baselines/rag_dense (minilm)", *(f"baselines/rag_dense (minilm, k={k})" for k in (3, 10))]
    assert ordered(reversed(names)) == names


@pytest.mark.parametrize("draw", FIGURES)
def test_same_rows_in_any_order_give_the_same_picture(draw):
    rows = rows_of()
    assert drawing.png(draw(rows)) == drawing.png(draw(rows.sample(frac=1, random_state=1)))


@pytest.mark.parametrize("draw", FIGURES)
def test_every_axis_of_proportions_shows_all_of_0_to_1(draw):
    for panel in draw(rows_of()).axes:
        low, high = panel.get_xlim() if draw is plots.conditions_overview else panel.get_ylim()
        assert low <= 0 and high >= 1


def test_conditions_without_a_window_stand_in_both_panels_and_no_panel_is_made_up():
    both, single = plots.conditions_overview(rows_of()), plots.conditions_overview(rows_of("episodic_cross"))
    assert [panel.get_title(loc="left") for panel in both.axes] == ["immediate", "delayed"]
    assert [panel.get_title(loc="left") for panel in single.axes] == ["delayed"]
    assert all(f"{0.14:.2f}" in "".join(text.get_text() for text in panel.texts) for panel in both.axes)


def test_a_fall_is_claimed_only_where_intervals_do_not_overlap():
    flat = rows_of(presets=("baselines/rag_bm25",)).assign(score=lambda rows: (rows.index % 3 > 0).astype(float))
    steep = flat.assign(score=(flat["rung"] != "noisy").astype(float))
    assert titles.ladder(flat) == "rag_bm25 gets 62% on exact cues and 67% on noisy ones"
    assert "falls from 100% on exact cues to 0% on noisy ones" in titles.ladder(steep)


def test_a_memory_is_set_against_the_best_retrieval_where_they_are_clearly_apart_and_by_most():
    def title(wrong):
        both = rows_of(presets=("baselines/rag_bm25", "memory/hei_nw"))
        missed = both["preset"].eq("baselines/rag_bm25") & both["rung"].isin(wrong)
        return titles.ladder(both.assign(score=(~missed).astype(float)))

    assert title(["noisy"]) == "On noisy cues hei_nw gets 100% right, rag_bm25 0%"
    assert title([]) == "hei_nw and rag_bm25: no clear difference on any kind of cue"


def test_the_marks_of_many_rankings_stay_at_their_k_and_off_the_names():
    (panel,) = plots.recall_at_k(many_rows()).axes
    marks = np.concatenate([np.asarray(line.get_xdata()) for line in panel.lines])
    assert np.abs(marks - marks.round()).max() < 0.3
    assert marks.max() < panel.get_xlim()[1] < min(text.get_position()[0] for text in panel.texts)


def test_a_difference_is_told_from_pairs_where_the_bars_of_each_overlap():
    """One question of five more in nearly every world, half of which are easy: the bars are wide, the difference is not."""
    both = pd.concat(
        fake_records.make_rows("episodic", preset, "delayed", n=75).assign(preset=preset, regime="delayed", seed=1337)
        for preset in ("baselines/rag_bm25", "memory/hei_nw")
    )
    position, world = both["item_id"].str[-1].astype(int), both["world"].str[-2:].astype(int)
    right = np.where(world % 2, 4, 1) + (both["preset"].eq("memory/hei_nw") & (world > 1))
    both = both.assign(score=(position < right).astype(float), rung=np.where(world == 14, "noisy", "exact"))
    few = summaries.estimate(both[both["rung"] == "exact"], ["condition"]).set_index("condition")
    assert few.loc["memory/hei_nw", "low"] < few.loc["baselines/rag_bm25", "high"]
    assert titles.ladder(both).startswith("On exact cues hei_nw gets")


def test_a_score_between_right_and_wrong_is_not_told_as_answers_right():
    rows = rows_of()
    half = rows.assign(score=0.5 * rows["score"])
    assert "right" not in titles.overview(half) and "gets a score of 0." in titles.overview(half)
    axis_labels = [panel.get_xlabel() for panel in plots.conditions_overview(half).axes]
    assert set(axis_labels) == {"mean score"} and plots.conditions_overview(rows).axes[0].get_xlabel() == "share of answers right"


def test_a_memory_is_set_against_the_best_retrieval_by_its_tokens_where_no_prompt_is_long():
    both = rows_of(presets=("baselines/rag_bm25", "memory/hei_nw"))
    memory = both["preset"].eq("memory/hei_nw")
    both = both.assign(score=memory.astype(float), prompt_tokens=np.where(memory, 60, 90))
    assert titles.cost(both) == "hei_nw reads 0.7 times the tokens of rag_bm25 and gets 100% right against 0%"


@pytest.mark.parametrize("heights", [[0.5, 0.5, 0.5], [0.99, 1.0, 0.98], [0.1, 0.9, 0.12, 0.11]])
def test_labels_are_moved_apart_in_order_and_stay_on_the_axis(heights):
    placed = drawing._spread(heights, 0.1)
    assert all(b - a >= 0.1 - 1e-9 for a, b in pairwise(sorted(placed)))
    assert max(placed) <= max(1.0, max(heights) + 0.1 * len(heights))
    assert list(np.argsort(placed, kind="stable")) == list(np.argsort(heights, kind="stable"))


def many_rows() -> pd.DataFrame:
    """Rags with an encoder, each with one fact and with the preset's number of them, beside all other conditions."""
    rows = rows_of()
    encoded = rows["preset"].isin(fake_records.ENCODED)
    each = [rows[encoded].assign(condition=rows["preset"] + mark) for mark in (" (minilm)", *(f" (minilm, k={k})" for k in (1, 3, 5, 10)))]
    return pd.concat([rows[~encoded].assign(condition=rows["preset"]), *each], ignore_index=True)


@pytest.mark.parametrize("draw", FIGURES)
def test_long_labels_stay_inside_the_picture(draw):
    figure = draw(many_rows())
    figure.draw_without_rendering()
    width, height = figure.canvas.get_width_height()
    boxes = {text.get_text(): text.get_window_extent() for text in figure.findobj(Text) if text.get_visible() and text.get_text()}
    assert [words for words, box in boxes.items() if box.x0 < 0 or box.x1 > width or box.y0 < 0 or box.y1 > height] == []


@pytest.mark.parametrize("draw", FIGURES)
def test_panels_keep_their_width_beside_names_of_many_settings(draw):
    rows = many_rows()
    asleep = rows[rows["preset"] == "baselines/rag_bm25"].assign(regime="after_sleep")
    named = asleep.assign(condition="baselines/rag_bm25 (replay.cycles=3, replay.noise_level=0.4)")
    figure = draw(pd.concat([rows, asleep, named], ignore_index=True))
    assert min(panel.get_position().width * drawing.WIDTH for panel in figure.axes) > 0.7


def test_each_bar_adds_up_and_only_what_fits_is_named():
    rows = [("few", "kinds", "all", 20), *(("many", "kinds", f"kind {number}", 1) for number in range(100)), ("few", "rungs", "exact", 20)]
    figure = composition(pd.DataFrame(rows, columns=["suite", "by", "name", "items"]))
    kinds = figure.axes[0]
    assert [label.get_text() for label in kinds.get_yticklabels()] == ["few", "many"]
    for row in range(2):
        assert sum(bar.get_width() for bar in kinds.patches if bar.get_y() == pytest.approx(row - 0.4)) == pytest.approx(1)
    assert {text.get_text() for text in kinds.texts} == {"all 20", ""}


@pytest.mark.parametrize(("action", "stored"), [(0, 0), (5, 4)])
def test_without_a_gate_it_counts_what_became_of_the_facts(action, stored):
    rows = pd.DataFrame({"S": [np.nan] * action, "action": ["insert"] * stored + ["aggregate"] * (action - stored)})
    figure = gate_spread(rows)
    [panel] = figure.axes
    assert [text.get_text() for text in panel.texts] == [str(stored), str(action - stored), "0"]
    assert f"{stored} of {action} facts were stored" in figure.texts[0].get_text()


def test_with_a_gate_it_spreads_the_facts_over_their_salience():
    rows = pd.DataFrame({"S": [0.1, 0.9, 0.8], "action": ["refuse", "insert", "insert"]})
    figure = gate_spread(rows)
    assert figure.axes[0].get_xlabel() == "S, the salience of a fact"
    assert sum(bar.get_height() for bar in figure.axes[0].patches) >= 3


def test_a_glance_leaves_out_columns_in_which_nothing_stands():
    assert list(lab.preview(pd.DataFrame({"S": [np.nan], "action": ["insert"]}))) == ["action"]
