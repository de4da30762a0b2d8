"""Fixtures of these tests: random models on disk and in memory, a package index."""

from tests.models.handmade import folders, lm, loaded
from tests.models.package_index import index, lab_path, wheel

__all__ = ["folders", "index", "lab_path", "lm", "loaded", "wheel"]
