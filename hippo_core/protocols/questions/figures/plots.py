"""The lab's figures. Each function takes item rows and returns a matplotlib Figure whose title is its claim.

Bars are always 95% intervals, clustered by world. Axes of proportions run from 0 to 1 with the chance line drawn. Looks: `palette`.
The top `HEADER` inches of every figure hold nothing but the title, so that a page may show the title as text instead.
"""

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hippo_core.protocols.questions.figures import titles
from hippo_core.protocols.questions.sweeps import Sweep, on_axis
from hippo_core.results import summaries
from hippo_core.results.conditions import ignores_window, is_control, ordered
from hippo_core.results.figures.drawing import (
    STYLE,
    WIDTH,
    Margins,
    abreast,
    bars,
    body_for,
    chance_line,
    grid,
    label_ends,
    label_points,
    text_width,
)
from hippo_core.results.figures.palette import CHANCE, INK, QUIET, RULE, Style, style_of
from hippo_core.results.frames import Frame

TICKS, TICK_LABELS = [0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"]
STACKED = 0.95  # inches between panels one below the other, for the axis of one and the heading of the next
MEASURES = {"score": "answers right", "recall_1": "right fact first"}
ACROSS = 4  # panels side by side


def conditions_overview(rows: Frame) -> Figure:
    """A dot and interval for each condition; immediate and delayed side by side. Higher is better."""
    rows = summaries.in_both_regimes(rows)
    table = summaries.estimate(rows, ["condition", "regime"])
    if table.empty:
        return _nothing()
    names = ordered(table["condition"])
    margins = Margins(max(1.35, text_width(_labels(names), 11) + 0.2), 0.55, gap=0.62, between=STACKED)
    figure, panels, first = _by_regime(titles.overview(rows), table, 0.31 * len(names) + 0.62, margins)
    with matplotlib.rc_context(STYLE):
        for panel, here in panels:
            _dots(panel, here, names)
            panel.set_xlabel(_measure(rows), fontsize=10)
            chance_line(panel, here["chance"].mean(), upright=True)
        for panel in first:
            panel.set_yticks(range(len(names)), _labels(names), fontsize=11)
    return figure


def _by_regime(title: str, table: Frame, body: float, margins: Margins) -> tuple[Figure, list[tuple[Axes, Frame]], list[Axes]]:
    """A figure with a panel for each regime, each with its part of the table by condition, and the panels that stand first in a line."""
    regimes = summaries.regimes_of(table)
    lines, columns, body = abreast(len(regimes), body, margins)
    figure, panels = grid(title, lines, columns, body, margins)
    with matplotlib.rc_context(STYLE):
        for panel, regime in zip(panels, regimes, strict=True):
            panel.set_title(regime, loc="left", fontsize=11, color=QUIET, pad=6)
    parts = [table[table["regime"] == regime].set_index("condition") for regime in regimes]
    return figure, list(zip(panels, parts, strict=True)), panels[::columns]


def _measure(rows: Frame) -> str:
    """What the axis of scores shows."""
    return "share of answers right" if titles.right_or_wrong(rows) else "mean score"


def _nothing() -> Figure:
    """What stands in the place of a figure where its rows hold no measurement."""
    figure, (panel,) = grid("Nothing was scored", 1, 1, 1.2, Margins(0.3, 0.3))
    panel.set_axis_off()
    return figure


def _labels(names: list[str]) -> list[str]:
    return [style_of(name).label for name in names]


def _dots(panel: Axes, table: Frame, names: list[str]) -> None:
    for height, name in enumerate(names):
        panel.axhline(height, color=RULE, linewidth=0.6, zorder=0)
        if name in table.index:
            style, row = style_of(name), table.loc[name]
            bars(panel, [height], table.loc[[name]], style, across=True)
            panel.text(1.04, height, f"{row['mean']:.2f}", fontsize=10.5, va="center", color=INK)
    panel.set(xlim=(-0.02, 1.02), ylim=(len(names) - 0.5, -1.05), xticks=TICKS, xticklabels=TICK_LABELS, yticks=[])
    panel.spines["left"].set_visible(False)
    panel.tick_params(axis="y", length=0)


def accuracy_by(rows: Frame, column: str, joined: bool = False, title: str = "") -> Figure:
    """Accuracy along the values of a column (rung, kind, hops, distance), a small panel for each condition and regime. Higher is better."""
    rows = summaries.labelled(rows)
    table = summaries.estimate(rows, ["condition", "regime", column])
    if table.empty:
        return _nothing()
    names = ordered(table["condition"])
    panels_of = [(name, regime) for name in names for regime in summaries.regimes_of(table[table["condition"] == name])]
    values, windowed = summaries.order_of(rows, column), (table["regime"] == "immediate").any()
    margins = Margins(0.45, 0.7, 0.16, foot=0.95 if _tilted(values) else 0.55, between=0.55, head=0.42)
    wide, longest = WIDTH - margins.left - margins.right + margins.gap, text_width(_labels(names), 10) + 0.12
    most = min(5, max(2, int(wide / longest)))  # panels side by side, so that no title runs into the next
    lines = -(-len(panels_of) // most)
    columns = -(-len(panels_of) // lines)
    size = min(10.0, 10 * wide / most / longest)
    body = 1.25 * lines + 0.55 * (lines - 1) + margins.foot
    figure, panels = grid(title or f"Accuracy by {column}", lines, columns, body, margins)
    with matplotlib.rc_context(STYLE):
        for panel in panels[len(panels_of) :]:
            panel.set_visible(False)
        for index, (panel, (name, regime)) in enumerate(zip(panels, panels_of, strict=False)):
            here = table[(table["condition"] == name) & (table["regime"] == regime)].set_index(column)
            _small(panel, here, values, style_of(name), joined)
            note = "both regimes" if windowed and regime == "delayed" and ignores_window(name) else regime
            panel.set_title(style_of(name).label, loc="left", fontsize=size, color=INK, pad=14)
            panel.text(0, 1.03, note, transform=panel.transAxes, fontsize=8.5, color=QUIET, va="bottom")
            last = index % columns == columns - 1 or index == len(panels_of) - 1
            chance_line(panel, here["chance"].mean(), upright=False, beside=last)
            _ticks(panel, values, below=index + columns >= len(panels_of), left=index % columns == 0)
    return figure


def _tilted(values: list) -> bool:
    return max((len(str(value)) for value in values), default=0) * len(values) > 12


def _ticks(panel: Axes, values: list, below: bool, left: bool) -> None:
    turn = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if _tilted(values) else {}
    panel.set_xticks(range(len(values)), [str(value) if below else "" for value in values], fontsize=9.5, **turn)
    panel.set_yticks([0, 0.5, 1], ["0", "0.5", "1"] if left else [""] * 3, fontsize=9.5)


def rungs_by_condition(rows: Frame) -> Figure:
    """Accuracy by way of asking: exact, partial, paraphrase, noisy. A flat line is a condition that answers all four alike."""
    return accuracy_by(rows, "rung", joined=True, title=titles.ladder(rows))


def _small(panel: Axes, table: Frame, values: list, style: Style, joined: bool) -> None:
    for height in (0.5, 1):
        panel.axhline(height, color=RULE, linewidth=0.6, zorder=0)
    positions = [position for position, value in enumerate(values) if value in table.index]
    shown = table.loc[[values[position] for position in positions]]
    if joined:
        panel.plot(positions, shown["mean"], style.line, color=style.colour, linewidth=1.3, alpha=0.8, zorder=2)
    bars(panel, positions, shown, style, across=False, size=5)
    panel.set(xlim=(-0.5, len(values) - 0.5), ylim=(-0.03, 1.03))


def recall_at_k(rows: Frame) -> Figure:
    """The share of gold facts among the first k of each ranking; controls only where nothing else ranks. Higher and earlier is better."""
    rows = summaries.labelled(rows)
    rows = rows[rows["recall_1"].notna() & (rows["regime"] == "delayed")]
    control = rows["condition"].map(is_control)
    if rows.empty:
        return _nothing()
    rows = rows if control.all() else rows[~control]
    names, ks = ordered(rows["condition"]), (1, 3, 5, 10)
    right = max(1.9, text_width([f"{label}  0.00" for label in _labels(names)], 11) + 0.15)
    figure, (panel,) = grid(titles.recall(rows), 1, 1, body_for(len(names), 2.75), Margins(0.7, right))
    means = pd.concat([summaries.estimate(rows, ["condition"], f"recall_{k}") for k in ks]).set_index("condition")
    with matplotlib.rc_context(STYLE):
        for index, name in enumerate(names):
            style, shift = style_of(name), min(0.1, 0.55 / len(names)) * (index - (len(names) - 1) / 2)
            panel.plot(np.arange(4) + shift, means.loc[name, "mean"], style.line, color=style.colour, linewidth=1.5)
            bars(panel, np.arange(4) + shift, means.loc[name], style, across=False)
        label_ends(panel, 3.4, {name: means.loc[name, "mean"].iloc[-1] for name in names})
        panel.set(xlim=(-0.35, 3.35), ylim=(-0.03, 1.03))
        panel.set_xticks(range(4), [f"first {k}" if k > 1 else "first" for k in ks], fontsize=11)
        panel.set_yticks(TICKS, TICK_LABELS, fontsize=11)
        panel.grid(axis="y", linewidth=0.6)
        panel.set_ylabel("gold facts found", fontsize=10.5)
    return figure


def tokens_against_accuracy(rows: Frame) -> Figure:
    """Mean prompt tokens of a condition against its accuracy. Up and to the left is better."""
    rows = summaries.in_both_regimes(rows)
    table = summaries.estimate(rows, ["condition", "regime"])
    if table.empty:
        return _nothing()
    table = table.join(rows.groupby(["condition", "regime"])["prompt_tokens"].mean().rename("tokens"), on=["condition", "regime"])
    right = max(1.25, text_width(_labels(ordered(table["condition"])), 10) + 0.4)  # what label_points leaves to the panel included
    margins = Margins(0.6, right, gap=right + 0.1, between=STACKED)
    figure, panels, first = _by_regime(titles.cost(rows), table, body_for(table.groupby("regime").size().max(), 3.0), margins)
    widest = 1.08 * table["tokens"].max()
    with matplotlib.rc_context(STYLE):
        for panel, here in panels:
            here, chance = here.loc[ordered(here.index)], here["chance"].mean()
            for name in here.index:
                bars(panel, [here.loc[name, "tokens"]], here.loc[[name]], style_of(name), across=False)
            label_points(panel, 1.04 * widest, here)
            chance_line(panel, chance, upright=False)
            panel.text(0.99 * widest, chance, f"chance {chance:.2f}", fontsize=9, color=CHANCE, ha="right", va="bottom")
            panel.set(xlim=(0, widest), ylim=(-0.03, 1.03), yticks=TICKS, yticklabels=TICK_LABELS)
            panel.set_xlabel("tokens in the prompt", fontsize=10)
        for panel in first:
            panel.set_ylabel(_measure(rows), fontsize=10)
    return figure


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
