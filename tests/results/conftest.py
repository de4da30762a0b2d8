"""A lab beside this one, with a preset of its own that uses the window and presets that cannot be loaded."""

import sys

import pytest

METHOD = "from hippo_core.methods.base import Method\n\n\nclass Recent(Method):\n    ignores_window = False\n"


@pytest.fixture
def other_lab(tmp_path, monkeypatch):
    """The lab's folder. `mine/recent` uses the window, `mine/newer_library` imports a name that its library lacks here."""
    (tmp_path / "own_window.py").write_text(METHOD)
    (tmp_path / "own_import.py").write_text(f"from json import not_in_this_version\n{METHOD}")
    folder = tmp_path / "params" / "presets" / "mine"
    folder.mkdir(parents=True)
    for name, module in (("recent", "own_window"), ("newer_library", "own_import"), ("no_module", "own_missing")):
        (folder / f"{name}.yaml").write_text(f"method: {module}:Recent\n")
    monkeypatch.setattr(sys, "path", [*sys.path])  # the lab's folder is appended when a preset is loaded
    monkeypatch.setenv("HIPPO_ROOT", str(tmp_path))
    yield tmp_path
    sys.modules.pop("own_window", None)
