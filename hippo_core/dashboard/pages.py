"""The pieces of HTML that the panels show, from one template; whatever they hold is text in it."""

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

HERE = Path(__file__).parent
STYLE = Markup("<style>{}</style>")


@cache
def _pieces() -> Any:
    environment = Environment(loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.get_template("panels.html.j2").module


def piece(name: str, *values: object) -> str:
    """One piece: a note, a pair, an item or a sweep."""
    return str(getattr(_pieces(), name)(*values)).strip()


def style() -> str:
    """The style of all pieces, which a panel shows once."""
    return str(STYLE.format(Markup((HERE / "panels.css").read_text(encoding="utf-8"))))
