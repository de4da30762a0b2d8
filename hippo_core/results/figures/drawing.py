"""What all figures share: the style, the canvas with its title, dots with intervals, the chance line, labels that do not collide, and heat
maps of what was learnt in a row."""

import io
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import matplotlib
import matplotlib.colors
import numpy as np
import seaborn
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextPath
from numpy.typing import ArrayLike

from hippo_core.results.figures.palette import CHANCE, INK, QUIET, RULE, Style, style_of
from hippo_core.results.frames import Frame

WIDTH = 7.2
HEADER = 0.66
FOOT = 0.52
AXIS = 1.06  # how high an axis of proportions is: -.03 to 1.03
NARROWEST = 1.0  # inches of a panel beside another
LABEL = 0.2  # inches from one name in a column to the next
DPI = 200
SHADES = matplotlib.colors.LinearSegmentedColormap.from_list("accuracy", ("#f6f7f9", "#7fb8b1", "#0f766e"))
WRITTEN = 12  # groups up to which each cell of a heat map holds its number
TITLE = {"fontsize": 12.5, "fontweight": "bold", "va": "bottom", "linespacing": 1.25}
STYLE: Any = {
    **seaborn.axes_style("ticks"),
    **seaborn.plotting_context("paper", font_scale=1.2),
    "font.family": "DejaVu Sans",
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "grid.color": RULE,
    "svg.hashsalt": "hippo",
    "axes.linewidth": 0.8,
}


def png(figure: Figure, description: str = "") -> bytes:
    """The figure as PNG bytes, with its `description` in words, where there is one; the same rows give the same bytes."""
    with matplotlib.rc_context(STYLE), io.BytesIO() as buffer:
        figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None, "Description": description or None})
        return buffer.getvalue()


@dataclass(frozen=True, slots=True)
class Margins:
    """Where panels stand in a figure, in inches: free space at the sides, below and above, and the gaps between columns and rows."""

    left: float
    right: float
    gap: float = 0.0
    foot: float = FOOT
    between: float = 0.4
    head: float = 0.3


def abreast(panels: int, body: float, margins: Margins) -> tuple[int, int, float]:
    """Lines, columns and body of so many panels of this body: side by side where each is wide enough, else one below the other."""
    wide = WIDTH - margins.left - margins.right - margins.gap * (panels - 1)
    if wide >= panels * NARROWEST:
        return 1, panels, body
    return panels, 1, panels * (body - margins.foot) + (panels - 1) * margins.between + margins.foot


def grid(title: str, lines: int, columns: int, body: float, margins: Margins) -> tuple[Figure, list[Axes]]:
    """A figure with its title in the header and a grid of panels in the `body` inches below; the foot is part of the body."""
    height = HEADER + margins.head + body
    wide, tall = WIDTH - margins.left - margins.right, body - margins.foot
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height))
        FigureCanvasAgg(figure)
        figure.text(0.1 / WIDTH, 1 - (HEADER - 0.08) / height, textwrap.fill(title, 66, max_lines=2, placeholder=" …"), **TITLE)
        panels = figure.subplots(lines, columns, squeeze=False)
        figure.subplots_adjust(
            left=margins.left / WIDTH,
            right=1 - margins.right / WIDTH,
            top=1 - (HEADER + margins.head) / height,
            bottom=margins.foot / height,
            wspace=margins.gap / ((wide - margins.gap * (columns - 1)) / columns),
            hspace=margins.between / ((tall - margins.between * (lines - 1)) / lines),
        )
    return figure, list(panels.flat)


def text_width(texts: Iterable[str], size: float) -> float:
    """The inches that the longest of some texts takes at a font size."""
    return max(TextPath((0, 0), text, size=size).get_extents().width for text in texts) / 72


def bars(panel: Axes, positions: ArrayLike, table: Frame, style: Style, across: bool, size: float = 6.5) -> None:
    """Markers at the means of a table's rows with their intervals, along x (`across`, places are heights) or along y."""
    means = table["mean"].to_numpy()
    ends = np.clip(np.nan_to_num([means - table["low"], table["high"] - means]), 0, None)
    x, y = (means, positions) if across else (positions, means)
    marker = {"marker": style.marker, "markerfacecolor": "white" if style.hollow else style.colour, "markersize": size}
    line = {"linestyle": "none", "color": style.colour, "markeredgewidth": 1.4, "elinewidth": 1.8, "capsize": 0}
    panel.errorbar(x, y, **{"xerr" if across else "yerr": ends}, **marker, **line, zorder=3, clip_on=False)


def chance_line(panel: Axes, chance: float, upright: bool, beside: bool = False) -> None:
    """The accuracy of a guess, dashed and labelled: at the top of an upright line, at the right end of a level one (`beside`: outside)."""
    if np.isnan(chance):
        return
    (panel.axvline if upright else panel.axhline)(chance, color=CHANCE, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    ink = {"fontsize": 9, "color": CHANCE}
    if upright:
        panel.text(chance + 0.015, panel.get_ylim()[1] + 0.1, f"chance {chance:.2f}", ha="left", va="top", **ink)
    elif beside:
        panel.text(panel.get_xlim()[1], chance, f" chance\n {chance:.2f}", va="center", **ink)


def label_points(panel: Axes, x: float, table: Frame) -> None:
    """Names in a column at the right of the panel, each with a hairline to its point."""
    for name, y in zip(table.index, _beside(panel, table["mean"].tolist()), strict=True):
        panel.plot([table.loc[name, "tokens"], x * 0.995], [table.loc[name, "mean"], y], color=RULE, linewidth=0.7, zorder=1, clip_on=False)
        panel.text(x, y, style_of(name).label, fontsize=10, va="center", color=_ink(style_of(name)))


def label_ends(panel: Axes, x: float, ends: dict[str, float]) -> None:
    """Names and values where lines end."""
    for (name, value), y in zip(ends.items(), _beside(panel, list(ends.values())), strict=True):
        panel.text(x, y, f"{style_of(name).label}  {value:.2f}", fontsize=11, va="center", color=_ink(style_of(name)))


def _ink(style: Style) -> str:
    """The colour of a label: the condition's own, darkened so that thin letters stay readable."""
    red, green, blue = matplotlib.colors.to_rgb(style.colour)
    return matplotlib.colors.to_hex((0.62 * red, 0.62 * green, 0.62 * blue))


def body_for(names: int, least: float) -> float:
    """The inches below the header of a figure with so many names in a column beside its panel."""
    return max(least, AXIS * LABEL * names + FOOT)


def _beside(panel: Axes, heights: list[float]) -> list[float]:
    """Heights moved apart so that names at them do not collide."""
    inches = panel.get_window_extent().height / panel.figure.dpi
    return _spread(heights, LABEL * AXIS / inches)


def _spread(heights: list[float], gap: float) -> list[float]:
    """Heights moved apart to at least `gap`, kept in order and within the axis."""
    order = np.argsort(heights, kind="stable")
    placed = np.array(heights, float)[order]
    for i in range(1, len(placed)):
        placed[i] = max(placed[i], placed[i - 1] + gap)
    if len(placed) and placed[-1] > 1.0:
        placed[-1] = 1.0
        for i in range(len(placed) - 2, -1, -1):
            placed[i] = min(placed[i], placed[i + 1] - gap)
    spread = np.empty(len(placed))
    spread[order] = placed
    return spread.tolist()


def heat_map(table: Frame) -> Figure:
    """R[i, j], the accuracy on group j (columns) after sleep i (index; 0: before the first); NaN stays white. Framed: the
    group's own sleep. More is darker, and better."""
    values, count = table.to_numpy(dtype=float), table.shape[1]
    after_own_sleep = np.nanmean([values[group, column] for column, group in enumerate(table.columns) if group < len(values)])
    end = values[-1].mean()
    title = f"Right after its own sleep a group is answered to {after_own_sleep:.0%}"
    title += f", after the last of {count} sleeps to {end:.0%}; darker is better" if np.isfinite(end) else "; darker is better"
    return matrix_map(table, title, "asked about group", "after sleep")


def matrix_map(table: Frame, title: str, across: str, down: str, left: float = 0.85) -> Figure:
    """A matrix as a heat map: what was learnt from left to right, after each stage from above (the first row: before all), framed where
    each was learnt. `left`: inches for the names of rows."""
    values, count = table.to_numpy(dtype=float), table.shape[1]
    figure, [panel] = grid(title, 1, 1, 0.34 * len(values) + 0.75, Margins(left, 0.4, foot=0.55, head=0.1))
    with matplotlib.rc_context(STYLE):
        panel.imshow(values, cmap=SHADES, vmin=0, vmax=1, aspect="auto")
        for row, column in np.argwhere(np.isfinite(values)) if count <= WRITTEN else ():
            number = values[row, column]
            panel.text(column, row, f"{number:.2f}", ha="center", va="center", fontsize=9, color="white" if number > 0.6 else INK)
        for stage in range(min(count, len(values) - 1)):
            panel.add_patch(Rectangle((stage - 0.5, stage + 0.5), 1, 1, fill=False, edgecolor=INK, linewidth=1.2))
        panel.set_xticks(range(count), [str(group) for group in table.columns], fontsize=9.5)
        panel.set_yticks(range(len(values)), ["before", *map(str, table.index[1:])], fontsize=9.5)
        panel.set_xlabel(across, fontsize=10)
        panel.set_ylabel(down, fontsize=10)
        panel.tick_params(length=0, colors=QUIET)
        panel.spines[:].set_visible(False)
    return figure
