"""Sleeps in a row: the accuracy on each group after each sleep, as a heat map."""

import matplotlib
import matplotlib.colors
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from hippo_core.results.figures.drawing import STYLE, Margins, grid
from hippo_core.results.figures.palette import INK, QUIET
from hippo_core.results.frames import Frame

SHADES = matplotlib.colors.LinearSegmentedColormap.from_list("accuracy", ("#f6f7f9", "#7fb8b1", "#0f766e"))
WRITTEN = 12  # groups up to which each cell holds its number


def heat_map(table: Frame) -> Figure:
    """R[i, j], the accuracy on group j (columns) after sleep i (index; 0: before the first); NaN stays white. Framed: the
    group's own sleep. More is darker, and better."""
    values, count = table.to_numpy(dtype=float), table.shape[1]
    after_own_sleep = np.nanmean([values[group, column] for column, group in enumerate(table.columns) if group < len(values)])
    end = values[-1].mean()
    title = f"Right after its own sleep a group is answered to {after_own_sleep:.0%}"
    title += f", after the last of {count} sleeps to {end:.0%}; darker is better" if np.isfinite(end) else "; darker is better"
    return drawn(table, title, "asked about group", "after sleep")


def drawn(table: Frame, title: str, across: str, down: str, left: float = 0.85) -> Figure:
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
