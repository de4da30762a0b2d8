"""The picture of a paired run."""

import pandas as pd
from matplotlib import rc_context

from hippo_core.protocols.paired.comparison import by_item
from hippo_core.protocols.paired.conditions import CONDITIONS, MEMORY
from hippo_core.results.figures import drawing
from hippo_core.results.figures.palette import QUIET, RULE, Style
from hippo_core.results.frames import Frame
from hippo_core.results.records.table import mean_by_cluster

MINE, OTHER = Style(MEMORY, "#0072b2", "o"), Style("", QUIET, "o")


def picture(rows: Frame) -> bytes:
    """Success of each condition with its 95% interval by world (PNG)."""
    names = [name for name in CONDITIONS if name in set(rows["condition"])]
    means = pd.DataFrame([mean_by_cluster(by_item(rows[rows["condition"] == name]), "success", "world") for name in names], dtype=float)
    margins = drawing.Margins(drawing.text_width(names, 11) + 0.35, 0.5, head=0.05)
    figure, [panel] = drawing.grid("What each condition is worth; further right is better", 1, 1, 0.34 * len(names) + 0.6, margins)
    with rc_context(drawing.STYLE):
        for index, name in enumerate(names):
            drawing.bars(panel, [index], means[index : index + 1], MINE if name == MEMORY else OTHER, across=True)
        panel.set_yticks(range(len(names)), names, fontsize=11)
        panel.set(
            xlim=(min(-0.03, means["low"].min() - 0.02), 1.03),
            ylim=(len(names) - 0.5, -0.5),
            xlabel="share of items that succeed; lines are 95% intervals by world",
        )
        panel.grid(axis="x", color=RULE)
    return drawing.png(figure)
