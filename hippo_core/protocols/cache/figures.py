"""The figures of the cache experiment: what defences keep, notice and cost; which bits matter, and how many may go."""

from collections.abc import Callable, Mapping
from typing import Any, get_args

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hippo_core.protocols.cache.names import Format, Kind
from hippo_core.protocols.cache.parameters import CacheParameters
from hippo_core.protocols.cache.table import CLEAN, kept, kept_of_damaged, kept_of_removed
from hippo_core.results.figures.drawing import SHADES, STYLE, Margins, grid, png
from hippo_core.results.figures.palette import INK, QUIET, RULE, Style, styles_for
from hippo_core.results.frames import Frame

WRITTEN = 64  # heads in all up to which each holds its number
LABELLED = 8  # layers at most that have their number beside the map
STYLES = {  # muted: nothing and what reads the mask; full colour: what repairs
    "none": Style("no defence", "#3f4652", "s"),
    "smoothing": Style("smoothing", "#a8905f", "^", "--"),
    "clipping": Style("clipping", "#7f9bb3", "v", "--"),
    "detect_clear": Style("detect, clear", "#5f7a6b", "D", "--"),
    "rms_outlier": Style("rms outlier", "#8d7f9b", "P", "--"),
    "median": Style("median", "#b58a8a", "h", "--"),
    "ecc": Style("Hamming (72,64)", "#e69f00", "p", "-."),
    "ecc_equal": Style("Hamming (8,4)", "#b07800", "P", "-."),
    "learned": Style("learned", "#d55e00", "o"),
    "wiener": Style("wiener", "#009e73", "o"),
    "wiener_layer": Style("wiener, one layer", "#5fae95", "s", "--"),
    "episodic": Style("episodic store", "#0072b2", "o"),
    "episodic_random": Style("random spans", "#86a3bf", "P", ":", hollow=True),
    "episodic_oldest": Style("oldest spans", "#557a9c", "v", ":", hollow=True),
    "episodic_gold": Style("gold spans", "#1b4f7a", "D", ":", hollow=True),
    "reset": Style("reset (told)", "#7b828e", "X", ":", hollow=True),
    "masking": Style("masking (told)", "#a3a8b0", "s", ":", hollow=True),
    "recompute": Style("recompute", "#1d2330", "o", ":", hollow=True),
}
ACROSS = 4
FEATURED = ("none", "clipping", "ecc_equal", "learned", "wiener", "episodic", "recompute")  # drawn in their colours where many are drawn
MANY = 9
REST = Style("the others", RULE, "")
SEEN = 0.02  # of the axis: lower bars are given in words
REMOVAL_STYLES = {
    "gaussian": Style("noise", "#3f4652", "s"),
    "dropout_zero": Style("features zero", "#a8905f", "^"),
    "contiguous_overwrite": Style("another text's tokens", "#8d7f9b", "P"),
    "quant_noise": Style("quantised", "#0072b2", "o"),
    "bitflip": Style("bit flips", "#d55e00", "p"),
    "bitflipish_sparse": Style("sparse outliers", "#e69f00", "D"),
    "streaming_llm": Style("evicted: all but first and last", "#009e73", "v", "--"),
    "knorm": Style("evicted: long keys", "#5fae95", "h", "--"),
}


HEAD: Any = {"loc": "left", "fontsize": 9.5, "color": QUIET, "pad": 5}  # of a panel
BESIDE: Any = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "fontsize": 8.5, "frameon": False}  # where a legend stands


def figure(parameters: CacheParameters, rows: Frame) -> bytes:
    """What is left of the score along severity, a panel a kind, or along the bits that are gone; of a training its curve (PNG)."""
    if parameters.step == "measure":
        return png(robustness(kept(rows)))
    return png(training(rows) if parameters.step == "train" else removal(rows))


def _axes(panel: Axes, across: str, up: str) -> None:
    panel.set_xlabel(across, fontsize=9.5)
    panel.set_ylabel(up, fontsize=9.5)


def _line(panel: Axes, x: Frame, y: Frame, style: Style) -> None:
    panel.plot(x, y, style.line, color=style.colour, marker=style.marker, markersize=4, label=style.label)


def robustness(curves: Frame) -> Figure:
    """What is left of the score above chance (`kept`) along severity, tasks averaged: a panel a kind of fault, a line a defence. Higher is
    better."""
    means = curves.groupby(["kind", "defence", "severity"], sort=False)["kept"].mean().reset_index()

    def draw(panel: Axes, kind: str, name: str, style: dict[str, Any]) -> None:
        own = means[(means["kind"] == kind) & (means["defence"] == name)].sort_values("severity")
        panel.plot(own["severity"], np.clip(own["kept"], -0.15, 1.1), **style)

    figure, panels = _by_kind(_title(means), means, draw, ("severity", "score kept"))
    for panel in panels:
        panel.set(xlim=(-0.03, 1.05), xticks=[0, 0.5, 1])
        panel.set_xticklabels(["0", ".5", "1"], fontsize=9.5, color=INK)
    return figure


def _title(means: Frame) -> str:
    kept = kept_of_damaged(means).mean(axis=1)
    styles = styles_for(STYLES, kept.index)
    repairs = kept.drop([name for name, style in styles.items() if style.hollow or name == "none"]).dropna()
    alone = f"With no defence damaged caches keep {kept['none']:.0%} of the score above chance"
    best = "" if repairs.empty else f", with {styles[str(repairs.idxmax())].label} {repairs.max():.0%}"
    return f"{alone}{best}; higher is better"


def _by_kind(
    title: str, lines: Frame, draw: Callable[[Axes, str, str, dict[str, Any]], None], axes: tuple[str, str]
) -> tuple[Figure, list[Axes]]:
    """A panel a kind of fault, in the order in which faults are listed, heights from 0 to 1; `draw` draws one defence's line into it with a
    style. Of many defences the featured ones have their own styles, the others one thin grey."""
    kinds = [kind for kind in get_args(Kind) if kind in set(lines["kind"])]
    kinds += [kind for kind in dict.fromkeys(lines["kind"]) if kind not in kinds]
    styles = styles_for(STYLES, lines["defence"])
    names = [*styles]
    featured = names if len(names) <= MANY else [name for name in names if name in FEATURED or name not in STYLES]
    columns = min(ACROSS, len(kinds))
    down = -(-len(kinds) // columns)
    margins = Margins(0.6, 0.2, 0.16, foot=1.06, between=0.62)
    figure, panels = grid(title, down, columns, 1.7 * down + margins.between * (down - 1) + margins.foot, margins)
    with matplotlib.rc_context(STYLE):
        for number, panel in enumerate(panels):
            if number >= len(kinds):
                panel.set_visible(False)
                continue
            for height in (0, 1):
                panel.axhline(height, color=RULE, linewidth=0.6, zorder=0)
            for name in [*(name for name in names if name not in featured), *featured]:
                draw(panel, kinds[number], name, _styled(styles[name] if name in featured else REST))
            panel.set(ylim=(-0.18, 1.12), yticks=[0, 0.5, 1])
            panel.set_title(kinds[number].replace("_", " "), **HEAD)
            panel.set_yticklabels(["0", "", "1"] if number % columns == 0 else [""] * 3, fontsize=9.5)
            if number + columns >= len(kinds):
                panel.set_xlabel(axes[0], fontsize=9.5)
        panels[0].set_ylabel(axes[1], fontsize=9.5)
        handles = {label: handle for panel in panels for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)}
        shown = [label for style in [*styles.values(), REST] if (label := style.label) in handles]
        figure.legend(
            [handles[label] for label in shown], shown, loc="lower center", ncols=4, fontsize=8.5, frameon=False, handlelength=2.4
        )
    return figure, panels[: len(kinds)]


def _styled(style: Style) -> dict[str, Any]:
    """The plot arguments of a line of this style."""
    if style is REST:
        return {"color": style.colour, "linewidth": 0.9, "label": style.label, "zorder": 1}
    face = "white" if style.hollow else style.colour
    return {"color": style.colour, "linestyle": style.line, "marker": style.marker, "markersize": 3.6, "markerfacecolor": face,
            "linewidth": 1.3, "label": style.label, "zorder": 2 if style.hollow else 3}  # fmt: skip


def cost(rows: Frame, curves: Frame) -> Figure:
    """What a defence costs: milliseconds a cache (log axis), and the share of the score above chance that it takes from whole caches, tasks
    averaged. Down and to the left is better; a line joins the defences that none beats in both (the Pareto front)."""
    took = rows[rows["kind"] != CLEAN].groupby("defence")["repair_ms"].mean().clip(lower=1e-2)
    whole = curves[curves["severity"] == 0].groupby("defence", sort=False)["kept"].mean()
    lost, styles = whole["none"] - whole, styles_for(STYLES, whole.index)
    names = [str(name) for name in lost.sort_values(kind="stable").index]
    ranked = pd.DataFrame({"took": took, "lost": lost}).sort_values(["took", "lost"])
    front = ranked[ranked["lost"] < ranked["lost"].cummin().shift(fill_value=np.inf)]
    figure, [panel] = grid("What a defence costs; down and to the left is better", 1, 1, 3.2, Margins(0.65, 1.7))
    with matplotlib.rc_context(STYLE):
        panel.axhline(0, color=RULE, linewidth=0.6, zorder=0)
        panel.plot(front["took"], front["lost"], color=RULE, linewidth=1, drawstyle="steps-post", zorder=1)
        for name in names:
            style = styles[name]
            panel.plot([took[name]], [lost[name]], style.marker, color=style.colour, markersize=6, linestyle="none",
                       markerfacecolor="white" if style.hollow else style.colour, label=style.label, clip_on=False)  # fmt: skip
        panel.set(xscale="log", ylim=(np.nanmin([-0.05, *1.1 * lost]), np.nanmax([0.1, *1.1 * lost])), xticks=[0.01, 0.1, 1, 10, 100])
        panel.set_xticklabels(["≤ .01", ".1", "1", "10", "100"])
        _axes(panel, "milliseconds to repair a cache", "score lost on whole caches")
        panel.legend(**{**BESIDE, "bbox_to_anchor": (1.03, 0.5)}, title="best first", title_fontsize=8.5)
    return figure


def training(rows: Frame) -> Figure:
    """How far the words behind a repaired cache lie from those behind the clean one, step by step. Lower is better."""
    figure, [panel] = grid("Distance from the clean model's words while the repair learns; lower is better", 1, 1, 2.6, Margins(0.65, 0.3))
    with matplotlib.rc_context(STYLE):
        smooth = rows["distance"].rolling(20, min_periods=1).mean()
        panel.plot(rows["number"], rows["distance"], ".", color=RULE, markersize=3)
        panel.plot(rows["number"], smooth, color=STYLES["learned"].colour, linewidth=1.5)
        _axes(panel, "step", "nats a token")
    return figure


def sensitivity(measured: Mapping[str, Any]) -> Figure:
    """Drift of the logits along the size of a perturbation, from the clean model and from the same defence, clean. Lower is better."""
    lines = pd.DataFrame(measured["logit_sensitivity"])
    styles = styles_for(STYLES, lines["defence"])
    title = "How far words move when the cache moves a little; lower is better"
    figure, panels = grid(title, 1, 2, 2.9, Margins(0.6, 1.65, 0.25, foot=0.6))
    titles = {"drift": "from the clean model", "drift_from_own_clean": "from the same defence, clean"}
    with matplotlib.rc_context(STYLE):
        for panel, (column, heading) in zip(panels, titles.items(), strict=True):
            for name, style in styles.items():
                own = lines[lines["defence"] == name]
                _line(panel, own["delta"], own[column], style)
            panel.set_title(heading, **HEAD)
            panel.set_xlabel("size, share of the cache's length", fontsize=9.5)
            panel.set_ylim(0, 1.05 * max(1e-6, lines[[*titles]].max().max()))
        panels[0].set_ylabel("drift of the logits", fontsize=9.5)
        panels[1].set_yticklabels([])
        panels[1].legend(**BESIDE)
    return figure


def amplification(measured: Mapping[str, Any]) -> Figure:
    """Which layer and head moves words most: drift for each unit of perturbation, a panel a defence. Darker amplifies more."""
    maps = {name: np.array(values, float) for name, values in measured["amplification_map"].items()}
    top, styles = max(float(np.nanmax(values)) for values in maps.values()), styles_for(STYLES, maps)
    figure, panels = grid("Which heads move the words, a unit of each; lighter is better", 1, len(maps), 2.9,
                          Margins(0.6, 0.3, 0.3, foot=0.6))  # fmt: skip
    with matplotlib.rc_context(STYLE):
        for panel, (name, values) in zip(panels, maps.items(), strict=True):
            panel.imshow(values, cmap=SHADES, vmin=0, vmax=top or 1, aspect="auto")
            if values.size <= WRITTEN:
                for layer, head in np.ndindex(*values.shape):
                    ink = "white" if values[layer, head] > 0.6 * top else INK
                    panel.text(head, layer, f"{values[layer, head]:.2f}", ha="center", va="center", fontsize=8, color=ink)
            panel.set_title(styles[name].label, **HEAD)
            panel.set_xlabel("head", fontsize=9.5)
            every = -(-values.shape[0] // LABELLED)
            panel.set(xticks=range(values.shape[1]), yticks=range(0, values.shape[0], every) if panel is panels[0] else [])
            panel.tick_params(length=0)
            panel.spines[:].set_visible(False)
        panels[0].set_ylabel("layer", fontsize=9.5)
    return figure


def detected(detection: Mapping[str, Any]) -> Figure:
    """ROC: the share of damaged vectors found along the share of clean ones called damaged, means over tasks and severities; a panel a
    fault. Higher is better."""
    lines, rates = pd.DataFrame(detection["lines"]), detection["false_alarms"]

    def draw(panel: Axes, kind: str, name: str, style: dict[str, Any]) -> None:
        own = lines[(lines["kind"] == kind) & (lines["defence"] == name)]
        if len(own):
            panel.plot(rates, np.mean(list(own["recall"]), axis=0), **style)

    figure, panels = _by_kind("Damaged vectors that are noticed; higher is better", lines, draw, ("false alarms", "found"))
    for panel in panels:
        panel.axvline(0.01, color=RULE, linewidth=0.6, zorder=0)
        panel.set(xscale="log", xticks=[0.001, 0.01, 0.1])
        panel.set_xticklabels([".1%", "1%", "10%"], fontsize=9.5)
        panel.minorticks_off()
    return figure


def removal(rows: Frame) -> Figure:
    """What is left of the score above chance along the share of the cache's bits that are gone, tasks averaged. Higher is better."""
    lines = kept_of_removed(rows)
    figure, [panel] = grid("What is left where so many bits are gone; higher is better", 1, 1, 3.2, Margins(0.65, 2.2, foot=0.5))
    with matplotlib.rc_context(STYLE):
        for name, style in REMOVAL_STYLES.items():
            own = lines[lines["way"] == name].sort_values("removed")
            _line(panel, own["removed"], own["kept"], style)
        panel.set(xlim=(-0.03, 1.03), ylim=(-0.15, 1.12))
        _axes(panel, "share of 16 bits a number that is gone", "score kept")
        panel.legend(**BESIDE)
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
            panel.bar(own["bit"], own["lost"], color=STYLES["none"].colour, width=1, edgecolor="white", linewidth=0.3)
            if (most := float(own["lost"].max())) < SEEN * top:
                panel.text(own["bit"].mean(), 0.06 * top, f"at most {most:.2f}", ha="center", fontsize=8.5, color=QUIET)
            panel.set(xlim=(-1, own["bit"].max() + 1), ylim=(0, top), xticks=[0, int(own["bit"].max())])
            panel.set_title(name, **HEAD)
            panel.set_xlabel("bit, 0 the lowest", fontsize=9)
            if panel is not panels[0]:
                panel.set_yticklabels([])
        panels[0].set_ylabel("nats a token", fontsize=9.5)
    return figure
