"""The map that the spatial memory remembers, over the true one, with a way on it; and how an explorer's estimate drifts along its walk.

A remembered map has no origin in common with the true one: it is laid where most labels agree.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import hypot
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hippo_core.methods.base import Method, Observation
from hippo_core.methods.spatial import Smpd
from hippo_core.methods.spatial.answers import MapAnswerer
from hippo_core.methods.spatial.localise import integrate
from hippo_core.methods.spatial.place_map import Cell, grid_layout
from hippo_core.methods.spatial.planner import PlannedRoute
from hippo_core.results.figures.drawing import STYLE, Margins, grid, png
from hippo_core.results.figures.palette import INK, QUIET, RULE
from hippo_core.suites.spatial.map import Map
from hippo_core.suites.spatial.path import true_path
from hippo_core.suites.types import World

# Okabe and Ito's colours; lines differ too.
LINKS: dict[str, tuple[str, Any, float]] = {
    "right": ("#009e73", "-", 2.2),
    "missing": ("#9aa0a6", (0, (1, 1.6)), 2.2),
    "stale": ("#e69f00", (0, (5, 2)), 2.4),
    "invented": ("#d55e00", (0, (6, 2, 1, 2)), 2.4),
}
ROUTE = "#0072b2"
Pair = frozenset[Cell]


def pictures(method: Method, worlds: Sequence[World]) -> list[bytes]:
    """Of each world that is a grid, a PNG of the map that is made of all that is told of it, with the first way that is asked for; none
    of a method that keeps no map."""
    drawn = []
    if not isinstance(method, Smpd) or method.settings.traces != "spatial":
        return []
    for world in worlds:
        if item := next((asked for asked in world.items if asked.kind == "grid_path"), None):
            atlas = method.atlas([Observation.of(fact).trace() for fact in world.facts])
            answer = atlas.answer(item.question)
            drawn.append(png(over_the_true_map(atlas, true_path(world, item)[0], answer.route if answer else None)))
    return drawn


def compared(atlas: MapAnswerer, true: Map) -> dict[str, set[Pair]]:
    """The links of a remembered grid and of the true one, as pairs of true cells: `right` on both, `missing` on the remembered one; on
    that alone `stale`, where the explorer has crossed it, and `invented`, where it has not. A place that no direction leads to lies in no
    cell: its links are left out."""
    moved, cells = _shift(atlas, true), grid_layout(true.steps)
    remembered = {_pair(moved[a], moved[b]) for a, near in atlas.map.steps.items() for b in near.values() if {a, b} <= moved.keys()}
    there = {_pair(cells[a], cells[b]) for a, near in true.steps.items() for b in near.values()}
    name_at = {cell: name for name, cell in atlas.map.cells.items()}
    walk = atlas.localised.cells if atlas.localised else ()
    crossed = {_pair(moved[name_at[a]], moved[name_at[b]]) for a, b in pairwise(walk)}
    extra = remembered - there
    return {"right": remembered & there, "missing": there - remembered, "stale": extra & crossed, "invented": extra - crossed}


def over_the_true_map(atlas: MapAnswerer, true: Map, route: PlannedRoute | None = None) -> Figure:
    """The remembered map of a grid on the true one, with a way; beside it, of an explorer, the drift along its walk."""
    links, moved = compared(atlas, true), _shift(atlas, true)
    cells = grid_layout(true.steps)
    rows = [cell[0] for cell in (*cells.values(), *moved.values())]
    body = max(2.6, 0.52 * (max(rows) - min(rows) + 1)) + 0.8
    remembered, there = len(links["right"]), len(links["right"] | links["missing"])
    wrong = len(links["stale"] | links["invented"])
    title = f"{remembered} of {there} links are remembered" + (
        f", and {wrong} that {'is' if wrong == 1 else 'are'} not there" if wrong else ""
    )
    figure, panels = grid(title, 1, 2 if atlas.localised else 1, body, Margins(0.35, 0.2, 0.75, 0.8, head=0.1))
    with matplotlib.rc_context(STYLE):
        _map(panels[0], links, cells, [moved[place] for place in route.places if place in moved] if route else [])
        if atlas.localised:
            _drift(panels[1], atlas)
    return figure


def _map(panel: Axes, links: dict[str, set[Pair]], cells: dict[str, Cell], route: list[Cell]) -> None:
    for kind, (colour, line, width) in LINKS.items():
        for pair in sorted(links[kind], key=sorted):
            (top, left), (bottom, right) = min(pair), max(pair)  # one cell where a map contradicts itself
            panel.plot([left, right], [-top, -bottom], color=colour, linestyle=line, linewidth=width, zorder=2)
    if route:
        panel.plot([c for _, c in route], [-r for r, _ in route], color=ROUTE, linewidth=7, alpha=0.35, zorder=1, solid_capstyle="round")
        for (row, column), face in ((route[0], "white"), (route[-1], ROUTE)):
            panel.plot(column, -row, "o", markeredgecolor=ROUTE, markeredgewidth=2, markerfacecolor=face, markersize=9, zorder=5)
    for label, (row, column) in cells.items():
        panel.plot(column, -row, "o", color=INK, markersize=3, zorder=4)
        panel.annotate(label, (column, -row), (3, -9), textcoords="offset points", fontsize=7, color=INK)
    panel.set_aspect("equal", adjustable="datalim")
    panel.margins(0.12)
    panel.set_axis_off()
    shown = [Line2D([], [], color=c, linestyle=dashes, linewidth=w, label=f"{k} ({len(links[k])})") for k, (c, dashes, w) in LINKS.items()]
    shown += [Line2D([], [], color=ROUTE, linewidth=7, alpha=0.35, label="the way, to the full dot")] if route else []
    panel.legend(handles=shown, frameon=False, fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.02), handlelength=2.6)


def _drift(panel: Axes, atlas: MapAnswerer) -> None:
    assert atlas.localised
    alone = integrate([visit for _, visit in atlas.visits]).cells
    away = [hypot(a[0] - b[0], a[1] - b[1]) for a, b in zip(alone, atlas.localised.cells, strict=True)]
    steps = range(1, len(away) + 1)
    panel.plot(steps, away, color="#d55e00", linestyle="--", linewidth=1.6)
    panel.plot(steps, atlas.localised.spread, color=ROUTE, linewidth=1.6)
    panel.set_xlabel("step of the walk", fontsize=9)
    panel.set_ylabel("cells", fontsize=9)
    panel.tick_params(labelsize=8)
    panel.set_ylim(-0.1, max(1.0, *away, *atlas.localised.spread) * 1.3)
    panel.grid(axis="y", color=RULE, linewidth=0.6)
    panel.spines[["left", "bottom"]].set_color(QUIET)
    names: dict[str, tuple[Any, str]] = {
        "#d55e00": ("--", "moves alone, from the estimate"),
        ROUTE: ("-", "the estimate's uncertainty"),
    }
    shown = [Line2D([], [], color=c, linestyle=dashes, label=name) for c, (dashes, name) in names.items()]
    panel.legend(handles=shown, frameon=False, fontsize=8, loc="upper left")


def _shift(atlas: MapAnswerer, true: Map) -> dict[str, Cell]:
    """The true cell that each remembered place is laid on."""
    cells, own = grid_layout(true.steps), atlas.map.cells
    apart = Counter(
        (cells[label][0] - own[place][0], cells[label][1] - own[place][1])
        for place, label in atlas.map.labels.items()
        if label in cells and place in own
    )
    down, right = max(sorted(apart), key=apart.__getitem__, default=(0, 0))
    return {place: (row + down, column + right) for place, (row, column) in own.items()}


def _pair(a: Cell, b: Cell) -> Pair:
    return frozenset((a, b))
