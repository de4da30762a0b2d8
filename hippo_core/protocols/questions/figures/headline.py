"""The figure of the report's first screen: a memory, what it is compared with, the floor and the ceiling, a line for each setting."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import matplotlib
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from hippo_core.results.conditions import base
from hippo_core.results.criteria.evidence import LEAST_ABOVE_CHANCE
from hippo_core.results.figures.drawing import STYLE, WIDTH, Margins, bars, grid, png, text_width
from hippo_core.results.figures.palette import CHANCE, INK, QUIET, RULE, Style, style_of
from hippo_core.results.formatting import share
from hippo_core.results.frames import Frame

BEST_RAG = "The best rag"
RAG_STYLE = Style("best rag", "#5f7a6b", "D")
MOST = 16  # lines; of more settings the first are drawn
FLOOR, CEILINGS = "baselines/span_short", ("controls/oracle_store", "controls/oracle")
WORDS = {  # what the legend says of a condition that a stranger does not know by its name
    "memory/hei_nw": "events: {}",
    "memory/sgc_rss": "relations: {}",
    "memory/smpd": "ways: {}",
    FLOOR: "the model alone",
    "controls/oracle_store": "given the right trace",
    "controls/oracle": "given the right facts",
}


@dataclass(frozen=True)
class HeadlineComparison:
    """In one setting the condition `a`, the `b` that it is compared with (empty: nothing), and a less b with its 95% interval. `rag`: the
    best one; `table`: the estimates of all conditions, by condition; `about`: what its questions take, in plain words."""

    setting: str
    a: str
    b: str
    rag: str
    table: Frame
    difference: float
    low: float
    high: float
    about: str = ""

    def mean(self, condition: str) -> float:
        """The share of answers right."""
        return float(self.table.loc[condition, "mean"])

    @property
    def subject(self) -> str:
        """The condition `a` in a sentence."""
        return self._named(self.a)

    @property
    def rival(self) -> str:
        """The condition `b` in a sentence."""
        return self._named(self.b)

    @property
    def at_chance(self) -> bool:
        """Whether `b` is a rag that answers hardly more than a guess, so that to be ahead of it says nothing."""
        chance = self.table["chance"].get(self.b, 0.0) if self.b == self.rag and "chance" in self.table else math.nan
        return bool(self.mean(self.b) <= chance + LEAST_ABOVE_CHANCE + 1e-9)

    def _named(self, condition: str) -> str:
        label = style_of(condition).label
        return f"the best rag ({label})" if condition == self.rag else label


def headline_figure(title: str, leads: Sequence[HeadlineComparison]) -> bytes:
    """A line for each setting with its conditions as dots and intervals, and at its end the difference of the two that are compared."""
    leads = leads[:MOST]
    names = ["\n".join(filter(None, (lead.about, lead.setting))) for lead in leads]
    in_legend = {_style(name, lead).label for lead in leads for name in _shown(lead)}
    columns = max(1, int((WIDTH - 0.3) / (text_width(in_legend, 9.5) + 0.42)))
    rows = math.ceil(len(in_legend) / columns)
    words = [part for name in names for part in name.split("\n")]
    margins = Margins(max(1.2, text_width(words, 10.5) + 0.2), 0.75, foot=0.5, head=0.2 + 0.22 * rows)
    figure, [panel] = grid(title, 1, 1, (0.46 if any(lead.about for lead in leads) else 0.36) * len(leads) + 0.62, margins)
    styles: dict[str, Style] = {}
    with matplotlib.rc_context(STYLE):
        for height, lead in enumerate(leads):
            styles |= _line(panel, height, lead)
        panel.set(xlim=(-0.02, 1.02), ylim=(len(leads) - 0.4, -0.6), xticks=[0, 0.25, 0.5, 0.75, 1], yticks=range(len(leads)))
        panel.set_xticklabels(["0", "", "0.5", "", "1"])
        panel.set_yticklabels(names, fontsize=10.5)
        panel.spines["left"].set_visible(False)
        panel.tick_params(axis="y", length=0)
        panel.set_xlabel("share of answers right", fontsize=10)
        if any(lead.b for lead in leads):
            panel.text(1.05, -0.62, "difference", fontsize=8.5, color=QUIET, va="bottom")
        above = (0.005, panel.get_position().y1 + (0.14 + 0.22 * rows) / figure.get_figheight())
        figure.legend(
            handles=[_handle(style) for style in styles.values()], loc="upper left", bbox_to_anchor=above, ncols=-(-len(styles) // rows),
            frameon=False, fontsize=9.5, handletextpad=0.1, columnspacing=1.2,
        )  # fmt: skip
        return png(figure)


def _line(panel: Axes, height: int, lead: HeadlineComparison) -> dict[str, Style]:
    """One setting; returns the styles that it needs in the legend, by label."""
    panel.axhline(height, color=RULE, linewidth=0.6, zorder=0)
    shown = {name: _style(name, lead) for name in _shown(lead)}
    for number, (name, style) in enumerate(shown.items()):
        shift = 0.11 * (number - (len(shown) - 1) / 2)  # so that dots of one value do not hide each other
        bars(panel, [height + shift], lead.table.loc[[name]], style, across=True, size=7 if name == lead.a else 5.5)
    chance = lead.table["chance"].mean()
    if not math.isnan(chance):
        panel.plot([chance, chance], [height - 0.3, height + 0.3], color=CHANCE, linewidth=1.2, zorder=1)
    if lead.b:
        clear = lead.low > 0 or lead.high < 0
        weight = "bold" if clear else "normal"
        panel.text(1.05, height, share(lead.difference, sign=True), fontsize=10, va="center", color=INK if clear else QUIET, weight=weight)
    return {style.label: style for style in reversed(shown.values())}


def _shown(lead: HeadlineComparison) -> list[str]:
    """The conditions of a line, the one that it is about last: it lies on top."""
    ceiling = next((name for name in CEILINGS if name in lead.table.index), "")
    return [name for name in dict.fromkeys((FLOOR, ceiling, lead.b, lead.a)) if name and name in lead.table.index]


def _style(name: str, lead: HeadlineComparison) -> Style:
    if name == lead.rag and name != lead.a:
        return RAG_STYLE
    known = style_of(name)
    return replace(known, label=WORDS.get(base(name), "{}").format(known.label))


def _handle(style: Style) -> Line2D:
    face = "white" if style.hollow else style.colour
    return Line2D(
        [], [], color=style.colour, marker=style.marker, linestyle="none", markerfacecolor=face, markeredgewidth=1.4, label=style.label
    )
