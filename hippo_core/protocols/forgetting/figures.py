"""The matrix of a cell, and what is left of the earlier tasks in the end, a line a learner."""

import matplotlib
from matplotlib.figure import Figure

from hippo_core.protocols.forgetting.parameters import ForgettingParameters
from hippo_core.protocols.forgetting.table import matrix
from hippo_core.results.figures import drawing
from hippo_core.results.figures.drawing import STYLE, Margins, bars, grid, text_width
from hippo_core.results.figures.palette import INK, QUIET, RULE, Style
from hippo_core.results.formatting import percent
from hippo_core.results.frames import Frame

METHOD, REFERENCE = Style("a method", "#0f766e", "o"), Style("a reference", QUIET, "o", hollow=True)


def figure(parameters: ForgettingParameters | None, rows: Frame) -> bytes:
    """The matrix of accuracy, mean of the initialisations, as a heat map (PNG)."""
    values = matrix(rows).to_numpy()
    own, end = values[1:].diagonal().mean(), values[-1].mean()
    title = f"Just after its own phase a task is answered to {own:.0%}, after the last phase to {end:.0%}; darker is better"
    named = matrix(rows).set_axis(["before", *matrix(rows).columns], axis="index")
    return drawing.png(drawing.matrix_map(named, title, "asked about task", "after phase", left=1.1))


def kept_figure(table: Frame) -> Figure:
    """A dot with its bar a line of `table`, from above: `name`, `mean`, `low` and `high` (shares), and whether it is a `reference`, whose
    dot is hollow."""
    most, least = table.iloc[0], table.iloc[-1]
    title = f"{most['name']} keeps {percent(most['mean'])} of what it learnt"
    title += f", {least['name']} {percent(least['mean'])}" if len(table) > 1 else ""
    figure, [panel] = grid(title, 1, 1, 0.27 * len(table) + 0.6, Margins(text_width(table["name"], 10) + 0.3, 0.4, head=0.1))
    with matplotlib.rc_context(STYLE):
        for reference, style in ((False, METHOD), (True, REFERENCE)):
            own = (table["reference"] == reference).to_numpy()
            if own.any():
                bars(panel, own.nonzero()[0], table[own], style, across=True)
        panel.set_yticks(range(len(table)), list(table["name"]), fontsize=10, color=INK)
        panel.set(xlim=(-0.02, 1.02), ylim=(len(table) - 0.5, -0.5), xticks=[0, 0.5, 1])
        panel.set_xticklabels(["0", "0.5", "1"])
        panel.xaxis.grid(True, color=RULE, linewidth=0.7)
        panel.tick_params(axis="y", length=0)
        panel.spines["left"].set_visible(False)
        panel.set_xlabel("share kept of what was learnt (hollow: references)", fontsize=10)
    return figure
