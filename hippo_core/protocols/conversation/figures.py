"""Figures of conversations: exact match over what is shown, and over the answer's position in the dialogue."""

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from hippo_core.results.figures.drawing import STYLE, Margins, abreast, grid
from hippo_core.results.figures.palette import QUIET, RULE, Style, styles_for
from hippo_core.results.frames import Frame

STYLES = {
    "none": Style("none", "#a3a8b0", "o", ":", hollow=True),
    "full": Style("full", "#8d7f9b", "P", "--"),
    "oracle": Style("oracle", "#1d2330", "o", ":", hollow=True),
    "random": Style("random", "#7b828e", "X", ":", hollow=True),
    "recency": Style("recency", "#3f4652", "s"),
    "pruning": Style("pruning", "#7a5c74", "d", "-."),
    "compression": Style("compression", "#b58a8a", "h", "--"),
    "summary": Style("summary", "#cc6677", "v", "--"),
    "window_summary": Style("window_summary", "#882255", "<", "-."),
    "bm25": Style("bm25", "#a8905f", "^", "--"),
    "embedding": Style("embedding", "#4c6f91", "v", "-."),
    "key": Style("key", "#5f7a6b", "D"),
    "actr": Style("actr", "#e69f00", "*"),
    "hei_nw": Style("hei_nw", "#0072b2", "o"),
    "sgc_rss": Style("sgc_rss", "#d55e00", "s"),
    "all": Style("all", "#a6447f", "D"),
}
EVERYWHERE = ("none", "full", "oracle")  # show the same under every budget
PARTS = 6  # of a dialogue, in which answers stand


def curve(rows: Frame) -> Figure:
    """Exact match against the tokens of the whole prompt, a line a technique; up and to the left is better. Where some techniques were
    asked under several numbers of tokens, these and the bounds."""
    title = "What is still answered, by the tokens that are shown; up and to the left is better"
    figure, [panel] = grid(title, 1, 1, 4.4, Margins(0.6, 1.75))
    counted = rows[rows["budget"].str.isdecimal()]
    styles = styles_for(STYLES, rows["technique"])
    several = counted.groupby("technique")["budget"].nunique()
    drawn = [*several.index[several > 1], *EVERYWHERE] if (several[~several.index.isin(EVERYWHERE)] > 1).any() else [*styles]
    points = rows[rows["technique"].isin(drawn) & (rows["budget"] != "turns")] if len(counted) else rows
    means = points.groupby(["technique", "budget"], sort=False)[["tokens", "em"]].mean().reset_index()
    with matplotlib.rc_context(STYLE):
        for name, own in sorted(means.groupby("technique"), key=lambda pair: -pair[1]["em"].max()):
            style, own = styles[name], own.sort_values("tokens")
            panel.plot(own["tokens"], own["em"], style.line, color=style.colour, marker=style.marker, markersize=5, linewidth=1.3,
                       markerfacecolor="white" if style.hollow else style.colour, label=name, clip_on=False)  # fmt: skip
        panel.set(ylim=(0, 1.02), xlabel="tokens of the prompt, mean", ylabel="exact match")
        panel.grid(axis="y", color=RULE)
        panel.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=10, frameon=False)
    return figure


def positions(rows: Frame) -> Figure:
    """Exact match by the answer's position in the dialogue, a panel a budget: whether the middle is lost. Passages of several turns
    are left out."""
    budgets = [name for name in dict.fromkeys(rows["budget"]) if name != "full"] or ["full"]
    margins = Margins(0.6, 1.6, 0.25)
    lines, columns, body = abreast(len(budgets), 3.4, margins)
    figure, panels = grid("What is answered, by where it was told; a flat line loses nothing", lines, columns, body, margins)
    part = np.floor(PARTS * (1 - (rows["distance"] + 1) / rows["turns"])).clip(0, PARTS - 1)
    styles = styles_for(STYLES, {name for name in rows["technique"] if name != "none" and "@" not in name})
    with matplotlib.rc_context(STYLE):
        for panel, budget in zip(panels, budgets, strict=True):
            for name, style in styles.items():
                own = rows[(rows["technique"] == name) & ((rows["budget"] == budget) | (name in EVERYWHERE))]
                if own.empty:
                    continue
                means = own.groupby(part)["em"].mean()
                panel.plot((means.index + 0.5) / PARTS, means, style.line, color=style.colour, marker=style.marker, markersize=4,
                           markerfacecolor="white" if style.hollow else style.colour, linewidth=1.1, label=name)  # fmt: skip
            panel.set(xlim=(0, 1), ylim=(-0.02, 1.02), xlabel="place in the dialogue")
            title = "half of the turns, 20 at most" if budget == "turns" else f"{budget} tokens"
            panel.set_title(title, loc="left", fontsize=9.5, color=QUIET, pad=5)
        panels[0].set_ylabel("exact match")
        panels[-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=9.5, frameon=False)
    return figure
