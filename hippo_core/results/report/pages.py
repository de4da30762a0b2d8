"""Templates of pages and of markdown, and the words that go into them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from hippo_core.files import made_folder

SHARED = Path(__file__).parent / "templates"


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
