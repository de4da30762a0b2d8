"""Fixtures of these tests: random models on disk and in memory, a package index."""

from tests.models.handmade import folders, lm, loaded
from tests.models.package_index import index, place, wheel

__all__ = ["folders", "index", "lm", "loaded", "place", "wheel"]
