"""The commands that protocols bring along: `commands.py` of a protocol's folder holds them as `app`; and what the
range of an option does not refuse."""

import math
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import typer

from hippo_core import protocols


def apps() -> Iterator[typer.Typer]:
    """Those of all protocols, in the order of their folders."""
    for path in sorted(Path(protocols.__path__[0]).glob("*/commands.py")):
        if path.parent != Path(__file__).parent:
            yield import_module(f"{protocols.__name__}.{path.parent.name}.commands").app


def finite(value: float) -> float:
    """The number; a usage error for infinity and for what is no number, which lie in every range."""
    if not math.isfinite(value):
        raise typer.BadParameter(f"expected a finite number, got {value}")
    return value
