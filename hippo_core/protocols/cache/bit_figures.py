"""The figures of the cache experiment in bits: which of them matter, and how many may go."""

from typing import get_args

import matplotlib
from matplotlib.figure import Figure

from hippo_core.protocols.cache.figures import LOOKS
from hippo_core.protocols.cache.names import Format
from hippo_core.results.figures.drawing import STYLE, Margins, grid
from hippo_core.results.figures.palette import QUIET, Style
from hippo_core.results.frames import Frame

SEEN = 0.02  # of the axis: lower bars are told in words
WAYS = {
    "gaussian": Style("noise", "#3f4652", "s"),
    "dropout_zero": Style("features zero", "#a8905f", "^"),
    "contiguous_overwrite": Style("another text's tokens", "#8d7f9b", "P"),
    "quant_noise": Style("quantised", "#0072b2", "o"),
    "bitflip": Style("bit flips", "#d55e00", "p"),
    "bitflipish_sparse": Style("sparse outliers", "#e69f00", "D"),
    "streaming_llm": Style("evicted: all but first and last", "#009e73", "v", "--"),
    "knorm": Style("evicted: long keys", "#5fae95", "h", "--"),
}


def removal(rows: Frame) -> Figure:
    """What is left of the score above chance along the share of the cache's bits that are gone, tasks averaged. Higher is better."""
    clean = rows[rows["severity"] == 0].groupby("task")["score"].mean()
    chance = rows.groupby("task")["chance"].mean()
    means = rows.groupby(["way", "removed", "task"])["score"].mean().reset_index()
    above = means["task"].map(clean) - means["task"].map(chance)
    means = means.assign(kept=(means["score"] - means["task"].map(chance)) / above)
    lines = means.groupby(["way", "removed"])["kept"].mean().reset_index()
    title = "What is left where so many bits are gone; higher is better"
    figure, [panel] = grid(title, 1, 1, 3.2, Margins(0.65, 2.2, foot=0.5))
    with matplotlib.rc_context(STYLE):
        for name, look in WAYS.items():
            own = lines[lines["way"] == name]
            panel.plot(own["removed"], own["kept"], look.line, color=look.colour, marker=look.marker, markersize=4, label=look.label)
        panel.set(xlim=(-0.03, 1.03), ylim=(-0.15, 1.12))
        panel.set_xlabel("share of 16 bits a number that is gone", fontsize=9.5)
        panel.set_ylabel("score kept", fontsize=9.5)
        panel.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8.5, frameon=False)
    return figure


def bits(lost: Frame) -> Figure:
    """Nats a token that flips of one bit cost, with no defence: a panel a format (`stored`), the lowest bit left. Lower is better."""
    formats = [name for name in get_args(Format) if name in set(lost["stored"])]
    figure, panels = grid("Which bit matters: nats a token that flips of it cost", 1, len(formats), 2.6,
                          Margins(0.5, 0.3, 0.2, foot=0.5))  # fmt: skip
    top = 1.1 * max(0.1, float(lost["lost"].max()))
    with matplotlib.rc_context(STYLE):
        for panel, name in zip(panels, formats, strict=True):
            own = lost[lost["stored"] == name].sort_values("bit")
            panel.bar(own["bit"], own["lost"], color=LOOKS["none"].colour, width=1, edgecolor="white", linewidth=0.3)
            if (most := float(own["lost"].max())) < SEEN * top:
                panel.text(own["bit"].mean(), 0.06 * top, f"at most {most:.2f}", ha="center", fontsize=8.5, color=QUIET)
            panel.set(xlim=(-1, own["bit"].max() + 1), ylim=(0, top), xticks=[0, int(own["bit"].max())])
            panel.set_title(name, loc="left", fontsize=9.5, color=QUIET, pad=5)
            panel.set_xlabel("bit, 0 the lowest", fontsize=9)
            if panel is not panels[0]:
                panel.set_yticklabels([])
        panels[0].set_ylabel("nats a token", fontsize=9.5)
    return figure
