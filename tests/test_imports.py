"""Imports go one way: a package imports only those before it, and never the lab from below; planning a grid loads no torch."""

import subprocess
import sys
from pathlib import Path

import pytest

from hippo_core.lab.run.fingerprints import imports

PACKAGE = Path(__file__).resolve().parents[1] / "hippo_core"
RANKS = {"files": 0, "kernels": 1, "memory": 2, "models": 2, "suites": 3, "conditions": 3, "results": 4, "protocols": 5, "lab": 6}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__main__.py" and path.parent != PACKAGE)


def part(module: str) -> str:
    return [*module.split("."), ""][1]


def test_every_package_has_a_rank():
    found = {path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert found <= set(RANKS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_what_stands_before_it(path):
    own = path.relative_to(PACKAGE).parts[0]
    wrong = {name for name in imports(path) if part(name) in RANKS and part(name) != own and RANKS[part(name)] > RANKS[own]}
    assert not wrong


def test_models_know_of_no_memory():
    assert not [path for path in (PACKAGE / "models").rglob("*.py") if any(part(name) == "memory" for name in imports(path))]


def test_nothing_imports_a_notebook_or_a_test():
    text = {path: path.read_text(encoding="utf-8") for path in MODULES}
    assert not [path for path, source in text.items() if "import notebooks" in source and path.parent.name != "lab"]
    assert not [path for path, source in text.items() if "from tests" in source or "import tests" in source]


def test_the_command_line_plans_without_torch():
    code = "import sys; import hippo_core.lab.cli.commands; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
