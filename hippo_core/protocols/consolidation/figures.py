"""Consolidation: every probe before a sleep and after it, and what ways into a model bring against what they cost."""

from collections.abc import Mapping

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from hippo_core.results.figures.drawing import STYLE, Margins, grid
from hippo_core.results.figures.palette import INK, QUIET, RULE
from hippo_core.results.frames import Frame
from hippo_core.results.statistics.interval import cluster_interval

BEFORE, AFTER = "#9aa3af", "#0f766e"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#a6447f")  # of ways
MARKERS = "osD^vP*X"
AXES = ("lost", "uplift")  # across and up


def before_and_after(rows: Frame, titles: Mapping[str, str]) -> Figure:
    """Two dots with 95% intervals a probe: before sleep, and after the last cycle; `titles` names the probes."""
    asked = rows[rows["probe"] != "text"]
    names = list(dict.fromkeys(asked["probe"]))
    last = list(dict.fromkeys(asked["stage"]))[-1]
    off = asked[asked["probe"] == "off"].groupby("stage")["score"].mean()
    title = f"With its memory off the model answers {off[last]:.0%} after sleep, {off['pre']:.0%} before"
    margins = Margins(2.35, 0.5)
    figure, [panel] = grid(title, 1, 1, 0.42 * len(names) + 0.62, margins)
    with matplotlib.rc_context(STYLE):
        for place, name in enumerate(names):
            ends = []
            for stage, color in (("pre", BEFORE), (last, AFTER)):
                here = asked[(asked["probe"] == name) & (asked["stage"] == stage)].dropna(subset=["score"])
                found = cluster_interval(here["score"].to_numpy(dtype=float), here["world"].to_numpy())
                height = place - 0.12 if stage == "pre" else place + 0.12
                if np.isfinite(found.low):
                    panel.plot([found.low, found.high], [height, height], color=color, linewidth=2, alpha=0.6)
                panel.plot(
                    [found.mean],
                    [height],
                    "o",
                    color=color,
                    markersize=7,
                    label=("before" if stage == "pre" else "after") if not place else None,
                )
                ends.append(found.mean)
        panel.set_yticks(range(len(names)), [titles.get(name, name) for name in names], fontsize=11, color=INK)
        panel.set_ylim(len(names) - 0.5, -0.5)
        panel.set_xlim(-0.03, 1.03)
        panel.set_xlabel("share of answers right", fontsize=10)
        panel.xaxis.grid(True, color=RULE, linewidth=0.7)
        panel.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=10, labelcolor=QUIET)
    return figure


def uplift_against_damage(points: Frame) -> Figure:
    """A cross with 95% intervals a line of `points`: up is what is answered more with the memory off, right what is read worse.

    Args:
        points: `name`, `way`, and `uplift` and `lost` (shares of answers), each with `_low` and `_high` (None where there is none).
    """
    best = points.loc[points["uplift"].idxmax()]
    title = f"With its memory off the model answers up to {best['uplift']:.2f} more of the questions after sleep: up and left is good"
    figure, [panel] = grid(title, 1, 1, 3.4 + 0.2 * len(points), Margins(0.75, 0.3, foot=0.9 + 0.2 * len(points)))
    colours = {way: COLOURS[place % len(COLOURS)] for place, way in enumerate(dict.fromkeys(points["way"]))}
    with matplotlib.rc_context(STYLE):
        for number, point in enumerate(points.to_dict("records")):
            ends = [
                [[0.0 if end is None or end != end else abs(point[measure] - end)] for end in _ends(point, measure)] for measure in AXES
            ]
            panel.errorbar(
                point["lost"],
                point["uplift"],
                xerr=ends[0],
                yerr=ends[1],
                color=colours[point["way"]],
                marker=MARKERS[number % len(MARKERS)],
                markersize=7,
                linestyle="none",
                elinewidth=1.6,
                alpha=0.9,
                label=point["name"],
            )
        panel.axvline(0, color=RULE, linewidth=1, zorder=0)
        panel.axhline(0, color=RULE, linewidth=1, zorder=0)
        panel.set_xlabel("share of answers lost on other facts in the prompt", fontsize=10)
        panel.set_ylabel("uplift, memory off", fontsize=10)
        panel.legend(loc="upper left", bbox_to_anchor=(0.0, -0.2), frameon=False, fontsize=9, labelcolor=QUIET)
    return figure


def _ends(point: Mapping[str, float | None], measure: str) -> tuple[float | None, float | None]:
    return point[f"{measure}_low"], point[f"{measure}_high"]
