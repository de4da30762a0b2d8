"""The figures of the cache experiment."""

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hippo_core.results.figures.drawing import STYLE, Margins, grid
from hippo_core.results.figures.palette import INK, QUIET, RULE, Look
from hippo_core.results.frames import Frame

LOOKS = {  # muted: nothing and what is told; full colour: what repairs
    "none": Look("no defence", "#3f4652", "s"),
    "smoothing": Look("smoothing", "#a8905f", "^", "--"),
    "clipping": Look("clipping", "#7f9bb3", "v", "--"),
    "detect_clear": Look("detect, clear", "#5f7a6b", "D", "--"),
    "rms_outlier": Look("rms outlier", "#8d7f9b", "P", "--"),
    "median": Look("median", "#b58a8a", "h", "--"),
    "ecc": Look("Hamming code", "#e69f00", "p", "-."),
    "learned": Look("learned", "#d55e00", "o"),
    "episodic": Look("episodic store", "#0072b2", "o"),
    "episodic_random": Look("random spans", "#86a3bf", "P", ":", hollow=True),
    "episodic_oldest": Look("oldest spans", "#557a9c", "v", ":", hollow=True),
    "episodic_gold": Look("gold spans", "#1b4f7a", "D", ":", hollow=True),
    "reset": Look("reset (told)", "#7b828e", "X", ":", hollow=True),
    "masking": Look("masking (told)", "#a3a8b0", "s", ":", hollow=True),
    "recompute": Look("recompute", "#1d2330", "o", ":", hollow=True),
}
ACROSS = 4


def robustness(curves: Frame) -> Figure:
    """What is left of the score above chance (`kept`) along severity, tasks averaged: a panel a kind of fault, a line a defence. Higher is
    better."""
    means = curves.groupby(["kind", "defence", "severity"], sort=False)["kept"].mean().reset_index()
    kinds, names = list(dict.fromkeys(means["kind"])), [name for name in LOOKS if name in set(means["defence"])]
    columns = min(ACROSS, len(kinds))
    lines = -(-len(kinds) // columns)
    margins = Margins(0.55, 0.2, 0.16, foot=0.98, between=0.62, head=0.3)
    body = 1.7 * lines + 0.62 * (lines - 1) + margins.foot
    figure, panels = grid(_title(means), lines, columns, body, margins)
    with matplotlib.rc_context(STYLE):
        for place, panel in enumerate(panels):
            if place >= len(kinds):
                panel.set_visible(False)
                continue
            _panel(panel, means[means["kind"] == kinds[place]], names)
            panel.set_title(kinds[place].replace("_", " "), loc="left", fontsize=9.5, color=QUIET, pad=5)
            panel.set_yticklabels(["0", "", "1"] if place % columns == 0 else [""] * 3, fontsize=9.5)
            if place + columns >= len(kinds):
                panel.set_xlabel("severity", fontsize=9.5)
        panels[0].set_ylabel("score kept", fontsize=9.5)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=min(5, len(names)), fontsize=8.5, frameon=False, handlelength=2.2)
    return figure


def _title(means: Frame) -> str:
    kept = means.groupby("defence")["kept"].mean()
    repairs = kept.drop([name for name in LOOKS if LOOKS[name].hollow or name == "none"], errors="ignore")
    alone = f"With no defence {kept['none']:.0%} of the score above chance is kept"
    best = "" if repairs.empty else f", with {LOOKS[str(repairs.idxmax())].label} {repairs.max():.0%}"
    return f"{alone}{best}; higher is better"


def _panel(panel: Axes, table: Frame, names: list[str]) -> None:
    for height in (0, 1):
        panel.axhline(height, color=RULE, linewidth=0.6, zorder=0)
    for name in names:
        own, style = table[table["defence"] == name].sort_values("severity"), LOOKS[name]
        face = "white" if style.hollow else style.colour
        panel.plot(own["severity"], np.clip(own["kept"], -0.15, 1.1), style.line, color=style.colour, marker=style.marker, markersize=3.6,
                   markerfacecolor=face, linewidth=1.3, label=style.label, zorder=3 if not style.hollow else 2)  # fmt: skip
    panel.set(xlim=(-0.03, 1.05), ylim=(-0.18, 1.12), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    panel.set_xticklabels(["0", ".5", "1"], fontsize=9.5, color=INK)
