"""Consolidation: every probe before a sleep and after it, and what update rules gain against what they cost."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from hippo_core.protocols.consolidation.parameters import ConsolidationParameters, SleepsParameters
from hippo_core.protocols.consolidation.sleeps_table import matrix
from hippo_core.protocols.consolidation.table import TITLES
from hippo_core.results.figures import drawing
from hippo_core.results.figures.drawing import STYLE, Margins, grid
from hippo_core.results.figures.palette import INK, QUIET, RULE
from hippo_core.results.frames import Frame
from hippo_core.results.statistics.interval import cluster_interval

BEFORE, AFTER = "#9aa3af", "#0f766e"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#a6447f")  # of update rules
MARKERS = "osD^vP*X"
Point = tuple[str, str, Mapping[str, Any], Mapping[str, Any]]  # name, update rule, changes with the memory off and in reading


def figure(parameters: ConsolidationParameters, rows: Frame) -> bytes:
    """Accuracy of every probe before and after (PNG)."""
    return drawing.png(before_and_after(rows))


def sleeps_figure(parameters: SleepsParameters, rows: Frame) -> bytes:
    """Accuracy on each group after each sleep, as a heat map (PNG)."""
    return drawing.png(drawing.heat_map(matrix(rows)))


def before_and_after(rows: Frame) -> Figure:
    """Two dots with 95% intervals a probe: before sleep, and after the last cycle."""
    asked = rows[rows["probe"] != "text"]
    names = list(dict.fromkeys(asked["probe"]))
    last = list(dict.fromkeys(asked["stage"]))[-1]
    off = asked[asked["probe"] == "off"].groupby("stage")["score"].mean()
    title = f"With its memory off the model answers {off[last]:.0%} after sleep, {off['pre']:.0%} before"
    figure, [panel] = grid(title, 1, 1, 0.42 * len(names) + 0.62, Margins(2.35, 0.5))
    with matplotlib.rc_context(STYLE):
        for row, name in enumerate(names):
            for stage, color, shift, label in (("pre", BEFORE, -0.12, "before"), (last, AFTER, 0.12, "after")):
                here = asked[(asked["probe"] == name) & (asked["stage"] == stage)].dropna(subset=["score"])
                interval = cluster_interval(here["score"].to_numpy(dtype=float), here["world"].to_numpy())
                if np.isfinite(interval.low):
                    panel.plot([interval.low, interval.high], [row + shift, row + shift], color=color, linewidth=2, alpha=0.6)
                panel.plot([interval.mean], [row + shift], "o", color=color, markersize=7, label=None if row else label)
        panel.set_yticks(range(len(names)), [str(TITLES.get(name, name)) for name in names], fontsize=11, color=INK)
        panel.set_ylim(len(names) - 0.5, -0.5)
        panel.set_xlim(-0.03, 1.03)
        panel.set_xlabel("share of answers right", fontsize=10)
        panel.xaxis.grid(True, color=RULE, linewidth=0.7)
        panel.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=10, labelcolor=QUIET)
    return figure


def uplift_against_damage(points: Sequence[Point]) -> Figure:
    """A cross with 95% intervals an update rule: up, more is answered with the memory off; right, more is read wrongly."""
    best = max(won["difference"] for _, _, won, _ in points)
    title = f"With its memory off the model answers up to {best:.2f} more of the questions after sleep: up and left is good"
    figure, [panel] = grid(title, 1, 1, 3.4 + 0.2 * len(points), Margins(0.75, 0.3, foot=0.9 + 0.2 * len(points)))
    kinds = list(dict.fromkeys(update_rule for _, update_rule, _, _ in points))
    with matplotlib.rc_context(STYLE):
        for number, (name, update_rule, won, read) in enumerate(points):
            panel.errorbar(
                -read["difference"],
                won["difference"],
                xerr=_errors(read, "high", "low"),
                yerr=_errors(won, "low", "high"),
                color=COLOURS[kinds.index(update_rule) % len(COLOURS)],
                marker=MARKERS[number % len(MARKERS)],
                markersize=7,
                linestyle="none",
                elinewidth=1.6,
                alpha=0.9,
                label=name,
            )
        panel.axvline(0, color=RULE, linewidth=1, zorder=0)
        panel.axhline(0, color=RULE, linewidth=1, zorder=0)
        panel.set_xlabel("share of answers lost on other facts in the prompt", fontsize=10)
        panel.set_ylabel("uplift, memory off", fontsize=10)
        panel.legend(loc="upper left", bbox_to_anchor=(0.0, -0.2), frameon=False, fontsize=9, labelcolor=QUIET)
    return figure


def _errors(change: Mapping[str, Any], *ends: str) -> list[list[float]]:
    """How far the ends of an interval are from its middle; 0 where there is none."""
    return [[0.0 if change[end] is None else abs(change["difference"] - change[end])] for end in ends]
