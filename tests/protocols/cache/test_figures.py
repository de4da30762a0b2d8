"""The figures of the cache experiment: what they show is what they were given, and nothing is hidden or cut off."""

import pandas as pd
import pytest

from hippo_core.protocols.cache import figures as cache

MANY = ["none", "reset", "masking", "smoothing", "clipping", "detect_clear", "rms_outlier", "median", "learned", "wiener", "episodic"]


def curves(defences=("none", "clipping"), kinds=("targeted", "gaussian")):
    return pd.DataFrame(
        {"kind": kind, "defence": name, "task": task, "severity": severity, "kept": 1 - severity / (1 + index)}
        for kind in kinds
        for index, name in enumerate(defences)
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
    assert set(lines) == {cache.STYLES[name].label for name in ("none", "clipping", "learned", "wiener", "episodic")} | {"the others"}
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
