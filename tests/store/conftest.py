"""A fresh store to write to."""

import pytest

from hippo_core.store import TraceStore
from tests.store.made import IDENTITY


@pytest.fixture
def store(tmp_path):
    """An empty store of session s1, open for writing."""
    with TraceStore.create(tmp_path, "s1", IDENTITY) as made:
        yield made
