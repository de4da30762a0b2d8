"""A fresh store to write to."""

import pytest

from hippo_core.memory.store import TraceStore
from tests.memory.made import IDENTITY, TOKENS


@pytest.fixture
def store(tmp_path):
    """An empty store of session s1, open for writing."""
    with TraceStore.create(tmp_path, "s1", IDENTITY, TOKENS) as made:
        yield made
