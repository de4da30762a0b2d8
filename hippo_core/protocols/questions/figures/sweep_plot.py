"""The figure of a sweep: scores, and how often the right fact came first, along an axis; a panel for each of what else differs."""

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hippo_core.protocols.questions.figures import titles
from hippo_core.protocols.questions.sweeps import Sweep, on_axis
from hippo_core.results import summaries
from hippo_core.results.conditions import ordered
from hippo_core.results.figures.drawing import STYLE, Margins, bars, chance_line, grid, label_ends, text_width
from hippo_core.results.figures.palette import QUIET, style_of
from hippo_core.results.frames import Frame

MEASURES = {"score": "answers right", "recall_1": "right fact first"}
ACROSS = 4  # panels side by side


def sweep_figure(sweep: Sweep) -> Figure:
    """Lines over the values of the axis, evenly spaced. Higher is better."""
    measures = [name for name in MEASURES if sweep.rows[name].notna().any()]
    tables = {name: summaries.estimate(sweep.rows, ["panel", "line", "x"], name) for name in measures}
    values, lines = sorted(set(sweep.rows["x"])), ordered(sweep.rows["line"])
    columns = min(ACROSS, len(sweep.panels))
    bands = [sweep.panels[start : start + columns] for start in range(0, len(sweep.panels), columns)]
    panel_rows = [(measure, band) for band in bands for measure in measures]
    margins = Margins(0.62, text_width([f"{style_of(name).label}  0.00" for name in lines], 11) + 0.2, 0.16, 0.55, between=0.42)
    body = 1.75 * len(panel_rows) + 0.42 * (len(panel_rows) - 1) + margins.foot
    figure, panels = grid(titles.apart(sweep.axis, tables["score"]), len(panel_rows), columns, body, margins)
    with matplotlib.rc_context(STYLE):
        for row, (measure, band) in enumerate(panel_rows):
            for column in range(columns):
                panel = panels[row * columns + column]
                if column >= len(band):
                    panel.set_visible(False)
                    continue
                here = tables[measure][tables[measure]["panel"] == band[column]]
                _panel(panel, here, values, lines)
                if measure == "score" and here["chance"].nunique() == 1:
                    chance_line(panel, here["chance"].iloc[0], upright=False)
                panel.set_title(sweep.title(band[column]), loc="left", fontsize=10, color=QUIET, pad=5)
                panel.set_yticks([0, 0.5, 1], ["0", "0.5", "1"] if column == 0 else [""] * 3, fontsize=9.5)
                if column == 0:
                    panel.set_ylabel(MEASURES[measure], fontsize=10)
                if measure == measures[-1]:
                    panel.set_xlabel(sweep.axis, fontsize=10)
                if column == len(band) - 1:
                    label_ends(panel, len(values) - 0.6, _ends(here, lines))
    return figure


def _panel(panel: Axes, table: Frame, values: list[float], lines: list[str]) -> None:
    for index, name in enumerate(lines):
        mine = table[table["line"] == name].sort_values("x")
        positions = np.array([values.index(x) for x in mine["x"]]) + 0.3 / len(lines) * (index - (len(lines) - 1) / 2)
        panel.plot(positions, mine["mean"], style_of(name).line, color=style_of(name).colour, linewidth=1.4, zorder=2)
        bars(panel, positions, mine, style_of(name), across=False, size=4.5)
    panel.set(xlim=(-0.4, len(values) - 0.6), ylim=(-0.03, 1.03))
    panel.set_xticks(range(len(values)), [on_axis(value) for value in values], fontsize=9.5)
    panel.grid(axis="y", linewidth=0.6)


def _ends(table: Frame, lines: list[str]) -> dict[str, float]:
    last = table.sort_values("x").groupby("line")["mean"].last()
    return {name: last[name] for name in lines if name in last.index}
