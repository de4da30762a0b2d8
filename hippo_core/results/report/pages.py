"""Templates and the words that go into them, and the relative links from a number to the items behind it."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from hippo_core.results.figures.palette import look
from hippo_core.results.report.runs import Cell

TEMPLATES = Path(__file__).parent / "templates"


@cache
def _environment(html: bool) -> Environment:
    return Environment(loader=FileSystemLoader(TEMPLATES), autoescape=html, undefined=StrictUndefined, keep_trailing_newline=True)


def html(template: str, **words: Any) -> str:
    """A page with style and script inline; every word is escaped unless it is Markup."""
    return _environment(True).get_template(template).render(style=_inline("style.css"), script=_inline("script.js"), **words)


@cache
def _inline(name: str) -> Markup:
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))


def slug(setting: str) -> str:
    """A setting as a file name and anchor."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", setting).strip("-")


def markdown(template: str, **words: Any) -> str:
    """A markdown file; bars in text are escaped so that they do not end a table's cell."""
    return _environment(False).get_template(template).render(**_without_bars(words))


def _without_bars(value: Any) -> Any:
    """The same structure with `|` escaped and line ends folded in every text."""
    if isinstance(value, str):
        return " ".join(value.replace("|", "\\|").split("\n"))
    if isinstance(value, dict):
        return {key: _without_bars(inner) for key, inner in value.items()}
    return type(value)(map(_without_bars, value)) if type(value) in (list, tuple) else value


@dataclass(frozen=True)
class Links:
    """Where the items behind a number are listed."""

    cells: list[Cell]
    pairs_page: str

    def items(self, condition: str, regime: str, **where: str) -> str:
        """The page of a condition's items: its cell's page where there is one cell, else the setting's page."""
        regime = self.regime(condition, regime)
        here = [cell for cell in self.cells if cell.condition == condition and cell.regime == regime]
        fragment = _fragment(where)
        if len(here) == 1 and here[0].listed:
            return f"items/{here[0].page}" + (f"#{fragment[1:]}" if fragment else "")
        return f"items/{self.pairs_page}#a={quote(_column(condition, regime))}{fragment}"

    def differing(self, a: tuple[str, str], b: tuple[str, str], side: str = "both", **where: str) -> str:
        """The setting's page, showing only the items where a and b differ (`side`: where only one of them is right; `where`: of a rung)."""
        left, right = (quote(_column(name, self.regime(name, regime))) for name, regime in (a, b))
        return f"items/{self.pairs_page}#a={left}&b={right}&only={side}{_fragment(where)}"

    def regime(self, condition: str, regime: str) -> str:
        """The regime under which the record lies: conditions without a window have one record for both."""
        return regime if any(cell.regime == regime for cell in self.cells if cell.condition == condition) else "delayed"


def _fragment(where: dict[str, str]) -> str:
    return "".join(f"&{name}={quote(str(value))}" for name, value in where.items())


def _column(condition: str, regime: str) -> str:
    return f"{look(condition).label}, {regime}"
