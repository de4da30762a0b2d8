"""Checksums of what a cell's rows can depend on: code, weights, library versions. Each is computed once a process."""

import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from hippo_core import source_code
from hippo_core.delivery import module_of as delivery_module
from hippo_core.files import root, sha256
from hippo_core.lab.run import notebook_files
from hippo_core.models.spec import load_spec
from hippo_core.source_code import closure
from hippo_core.suites.datasets import card

ABOUT_WEIGHTS = ("README.md", "card.json", "training.json", "curve.png")  # files beside weights: how they were made and measured
OF_MEMORY = ("adapter.*", "key.*", "recall.*", "head-*")  # files beside weights that only memories and their rivals read
SHARED = (  # modules that every row passes
    "hippo_core.models.load",
    *(f"hippo_core.results.{name}" for name in ("scores", "records.summary", "records.telemetry", "records.write")),
)


def digest(value: Any) -> str:
    """The SHA-256 of a value's canonical JSON: the order of keys does not matter."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def of_files(files: Iterable[Path], base: Path) -> str:
    """One checksum of many files: their paths below `base` and their bytes."""
    return digest({path.relative_to(base).as_posix(): sha256(path) for path in files})


@cache
def _checksum(path: Path) -> str:
    return sha256(path)


@cache
def notebook(name: str) -> str:
    """The code of a notebook, its parameters cell and its text left out."""
    return digest(notebook_files.code(notebook_files.notebook_path(name)))


@cache
def library(run: str, method: str, delivery: str) -> str:
    """The source of every module that can change a row: what makes the rows of an experiment, a method and a delivery, what loads models
    and writes rows down, and all that these import, of this package or of the user's own. The lab itself, figures and the report are left
    out."""
    modules = [run, method, delivery_module(delivery), *SHARED]
    return digest({module: _checksum(path) for module, path in closure(modules).items()})


@cache
def all_sources() -> str:
    """The source of the whole package."""
    package = root() / "hippo_core"
    return of_files(sorted(package.rglob("*.py")), package)


@cache
def report_sources() -> str:
    """The source of the results and their templates: what a report is made by."""
    package = root() / "hippo_core" / "results"
    ours = (path for path in package.rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    return of_files(sorted(ours), package)


@cache
def memory_weights(name: str) -> str:
    """The files that were trained for memories of a model, its adapter and the head of its key, or for an encoder."""
    folder = root() / "data/weights" / name
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
    files = [path] if path.is_file() else sorted(file for file in path.glob("*") if file.is_file())
    about = [*ABOUT_WEIGHTS, *(file.name for pattern in OF_MEMORY for file in files if file.match(pattern))]
    return of_files([file for file in files if file.name not in about], path.parent)


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
    source_code.forget()
    of_code = (notebook_files.cells, notebook, library, _checksum, all_sources, report_sources, card.code)
    for cached in (*of_code, weights, memory_weights, shots, lock):
        cached.cache_clear()
