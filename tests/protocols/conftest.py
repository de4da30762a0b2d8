"""Fixtures of these tests: random models on disk and in memory."""

from tests.models.handmade import folders, lm, loaded

__all__ = ["folders", "lm", "loaded"]
