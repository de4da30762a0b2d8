"""The figures of the cache experiment."""

from collections.abc import Mapping
from typing import Any, get_args

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hippo_core.cache.names import Format
from hippo_core.results.figures.drawing import STYLE, Margins, grid
from hippo_core.results.figures.palette import INK, QUIET, RULE, Look
from hippo_core.results.figures.sleeps import SHADES
from hippo_core.results.frames import Frame

WRITTEN = 64  # heads in all up to which each holds its number
LOOKS = {  # muted: nothing and what is told; full colour: what repairs
    "none": Look("no defence", "#3f4652", "s"),
    "smoothing": Look("smoothing", "#a8905f", "^", "--"),
    "clipping": Look("clipping", "#7f9bb3", "v", "--"),
    "detect_clear": Look("detect, clear", "#5f7a6b", "D", "--"),
    "rms_outlier": Look("rms outlier", "#8d7f9b", "P", "--"),
    "median": Look("median", "#b58a8a", "h", "--"),
    "ecc": Look("Hamming code", "#e69f00", "p", "-."),
    "ecc_equal": Look("Hamming code, a copy's bytes", "#b07800", "P", "-."),
    "learned": Look("learned", "#d55e00", "o"),
    "wiener": Look("whole tokens", "#009e73", "o"),
    "wiener_layer": Look("one layer", "#5fae95", "s", "--"),
    "episodic": Look("episodic store", "#0072b2", "o"),
    "episodic_random": Look("random spans", "#86a3bf", "P", ":", hollow=True),
    "episodic_oldest": Look("oldest spans", "#557a9c", "v", ":", hollow=True),
    "episodic_gold": Look("gold spans", "#1b4f7a", "D", ":", hollow=True),
    "reset": Look("reset (told)", "#7b828e", "X", ":", hollow=True),
    "masking": Look("masking (told)", "#a3a8b0", "s", ":", hollow=True),
    "recompute": Look("recompute", "#1d2330", "o", ":", hollow=True),
}
ACROSS = 4
WAYS = {
    "gaussian": Look("noise", "#3f4652", "s"),
    "dropout_zero": Look("features zero", "#a8905f", "^"),
    "contiguous_overwrite": Look("another text's tokens", "#8d7f9b", "P"),
    "quant_noise": Look("quantised", "#0072b2", "o"),
    "bitflip": Look("bit flips", "#d55e00", "p"),
    "bitflipish_sparse": Look("sparse outliers", "#e69f00", "D"),
    "streaming_llm": Look("evicted: all but first and last", "#009e73", "v", "--"),
    "knorm": Look("evicted: long keys", "#5fae95", "h", "--"),
}


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


def cost(rows: Frame) -> Figure:
    """What a defence costs against what it brings: milliseconds a cache (log axis) and the mean score. Up and to the left is better."""
    means = rows[rows["kind"] != "clean"].groupby("defence", sort=False)[["score", "repair_ms"]].mean()
    names = [name for name in LOOKS if name in means.index]
    figure, [panel] = grid("What a defence costs, and the score behind it; up and to the left is better", 1, 1, 3.2, Margins(0.65, 1.6))
    with matplotlib.rc_context(STYLE):
        for name in names:
            style = LOOKS[name]
            at = max(means.loc[name, "repair_ms"], 1e-2)
            panel.plot([at], [means.loc[name, "score"]], style.marker, color=style.colour, markersize=6, linestyle="none",
                       markerfacecolor="white" if style.hollow else style.colour, label=style.label, clip_on=False)  # fmt: skip
        panel.set(xscale="log", ylim=(0, 1.02))
        panel.set_xlabel("milliseconds to repair a cache", fontsize=9.5)
        panel.set_ylabel("mean score under all faults", fontsize=9.5)
        panel.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8.5, frameon=False)
    return figure


def training(rows: Frame) -> Figure:
    """How far the words behind a repaired cache lie from those behind the clean one, step by step. Lower is better."""
    figure, [panel] = grid("Distance from the clean model's words while the repair learns; lower is better", 1, 1, 2.6, Margins(0.65, 0.3))
    with matplotlib.rc_context(STYLE):
        smooth = rows["distance"].rolling(20, min_periods=1).mean()
        panel.plot(rows["number"], rows["distance"], ".", color=RULE, markersize=3)
        panel.plot(rows["number"], smooth, color=LOOKS["learned"].colour, linewidth=1.5)
        panel.set_xlabel("step", fontsize=9.5)
        panel.set_ylabel("nats a token", fontsize=9.5)
    return figure


def sensitivity(measured: Mapping[str, Any]) -> Figure:
    """Drift of the logits along the size of a perturbation, from the clean model and from the same defence, clean. Lower is better."""
    lines = pd.DataFrame(measured["logit_sensitivity"])
    names = [name for name in LOOKS if name in set(lines["defence"])]
    title = "How far words move when the cache moves a little; lower is better"
    figure, panels = grid(title, 1, 2, 2.9, Margins(0.6, 1.5, 0.25, foot=0.6))
    said = {"drift": "from the clean model", "drift_from_own_clean": "from the same defence, clean"}
    with matplotlib.rc_context(STYLE):
        for panel, (column, heading) in zip(panels, said.items(), strict=True):
            for name in names:
                own, style = lines[lines["defence"] == name], LOOKS[name]
                panel.plot(own["delta"], own[column], style.line, color=style.colour, marker=style.marker, markersize=4, label=style.label)
            panel.set_title(heading, loc="left", fontsize=9.5, color=QUIET, pad=5)
            panel.set_xlabel("size, share of the cache's length", fontsize=9.5)
            panel.set_ylim(0, 1.05 * max(1e-6, lines[[*said]].max().max()))
        panels[0].set_ylabel("drift of the logits", fontsize=9.5)
        panels[1].set_yticklabels([])
        panels[1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8.5, frameon=False)
    return figure


def amplification(measured: Mapping[str, Any]) -> Figure:
    """Which layer and head moves words most: drift for each unit of perturbation, a panel a defence. Darker amplifies more."""
    maps = {name: np.array(values, float) for name, values in measured["amplification_map"].items()}
    top = max(float(np.nanmax(values)) for values in maps.values())
    figure, panels = grid("Drift of the logits for a unit of one head's cache; lighter is better", 1, len(maps), 2.9,
                          Margins(0.6, 0.3, 0.3, foot=0.6))  # fmt: skip
    with matplotlib.rc_context(STYLE):
        for panel, (name, values) in zip(panels, maps.items(), strict=True):
            panel.imshow(values, cmap=SHADES, vmin=0, vmax=top or 1, aspect="auto")
            if values.size <= WRITTEN:
                for layer, head in np.ndindex(*values.shape):
                    ink = "white" if values[layer, head] > 0.6 * top else INK
                    panel.text(head, layer, f"{values[layer, head]:.2f}", ha="center", va="center", fontsize=8, color=ink)
            panel.set_title(LOOKS[name].label, loc="left", fontsize=9.5, color=QUIET, pad=5)
            panel.set_xlabel("head", fontsize=9.5)
            panel.set(xticks=range(values.shape[1]), yticks=range(values.shape[0]))
            panel.tick_params(length=0)
            panel.spines[:].set_visible(False)
        panels[0].set_ylabel("layer", fontsize=9.5)
    return figure


def removal(rows: Frame) -> Figure:
    """What is left of the score above chance along the share of the cache's bits that are gone, tasks averaged. Higher is better."""
    clean = rows[rows["severity"] == 0].groupby("task")["score"].mean()
    chance = rows.groupby("task")["chance"].mean()
    means = rows.groupby(["way", "removed", "task"])["score"].mean().reset_index()
    above = means["task"].map(clean) - means["task"].map(chance)
    means = means.assign(kept=(means["score"] - means["task"].map(chance)) / above)
    lines = means.groupby(["way", "removed"])["kept"].mean().reset_index()
    title = "What is left of the score where so many bits are gone; higher is better"
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
                          Margins(0.65, 0.3, 0.25, foot=0.5))  # fmt: skip
    top = 1.1 * max(0.1, float(lost["lost"].max()))
    with matplotlib.rc_context(STYLE):
        for panel, name in zip(panels, formats, strict=True):
            own = lost[lost["stored"] == name].sort_values("bit")
            panel.bar(own["bit"], own["lost"], color=LOOKS["none"].colour, width=0.8)
            panel.set(ylim=(0, top), xticks=[0, int(own["bit"].max())])
            panel.set_title(name, loc="left", fontsize=9.5, color=QUIET, pad=5)
            panel.set_xlabel("bit, 0 the lowest", fontsize=9.5)
        panels[0].set_ylabel("nats a token", fontsize=9.5)
    return figure


def detected(found: Mapping[str, Any]) -> Figure:
    """ROC: the share of damaged vectors found along the share of clean ones called damaged, means over tasks and severities; a panel a
    fault. Higher is better."""
    lines, rates = pd.DataFrame(found["lines"]), found["false_alarms"]
    kinds, names = list(dict.fromkeys(lines["kind"])), [name for name in LOOKS if name in set(lines["defence"])]
    columns = min(ACROSS, len(kinds))
    down = -(-len(kinds) // columns)
    margins = Margins(0.6, 0.2, 0.16, foot=0.98, between=0.62, head=0.3)
    figure, panels = grid("Damaged vectors that are noticed; higher is better", down, columns,
                          1.7 * down + 0.62 * (down - 1) + margins.foot, margins)  # fmt: skip
    with matplotlib.rc_context(STYLE):
        for place, panel in enumerate(panels):
            if place >= len(kinds):
                panel.set_visible(False)
                continue
            for name in names:
                own = lines[(lines["kind"] == kinds[place]) & (lines["defence"] == name)]
                look = LOOKS[name]
                if len(own):
                    panel.plot(rates, np.mean(list(own["recall"]), axis=0), look.line, color=look.colour, marker=look.marker,
                               markersize=3.6, linewidth=1.3, label=look.label)  # fmt: skip
            panel.set(xscale="log", ylim=(-0.03, 1.05), yticks=[0, 0.5, 1])
            panel.set_title(kinds[place].replace("_", " "), loc="left", fontsize=9.5, color=QUIET, pad=5)
            panel.set_yticklabels(["0", "", "1"] if place % columns == 0 else [""] * 3, fontsize=9.5)
            if place + columns >= len(kinds):
                panel.set_xlabel("false alarms", fontsize=9.5)
        panels[0].set_ylabel("found", fontsize=9.5)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=min(5, len(names)), fontsize=8.5, frameon=False, handlelength=2.2)
    return figure
