"""Templates and the words that go into them: the pages of a report are made here and nowhere else."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

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
