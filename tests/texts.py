"""Tests that read files of others: they run where HIPPO_DATA names a folder that has them, and are skipped with the reason elsewhere."""

from typing import Any

import pytest

from hippo_core.text_files import why_missing


def needs(*names: str) -> pytest.MarkDecorator:
    """Skip a test where one of these files of params/data.yaml is not there."""
    reason = why_missing(names)
    return pytest.mark.skipif(reason is not None, reason=reason or "")


def texts_of(content: Any) -> list[str]:
    """All texts in the values of a YAML file."""
    if isinstance(content, str):
        return [content]
    inner = content.values() if isinstance(content, dict) else content if isinstance(content, list | tuple) else ()
    return [text for part in inner for text in texts_of(part)]
