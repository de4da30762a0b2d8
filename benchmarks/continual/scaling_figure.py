"""Losses of a grid of models and texts, with the law that was fitted to them."""

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from benchmarks.continual.scaling_law import Law
from hippo_core.results.figures.drawing import STYLE, Margins, grid
from hippo_core.results.frames import Frame

COLOURS = ("#9aa3af", "#0072b2", "#009e73", "#d55e00", "#a6447f")  # of numbers of weights, from few to many


def curves(rows: Frame, law: Law) -> Figure:
    """Held-out loss against tokens, a colour a number of weights; dots: runs, lines: the law. `rows`: `weights`, `tokens`, `loss`."""
    constants = law.constants()
    title = (
        f"The loss falls as N^-{constants['alpha']:.2f} and D^-{constants['beta']:.2f} towards {constants['E']:.2f} nats; lower is better"
    )
    figure, [panel] = grid(title, 1, 1, 3.6, Margins(0.75, 1.5, foot=0.6))
    with matplotlib.rc_context(STYLE):
        tokens = np.geomspace(rows["tokens"].min(), rows["tokens"].max(), 50)
        for number, (weights, own) in enumerate(rows.groupby("weights")):
            colour = COLOURS[number % len(COLOURS)]
            panel.plot(own["tokens"], own["loss"], "o", color=colour, markersize=5, label=f"{weights:,} weights")
            panel.plot(tokens, law.loss(np.full_like(tokens, float(weights)), tokens), color=colour, linewidth=1.4)  # type: ignore[arg-type]
        panel.set_xscale("log")
        panel.set_xlabel("tokens learnt from, D", fontsize=10)
        panel.set_ylabel("held-out loss, nats a token", fontsize=10)
        panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)
    return figure
