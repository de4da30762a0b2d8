"""What the questions of each suite are made of: bars cut into kinds of question and rungs of the cue."""

from collections.abc import Mapping

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hippo_core.results.figures.drawing import STYLE, Margins, grid, text_width
from hippo_core.results.frames import Frame

PANELS = {"kinds": "by kind of question", "rungs": "by rung of the cue"}  # column `by`: title
SHADES = ("#3b5b7a", "#6f8fae", "#a9bfd3", "#d9c9a3", "#b08f4f", "#7a6a4f", "#9aa58c")
DARK = (0, 1, 4, 5)  # numbers of the shades that carry white letters
LINE = 0.34  # inches of a suite's bar with the room around it
LETTERS = 7.5  # font size in a part


def composition(parts: Frame) -> Figure:
    """One bar a suite and panel, cut as shares of its test questions. `parts`: a row a part, columns suite, by, name, items."""
    suites = list(dict.fromkeys(parts["suite"]))
    margins = Margins(text_width(suites, 10) + 0.2, 0.15, foot=0.5, between=0.5)
    body = len(PANELS) * LINE * len(suites) + margins.between + margins.foot
    figure, panels = grid("What each suite asks, by the number of test questions", len(PANELS), 1, body, margins)
    with matplotlib.rc_context(STYLE):
        for panel, (by, title) in zip(panels, PANELS.items(), strict=True):
            here = parts.loc[parts["by"] == by]
            shades = {name: number % len(SHADES) for number, name in enumerate(here["name"].unique())}
            for row, suite in enumerate(suites):
                _bar(panel, row, here.loc[here["suite"] == suite], shades)
            panel.set(xlim=(0, 1), ylim=(len(suites) - 0.5, -0.5), yticks=range(len(suites)), xticks=[])
            panel.set_yticklabels(suites, fontsize=10)
            panel.set_title(title, loc="left", fontsize=10)
            panel.spines[["left", "bottom"]].set_visible(False)
            panel.tick_params(axis="y", length=0)
        panels[-1].set(xticks=[0, 0.5, 1], xticklabels=["0", "0.5", "1"])
        panels[-1].set_xlabel("share of the questions", fontsize=10)
    return figure


def _bar(panel: Axes, row: int, parts: Frame, shades: Mapping[str, int]) -> None:
    """One suite's bar; a part that is too narrow for its label goes without, or with its number alone."""
    total, offset = parts["items"].sum(), 0.0
    inches = panel.get_window_extent().width / panel.figure.dpi
    for name, count in zip(parts["name"], parts["items"], strict=True):
        width, shade = count / total, shades[name]
        panel.barh(row, width, left=offset, color=SHADES[shade], edgecolor="white", height=0.8)
        fitting = (text for text in (f"{name} {count}", str(count)) if text_width([text], LETTERS) + 0.06 < width * inches)
        ink = "white" if shade in DARK else "black"
        panel.text(offset + width / 2, row, next(fitting, ""), ha="center", va="center", fontsize=LETTERS, color=ink)
        offset += width
