"""Tests that read files of others: they run where HIPPO_DATA names a folder that has them, and are skipped with the reason elsewhere."""

import pytest

from hippo_core.text_files import why_missing


def needs(*names: str) -> pytest.MarkDecorator:
    """Skip a test where one of these files of params/data.yaml is not there."""
    reason = why_missing(names)
    return pytest.mark.skipif(reason is not None, reason=reason or "")
