"""The figures of a model's card: its skills, and how its training went."""

from typing import Any

import matplotlib
from matplotlib.figure import Figure

from hippo_core.results.figures.drawing import STYLE, png
from hippo_core.results.figures.palette import INK, QUIET, RULE
from hippo_core.results.frames import Frame

SHOWN = {"slots": "facts by slot", "last_mention": "last mention wins", "chains": "two and three hops", "nothing_said": "slots and unknown"}
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#7f5aa3")


def curve_png(curve: list[dict[str, float]]) -> bytes:
    """The training curve as PNG bytes: loss of the answers above, accuracy on validation lessons (text solid, blocks dashed) below."""
    with matplotlib.rc_context(STYLE):
        plot = Figure(figsize=(7.2, 5.2), layout="constrained")
        above, below = plot.subplots(2, 1, sharex=True, height_ratios=(1, 1.5))
        minutes = [line["seconds"] / 60 for line in curve]
        above.plot(minutes, [line["answers"] for line in curve], color=INK, linewidth=1.4)
        above.set(ylabel="nats a token", ylim=(0, None))
        above.set_title("Loss of the answers", loc="left", fontsize=11)
        examined = [line for line in curve if "slots" in line]
        for colour, (drill, label) in zip(COLOURS, SHOWN.items(), strict=True):
            for name, style in ((drill, "-"), (f"{drill}/blocks", "--")):
                points = [(line["seconds"] / 60, line[name]) for line in examined if name in line]
                if points:
                    below.plot(*zip(*points, strict=True), style, color=colour, linewidth=1.4, marker="o", markersize=2.5,
                               label=label if style == "-" else f"{label}, as blocks")  # fmt: skip
        below.set(xlabel="minutes", ylabel="right", ylim=(-0.02, 1.02))
        below.set_title("Validation lessons with some eight facts", loc="left", fontsize=11)
        below.grid(axis="y", color=RULE, linewidth=0.5)
        if examined:
            below.legend(frameon=False, fontsize=8, ncols=2, loc="lower right")
        return png(plot)


def skills_figure(skills: Frame) -> Figure:
    """Accuracy of every skill with its interval, its chance level (tick) and its goal (ring). Further right is better."""
    with matplotlib.rc_context(STYLE):
        plot = Figure(figsize=(8, 0.26 * len(skills) + 1.1), layout="constrained")
        panel: Any = plot.subplots()
        rows = range(len(skills))
        panel.hlines(rows, skills["low"], skills["high"], color=INK, linewidth=2)
        panel.scatter(skills["accuracy"], rows, color=INK, s=28, zorder=3)
        panel.scatter(skills["chance"], rows, color=QUIET, marker="|", s=60, zorder=2)
        panel.scatter(skills["goal"], rows, facecolors="none", edgecolors=INK, s=90, linewidths=0.8)
        panel.set_yticks(rows, skills["skill"], fontsize=8)
        panel.set(xlim=(-0.02, 1.02), ylim=(len(skills) - 0.5, -0.5), xlabel="share of questions answered right (ring: goal; tick: chance)")
        panel.grid(axis="y", color=RULE, linewidth=0.5)
        goals = int(skills["goal"].notna().sum())
        reached = int((skills["accuracy"] >= skills["goal"]).sum())
        panel.set_title(f"{reached} of {goals} goals reached" if goals else f"{len(skills)} skills", loc="left")
    return plot
