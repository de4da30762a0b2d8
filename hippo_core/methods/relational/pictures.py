"""A drawing of the path that answered a question: names, the statements between them, and those that say otherwise and lost."""

from html import escape
from typing import Any

from hippo_core.methods.base import Picture
from hippo_core.methods.relational.learned import AnyPath

ACCENT = "var(--hippo-accent, #0072b2)"
WIDTH, ROW, LEFT, MOST = 560, 20, 12, 4
CHARACTERS = 78  # of a statement that fit into a row


def drawn(search: Any, path: AnyPath) -> Picture:
    """The path from the question's name at the top to what is asked for at the bottom."""
    texts, against = [edge.trace.text for edge in search.graph.statements], search.against(path)
    rows: list[str] = []
    lost = 0
    for number, (node, statement) in enumerate(zip(path.nodes, (*path.statements, None), strict=True)):
        rows.append(_node(len(rows), search.names[node], number in (0, len(path.statements))))
        if statement is None:
            break
        rows.append(_line(len(rows), texts[statement]))
        lost += len(against[number])
        rows += [_line(len(rows) + offset, texts[loser], lost=True) for offset, loser in enumerate(against[number][:MOST])]
    height = ROW * len(rows) + 6
    alt = f"a path over {len(path.statements)} statements to {search.names[path.end]}"
    svg = (
        f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" aria-label="{escape(alt)}">{"".join(rows)}</svg>'
    )
    more = f" Struck through is what says otherwise and lost ({lost})." if lost else ""
    return Picture(
        "Path through what was told", svg, f"Names are nodes, statements the edges between them; the last name is where it ends.{more}"
    )


def _node(row: int, name: str, end: bool) -> str:
    y = ROW * row + ROW - 6
    fill = ACCENT if end else "none"
    circle = f'<circle cx="{LEFT}" cy="{y - 4}" r="5" fill="{fill}" stroke="{ACCENT}" stroke-width="1.5"/>'
    return f'{circle}<text x="{LEFT + 14}" y="{y}" font-size="12" font-weight="600" fill="currentColor">{escape(name)}</text>'


def _line(row: int, text: str, lost: bool = False) -> str:
    y = ROW * row + ROW - 6
    short = text if len(text) <= CHARACTERS else f"{text[: CHARACTERS - 1]}…"
    bar = f'<line x1="{LEFT}" y1="{ROW * row}" x2="{LEFT}" y2="{ROW * row + ROW}" stroke="{ACCENT}" stroke-width="1.5"/>'
    style = 'fill-opacity=".6" text-decoration="line-through"' if lost else ""
    return f'{bar}<text x="{LEFT + 14}" y="{y}" font-size="11" fill="currentColor" {style}>{escape(short)}</text>'
