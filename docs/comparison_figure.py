"""Two conditions beside each other, a line for each kind of question: the share of right answers of each, and what a question costs."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from hippo_core.results.figures.drawing import STYLE, Margins, grid, png, text_width
from hippo_core.results.figures.palette import QUIET, RULE
from hippo_core.results.formatting import missing, share, span

COLOUR_AND_MARKER = (("#a33b00", "o"), ("#4f6a5b", "D"))  # of the two conditions
LINE, WORDS = 0.62, 34  # inches of a line; letters of its name abreast
APART = 0.15  # half of what lies between the two markers of a line


@dataclass(frozen=True)
class PlotSide:
    """The share of answers right with its 95% interval (NaN where there is none), and in words what a question costs. `value` is None
    where it was not measured."""

    value: float | None
    low: float
    high: float
    cost: str = ""


def comparison_figure(title: str, names: Sequence[str], lines: Sequence[tuple[str, Sequence[PlotSide]]]) -> bytes:
    """The figure as PNG. `names`: of the two conditions; `lines`: what is asked, and a side for each condition."""
    asked = [textwrap.fill(name, WORDS, break_on_hyphens=False) for name, _ in lines]
    costs = [side.cost for _, sides in lines for side in sides if side.cost]
    margins = Margins(
        text_width((part for name in asked for part in name.split("\n")), 10) + 0.25, text_width(costs, 9) + 0.3, foot=0.5, head=0.34
    )
    figure, [panel] = grid(title, 1, 1, LINE * len(lines) + margins.foot, margins)
    with matplotlib.rc_context(STYLE):
        for height, (_, sides) in enumerate(lines):
            panel.axhline(height + 0.5, color=RULE, linewidth=0.6, zorder=0)
            for index, side in enumerate(sides):
                _draw_side(panel, height + (2 * index - 1) * APART, side, *COLOUR_AND_MARKER[index])
        panel.set(xlim=(-0.02, 1.02), ylim=(len(lines) - 0.5, -0.5), xticks=[0, 0.5, 1], yticks=range(len(lines)))
        panel.set_xticklabels(["0", "0.5", "1"])
        panel.set_yticklabels(asked, fontsize=10)
        panel.spines["left"].set_visible(False)
        panel.tick_params(axis="y", length=0)
        panel.set_xlabel("share of answers right", fontsize=10)
        marks = [
            Line2D([], [], color=colour, marker=marker, linestyle="none", markersize=7, label=name)
            for name, (colour, marker) in zip(names, COLOUR_AND_MARKER, strict=True)
        ]
        at = (0.005, panel.get_position().y1 + 0.3 / figure.get_figheight())
        figure.legend(handles=marks, loc="upper left", bbox_to_anchor=at, ncols=2, frameon=False, fontsize=10, handletextpad=0.1)
        if costs:
            panel.text(1.06, -0.56, "a question costs", fontsize=9, va="bottom", color=QUIET)
        return png(figure, described(names, lines))


def described(names: Sequence[str], lines: Sequence[tuple[str, Sequence[PlotSide]]]) -> str:
    """What the figure shows, in words: they lie in its file, so that one can see of which numbers it was drawn."""
    return "\n".join(f"{asked}: {'; '.join(_words(*pair) for pair in zip(names, sides, strict=True))}" for asked, sides in lines)


def _words(name: str, side: PlotSide) -> str:
    return f"{name} {share(side.value)} ({span(side.low, side.high)}) {side.cost}".rstrip()


def _draw_side(panel: Axes, height: float, side: PlotSide, colour: str, marker: str) -> None:
    if side.value is None:
        return
    if not missing(side.low):
        panel.plot([side.low, side.high], [height, height], color=colour, linewidth=1.8, alpha=0.55, zorder=2, solid_capstyle="butt")
    panel.plot([side.value], [height], marker, color=colour, markersize=7, zorder=3, clip_on=False)
    inside = side.value > 0.5  # the number stands where the axis has room
    end = max(side.value, side.high) if not missing(side.high) else side.value
    begin = min(side.value, side.low) if not missing(side.low) else side.value
    at = begin - 0.025 if inside else end + 0.025
    panel.text(at, height, share(side.value), fontsize=9.5, va="center", ha="right" if inside else "left", color=colour, weight="bold")
    panel.text(1.06, height, side.cost, fontsize=9, va="center", color=colour)
