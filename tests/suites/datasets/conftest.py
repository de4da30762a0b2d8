"""A root for data sets."""

import pytest

from hippo_core.files import root


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A repository root of its own, with this one's parameters and samples."""
    for name in ("params", "data/samples", "data/relations"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to(root() / name)
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    return tmp_path
