"""The figures of the cache experiment: what they show is what they were given, and nothing is hidden or cut off."""

import pandas as pd
import pytest

from hippo_core.protocols.cache import bit_figures as cache_bits
from hippo_core.protocols.cache import figures as cache

MANY = ["none", "reset", "masking", "smoothing", "clipping", "detect_clear", "rms_outlier", "median", "learned", "wiener", "episodic"]


def curves(defences=("none", "clipping"), kinds=("targeted", "gaussian")):
    return pd.DataFrame(
        {"kind": kind, "defence": name, "task": task, "severity": severity, "kept": 1 - severity / (1 + place)}
        for kind in kinds
        for place, name in enumerate(defences)
        for task in ("text", "needle")
        for severity in (0.0, 0.5, 1.0)
    )


def test_the_faults_stand_in_their_order_and_the_title_is_about_damaged_caches():
    figure = cache.robustness(curves())
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["gaussian", "targeted"]
    assert "keep 25%" in figure.texts[0].get_text() and "clipping 62%" in figure.texts[0].get_text()


def test_of_many_defences_those_that_matter_have_their_colours():
    figure = cache.robustness(curves(MANY))
    lines = {line.get_label(): line for line in figure.axes[0].get_lines() if not line.get_label().startswith("_")}
    assert set(lines) == {cache.LOOKS[name].label for name in ("none", "clipping", "learned", "wiener", "episodic")} | {"the others"}
    assert len(figure.axes[0].get_lines()) == len(MANY) + 2  # two levels
    assert len(figure.legends[0].get_texts()) == 6


@pytest.mark.parametrize("draw", ["cost", "robustness"])
def test_a_legend_lies_within_the_figure(draw):
    rows = curves(MANY).assign(repair_ms=1.0)
    figure = cache.cost(rows, rows) if draw == "cost" else cache.robustness(rows)
    figure.canvas.draw()
    legends = [*figure.legends, *(own for panel in figure.axes if (own := panel.get_legend()))]
    assert legends
    for legend in legends:
        box = legend.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y0 >= 0


def test_costs_are_ranked_by_what_is_kept():
    rows = curves(MANY).assign(repair_ms=1.0)
    shown = [text.get_text() for text in cache.cost(rows, rows).axes[0].get_legend().get_texts()]
    assert shown == [cache.LOOKS[name].label for name in reversed(MANY)]


def test_a_format_whose_bits_cost_nothing_says_so():
    lost = pd.DataFrame({"stored": ["int8"] * 2 + ["float32"] * 2, "bit": [0, 7, 0, 30], "lost": [0.0, 0.01, 0.0, 4.0]})
    panels = cache_bits.bits(lost).axes
    assert [panel.get_title(loc="left") for panel in panels] == ["float32", "int8"]
    assert [[text.get_text() for text in panel.texts] for panel in panels] == [[], ["at most 0.01"]]


def test_of_many_layers_a_few_have_their_number():
    panels = cache.amplification({"amplification_map": {"none": [[1.0] * 3] * 30, "episodic": [[0.0] * 3] * 30}}).axes
    assert [list(panel.get_yticks()) for panel in panels] == [list(range(0, 30, 4)), []]
