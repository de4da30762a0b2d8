"""A grid in a notebook: `watch` shows how one comes along that was started anywhere, `start` starts one and shows it."""

from .start import start
from .view import GridView, watch

__all__ = ["GridView", "start", "watch"]
