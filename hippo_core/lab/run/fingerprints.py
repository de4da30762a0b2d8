"""Checksums of what a cell's rows can depend on: code, weights, library versions. Each is computed once a process."""

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hippo_core.delivery import module_of as delivery_module
from hippo_core.files import root, sha256
from hippo_core.lab.run import notebook_files
from hippo_core.lab.run.syntax import parsed
from hippo_core.models.spec import load_spec

ABOUT_WEIGHTS = ("README.md", "card.json", "training.json", "curve.png")  # files beside weights: how they were made and measured
OF_MEMORY = ("adapter.*", "key.*", "recall.*")  # files beside weights that only memories read
ROW_KEEPERS = ("scores", "records.summary", "records.telemetry", "records.write")  # modules of results


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
def library(run: str, method: str, delivery: str) -> str:
    """The source of every module that can change a row: what makes the rows of an experiment, a method and a delivery, what writes rows
    down, and all that these import, of this package or of the user's own. The lab itself, figures and the report are left out."""
    modules = [run, method, delivery_module(delivery), *(f"hippo_core.results.{name}" for name in ROW_KEEPERS)]
    return digest({path.relative_to(_base(path)).as_posix(): sha256(path) for path in sorted(closure(modules))})


def closure(modules: Iterable[str]) -> set[Path]:
    """The files of these modules and of all that they import, at any depth; of a kernel all versions, which are chosen when it runs."""
    files: set[Path] = set()
    waiting = [path for module in modules for path in _module_files(module)]
    while waiting:
        path = waiting.pop()
        if path in files:
            continue
        files.add(path)
        waiting += [found for module in imports(path) for found in _module_files(module)]
        if path.parent.parent == root() / "hippo_core" / "kernels":
            waiting += path.parent.glob("*.py")
    return files


@cache
def all_sources() -> str:
    """The source of the whole package."""
    package = root() / "hippo_core"
    return of_files(sorted(package.rglob("*.py")), package)


@cache
def report_sources() -> str:
    """The source of the results and their templates: what a report is made by."""
    package = root() / "hippo_core" / "results"
    return of_files(sorted(path for path in package.rglob("*") if _is_source(path)), package)


def _is_source(path: Path) -> bool:
    """Not what Python and numba made of it for this machine."""
    return path.is_file() and path.parent.name != "__pycache__"


def imports(path: Path) -> set[str]:
    """The modules that a file imports anywhere in it, with full names, of its own top-level package or of ours; `from a import b` counts as
    a and as a.b."""
    base = _base(path)
    package = list(path.relative_to(base).with_suffix("").parts[:-1])
    found = set()
    for node in _statements(parsed(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*start, *([node.module] if node.module else [])])
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return {name for name in found if name.split(".")[0] in {"hippo_core", *package[:1]}}


def _base(path: Path) -> Path:
    """The folder that a file's top-level package, or module, lies in."""
    folder = path.parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements in a part of a module, at any depth; expressions, which are many more, are not walked."""
    for block in ("body", "orelse", "handlers", "finalbody", "cases"):
        for inner in getattr(node, block, ()):
            yield inner
            yield from _statements(inner)


def _module_files(module: str) -> list[Path]:
    """The file of a module, or the `__init__.py` of a package; nothing for a name that is neither."""
    top, _, rest = module.partition(".")
    base = root() if top == "hippo_core" else _place_of(top)
    if base is None:
        return []
    path = base.joinpath(top, *rest.split(".")) if rest else base / top
    return [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]


@cache
def _place_of(top: str) -> Path | None:
    """The folder in which a top-level package or module of the user's lies."""
    spec = find_spec(top)
    return Path(spec.origin).parents[1 if spec.submodule_search_locations else 0] if spec and spec.origin else None


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
    for cached in (notebook_files.cells, notebook, library, all_sources, report_sources, weights, memory_weights, shots, lock, _place_of):
        cached.cache_clear()
