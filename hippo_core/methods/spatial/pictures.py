"""A drawing of the remembered map: places, the links between them, and the way that answers a question."""

from html import escape
from itertools import pairwise

import rustworkx

from hippo_core.methods.base import Picture
from hippo_core.methods.spatial.answers import MapAnswer, MapAnswerer
from hippo_core.methods.spatial.place_map import PlaceMap

ACCENT, QUIET = "var(--hippo-accent, #0072b2)", "var(--hippo-quiet, #9aa0a6)"
COLUMN, ROW, MARGIN = 84, 52, 30  # pixels between places of a grid, and around the map
SIZE = 420  # of a map without directions


def drawn(atlas: MapAnswerer, reply: MapAnswer | None) -> Picture:
    """The map, with the way on it where the answer is one."""
    at = positions(atlas.map)
    passed = reply.route.places if reply and reply.route else ()
    on_route = {frozenset(pair) for pair in pairwise(passed)}
    links = {frozenset((a, b)) for a, near in atlas.map.steps.items() for b in near.values()}
    rows = []
    for link in sorted(links, key=lambda link: (link in on_route, *sorted(link))):
        a, b = sorted(link)
        rows.append(_link(at[a], at[b], link in on_route))
    rows += [_place(at[place], atlas.map.labels[place], place in passed, place == (passed or ("",))[-1]) for place in atlas.map.steps]
    width, height = (max(values, default=0) + 2 * MARGIN for values in (zip(*at.values(), strict=True) if at else ((), ())))
    alt = f"a map of {len(at)} places and {len(links)} links" + (f" with a way of {len(passed) - 1} steps" if passed else "")
    svg = (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{escape(alt)}">{"".join(rows)}</svg>'
    )
    legend = f" The thick line is the way, which ends at the large dot: {reply.answer}." if reply and passed else ""
    north = "North is up." if atlas.map.is_grid else "Distances mean nothing."
    return Picture("Remembered map", svg, f"Dots are places, lines the links that are held to be open. {north}{legend}")


def positions(place_map: PlaceMap) -> dict[str, tuple[int, int]]:
    """Where each place is drawn: by its cell, or where directions say nothing, by springs along the links."""
    cells = place_map.cells
    if place_map.steps and set(cells) >= set(place_map.steps):
        top, left = min(row for row, _ in cells.values()), min(column for _, column in cells.values())
        return {
            place: (MARGIN + COLUMN * (cells[place][1] - left), MARGIN // 2 + ROW * (cells[place][0] - top)) for place in place_map.steps
        }
    names = list(place_map.steps)
    graph = rustworkx.PyGraph(multigraph=False)
    graph.add_nodes_from(names)
    number = {name: index for index, name in enumerate(names)}
    graph.add_edges_from_no_data([(number[a], number[b]) for a, near in place_map.steps.items() for b in near.values() if a < b])
    spread = rustworkx.spring_layout(graph, num_iter=200, seed=0)
    columns, rows = [x for x, _ in spread.values()] or [0.0], [y for _, y in spread.values()] or [0.0]
    wide, high = max(max(columns) - min(columns), 1e-9), max(max(rows) - min(rows), 1e-9)
    inner = SIZE - 2 * MARGIN
    return {
        name: (
            MARGIN + round(inner * (spread[at][0] - min(columns)) / wide),
            MARGIN // 2 + round(inner * (spread[at][1] - min(rows)) / high),
        )
        for at, name in enumerate(names)
    }


def _link(a: tuple[int, int], b: tuple[int, int], on_route: bool) -> str:
    colour, width = (ACCENT, 4) if on_route else (QUIET, 1.5)
    return f'<line x1="{a[0]}" y1="{a[1]}" x2="{b[0]}" y2="{b[1]}" stroke="{colour}" stroke-width="{width}"/>'


def _place(at: tuple[int, int], label: str, on_route: bool, end: bool) -> str:
    x, y = at
    colour, weight = (ACCENT, 600) if on_route else (QUIET, 400)
    circle = f'<circle cx="{x}" cy="{y}" r="{8 if end else 5}" fill="{colour}"/>'
    name = escape(label or "?")
    return f'{circle}<text x="{x + 7}" y="{y + 17}" font-size="11" font-weight="{weight}" fill="currentColor">{name}</text>'
