"""How salience is spread: over what a gate was told, and over what a replay raised and let fade."""

from collections.abc import Callable

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from hippo_core.results.figures.drawing import STYLE, Margins, grid
from hippo_core.results.figures.palette import INK, QUIET, RULE
from hippo_core.results.frames import Frame

ACTIONS = {
    "insert": ("stored", "#0072b2"),
    "aggregate": ("added to a trace", "#56b4e9"),
    "route": ("kept until there is more evidence", "#e69f00"),
    "refuse": ("refused", "#a3a8b0"),
}
BINS = 30


def gate_spread(rows: Frame) -> Figure:
    """How many facts have which S, by what became of them; without a gate, which weighs nothing, only how many became what. A gate that
    works has what is asked for at the right."""
    weighed = rows[rows["S"].notna()]
    if not len(weighed):
        return _actions(rows)
    written = (rows["action"] != "refuse").mean()
    figure, (panel,) = grid(f"{written:.0%} of {len(rows)} facts were stored", 1, 1, 2.6, Margins(0.7, 0.3))
    edges = np.histogram_bin_edges(weighed["S"], BINS)
    there = [action for action in ACTIONS if (weighed["action"] == action).any()]
    shown = [weighed.loc[weighed["action"] == action, "S"] for action in there]
    with matplotlib.rc_context(STYLE):
        labels, colours = zip(*(ACTIONS[action] for action in there), strict=True)
        panel.hist(shown, bins=list(edges), stacked=True, color=colours, label=labels)
        panel.set_xlabel("S, the salience of a fact", fontsize=10)
        panel.set_ylabel("facts", fontsize=10)
        panel.legend(frameon=False, fontsize=10)
    return figure


def _actions(rows: Frame) -> Figure:
    """How many facts became what, where none was weighed."""
    counts = {action: int((rows["action"] == action).sum()) for action in ACTIONS}
    counts = {action: count for action, count in counts.items() if count or action != "route"}
    title = f"{counts['insert']} of {len(rows)} facts were stored; no gate weighed them"
    figure, (panel,) = grid(title, 1, 1, 1.4, Margins(1.4, 0.3))
    with matplotlib.rc_context(STYLE):
        labels, colours = zip(*(ACTIONS[action] for action in counts), strict=True)
        bars = panel.barh(labels, list(counts.values()), 0.6, color=colours)
        panel.bar_label(bars, padding=4, fontsize=10)
        panel.invert_yaxis()
        panel.set_xlim(0, max(1, len(rows)) * 1.1)
        panel.set_xlabel("facts", fontsize=10)
    return figure


def replay_change(rows: Frame) -> Figure:
    """Salience before and after each replay of a trace: above the line it was raised, below it was let fade."""
    recalled = rows["recalled"].mean() if len(rows) else 0.0
    figure, (panel,) = grid(f"{recalled:.0%} of {len(rows)} replayed traces were recalled", 1, 1, 3.2, Margins(0.7, 0.3))
    with matplotlib.rc_context(STYLE):
        both = rows[["salience_before", "salience_after"]].to_numpy(dtype=float)
        ends = [both.min(initial=0.0), both.max(initial=1.0)]
        panel.plot(ends, ends, color=RULE, linewidth=1, zorder=1)
        for hit, colour, label in ((1, INK, "recalled"), (0, QUIET, "not recalled")):
            here = rows[rows["recalled"] == hit]
            dots = {"s": 14, "facecolors": colour if hit else "none", "edgecolors": colour, "zorder": 2}
            panel.scatter(here["salience_before"], here["salience_after"], label=label, **dots)
        panel.set_xlabel("salience before", fontsize=10)
        panel.set_ylabel("salience after", fontsize=10)
        panel.legend(frameon=False, fontsize=10)
    return figure


FIGURES: dict[str, Callable[[Frame], Figure]] = {"teach": gate_spread, "replay": replay_change}  # by the mode of a cell
