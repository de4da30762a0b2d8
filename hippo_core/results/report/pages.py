"""Templates of pages and of markdown, the words that go into them, and a dot with its interval as a small inline SVG, for a table's row;
the page's style sheet draws axis, guide and ticks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from hippo_core.files import made_folder
from hippo_core.results.formatting import missing

SHARED = Path(__file__).parent / "templates"
WIDTH, HEIGHT, PAD = 170, 20, 7
MIDDLE = HEIGHT / 2
Domain = tuple[float, float]  # the ends of an axis


@dataclass(frozen=True)
class Templates:
    """The templates of a folder, and behind them those that all reports share."""

    folder: Path = SHARED

    def html(self, template: str, **words: Any) -> str:
        """A page, with style and script inline, or a part of one; every word is escaped unless it is Markup."""
        style, script = _inline("style.css"), _inline("script.js")
        return _environment(self.folder, True).get_template(template).render(style=style, script=script, **words)

    def markdown(self, template: str, **words: Any) -> str:
        """Markdown; bars in text are escaped so that they do not end a table's cell."""
        return _environment(self.folder, False).get_template(template).render(**_without_bars(words))


@cache
def _environment(folder: Path, html: bool) -> Environment:
    loader = FileSystemLoader([folder, SHARED])
    return Environment(loader=loader, autoescape=html, undefined=StrictUndefined, keep_trailing_newline=True)


@cache
def _inline(name: str) -> Markup:
    return Markup((SHARED / name).read_text(encoding="utf-8"))


def _without_bars(value: Any) -> Any:
    """The same structure with `|` escaped and line ends folded in every text."""
    if isinstance(value, str):
        return " ".join(value.replace("|", "\\|").split("\n"))
    if isinstance(value, dict):
        return {key: _without_bars(inner) for key, inner in value.items()}
    return type(value)(map(_without_bars, value)) if type(value) in (list, tuple) else value


def slug(title: str) -> str:
    """A title as a file name and anchor."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", title).strip("-")


def write_pictures(out: Path, pictures: Mapping[str, bytes]) -> None:
    """Write pictures by the names of their files below a report's folder."""
    for file, data in pictures.items():
        made_folder((out / file).parent)
        (out / file).write_bytes(data)


def dot_and_bar(
    value: float, low: float, high: float, domain: Domain, colour: str, alt: str, guide: float | None = None, target: object = None
) -> Markup:
    """A dot at `value` with a bar from `low` to `high` on an axis over `domain`. `guide`: a dashed line (chance, no effect); `target`: a
    tick below the axis, or two; `alt`: what a screen reader says. Values beyond the domain are drawn at its end."""
    if missing(value):
        return Markup("")
    bar = [] if missing(low) or missing(high) else [_line(_x(low, domain), _x(high, domain), f'class="mark" style="--c:{colour}"')]
    return _picture(domain, guide, target, alt, [*bar, _dot(_x(value, domain), colour)])


def strip(dots: Sequence[tuple[float, str]], domain: Domain, alt: str, guide: float | None = None, target: object = None) -> Markup:
    """Several values, each with its colour, as dots on one axis; otherwise like `dot_and_bar`."""
    known = [(value, colour) for value, colour in dots if not missing(value)]
    return _picture(domain, guide, target, alt, [_dot(_x(value, domain), colour, 0.75) for value, colour in known]) if known else Markup("")


def _picture(domain: Domain, guide: float | None, target: object, alt: str, marks: list[str]) -> Markup:
    parts = [_line(_x(domain[0], domain), _x(domain[1], domain), 'class="axis"')]
    if not missing(guide):
        at = f"{_x(guide, domain):.1f}"
        parts.append(f'<line class="guide" x1="{at}" y1="1.0" x2="{at}" y2="{HEIGHT - 1:.1f}"/>')
    for tick in target if isinstance(target, tuple) else (target,):
        if not missing(tick):  # a small triangle that points at the axis from below
            parts.append(f'<path d="M{_x(tick, domain):.1f} {MIDDLE + 3:.1f} l3.5 6.5 h-7 z"/>')
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    return Markup(f'<svg class="bar" {size} role="img" aria-label="{Markup.escape(alt)}">{"".join(parts + marks)}</svg>')


def _dot(x: float, colour: str, opacity: float = 1.0) -> str:
    faint = f' fill-opacity="{opacity}"' if opacity < 1 else ""
    return f'<circle class="mark" style="--c:{colour}" cx="{x:.1f}" cy="{MIDDLE:.1f}" r="4.5"{faint}/>'


def _x(value: object, domain: Domain) -> float:
    share = (float(value) - domain[0]) / (domain[1] - domain[0])  # type: ignore[arg-type]
    return PAD + min(1.0, max(0.0, share)) * (WIDTH - 2 * PAD)


def _line(x1: float, x2: float, attributes: str) -> str:
    return f'<line {attributes} x1="{x1:.1f}" y1="{MIDDLE:.1f}" x2="{x2:.1f}" y2="{MIDDLE:.1f}"/>'
