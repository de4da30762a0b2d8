"""Numbers on the command line: what the range of an option does not refuse."""

import math

import typer


def finite(value: float) -> float:
    """The number; a usage error for infinity and for what is no number, which lie in every range."""
    if not math.isfinite(value):
        raise typer.BadParameter(f"expected a finite number, got {value}")
    return value
