"""Checksums of what a cell's rows can depend on: code, weights, library versions. Each is computed once a process."""

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from hippo_core.files import root, sha256
from hippo_core.lab.run import notebook_files
from hippo_core.lab.run.syntax import parsed
from hippo_core.models.spec import load_spec

ROW_MAKERS = {  # by notebook: what makes its rows; with what they import
    "02_baseline": ("models", "suites", "conditions", "protocols/evaluate.py"),
    "03_memory": ("kernels", "memory", "models", "suites", "conditions", "protocols/memory"),
}
ABOUT_WEIGHTS = ("README.md", "card.json", "training.json", "curve.png")  # files beside weights: how they were made and measured
OF_MEMORY = ("adapter.*", "key.*", "recall.*")  # files beside weights that only memories read
ROW_KEEPERS = (
    "scores",
    "records.summary",
    "records.telemetry",
    "records.write",
)  # modules of results; with what they import


def digest(value: Any) -> str:
    """The SHA-256 of a value's canonical JSON: the order of keys does not matter."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def of_files(files: Iterable[Path], base: Path) -> str:
    """One checksum of many files: their paths below `base` and their bytes."""
    return digest({path.relative_to(base).as_posix(): sha256(path) for path in files})


@cache
def notebook(name: str) -> str:
    """The code of a notebook, its parameters cell and its text left out."""
    return digest(notebook_files.code(notebook_files.notebook_path(name)))


@cache
def library(phase: str) -> str:
    """The source of every module that can change a row of this notebook's cells; the lab itself, figures and the report are left out."""
    package = root() / "hippo_core"
    makers = [package / name for name in ROW_MAKERS[phase]]
    files = {path for maker in makers for path in ([maker] if maker.is_file() else maker.rglob("*")) if _is_source(path)}
    keepers = [path for name in ROW_KEEPERS for path in _module_files(f"hippo_core.results.{name}")]
    waiting = [path for path in files if path.suffix == ".py"] + keepers
    while waiting:
        path = waiting.pop()
        files.add(path)
        waiting += [found for module in imports(path) for found in _module_files(module) if found not in files]
    return of_files(sorted(files), package)


@cache
def report_sources() -> str:
    """The source of the results and their templates: what a report is made by."""
    package = root() / "hippo_core" / "results"
    return of_files(sorted(path for path in package.rglob("*") if _is_source(path)), package)


def _is_source(path: Path) -> bool:
    """Not what Python and numba made of it for this machine."""
    return path.is_file() and path.parent.name != "__pycache__"


def imports(path: Path) -> set[str]:
    """The modules of this package that a file imports anywhere in it, with full names; `from a import b` counts as a and as a.b."""
    package = list(path.relative_to(root()).with_suffix("").parts[:-1])
    found = set()
    for node in _statements(parsed(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*start, *([node.module] if node.module else [])])
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return {name for name in found if name.split(".")[0] == "hippo_core"}


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements in a part of a module, at any depth; expressions, which are many more, are not walked."""
    for block in ("body", "orelse", "handlers", "finalbody", "cases"):
        for inner in getattr(node, block, ()):
            yield inner
            yield from _statements(inner)


def _module_files(module: str) -> list[Path]:
    """The file of a module, or the `__init__.py` of a package; nothing for a name that is neither."""
    path = root().joinpath(*module.split("."))
    return [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]


@cache
def memory_weights(model: str) -> str:
    """The files that memories have trained for a model: its adapter, the head of its key."""
    folder = root() / "data/weights" / load_spec(model).name
    return of_files(sorted(file for pattern in OF_MEMORY for file in folder.glob(pattern)), folder)


@cache
def weights(model: str) -> str:
    """The files of a local model and of its adapter, or the name and revision of one on the Hugging Face hub."""
    spec = load_spec(model)
    parts = [_folder(spec.path) if spec.is_local else f"{spec.source}@{spec.revision or 'main'}"]
    if spec.adapter_path:
        parts.append(_folder(spec.adapter_path))
    return parts[0] if len(parts) == 1 else digest(parts)


def _folder(path: Path) -> str:
    found = [path] if path.is_file() else sorted(file for file in path.glob("*") if file.is_file())
    about = [*ABOUT_WEIGHTS, *(file.name for pattern in OF_MEMORY for file in found if file.match(pattern))]
    return of_files([file for file in found if file.name not in about], path.parent)


@cache
def shots() -> str:
    """The worked examples that a model's spec may ask for."""
    return sha256(root() / "params" / "shots.yaml")


@cache
def lock() -> str:
    """The pinned versions of all libraries."""
    return sha256(root() / "requirements.lock")


def forget() -> None:
    """Compute everything anew when it is asked for next."""
    for cached in (notebook_files.cells, notebook, library, report_sources, weights, memory_weights, shots, lock):
        cached.cache_clear()
