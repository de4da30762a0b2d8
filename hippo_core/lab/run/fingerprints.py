"""Checksums of what a cell's rows can depend on: code and library versions. Each is computed once a process."""

from functools import cache
from pathlib import Path

from hippo_core import source_code
from hippo_core.files import root, sha256
from hippo_core.lab.run import notebook_files
from hippo_core.models import checksums
from hippo_core.models.checksums import digest, of_files
from hippo_core.source_code import closure
from hippo_core.suites.datasets import card

SHARED = (  # modules that every row passes
    "hippo_core.models.load",
    *(f"hippo_core.results.{name}" for name in ("records.table", "records.write")),
)


@cache
def _checksum(path: Path) -> str:
    return sha256(path)


@cache
def notebook(name: str) -> str:
    """The code of a notebook, its parameters cell and its text left out."""
    return digest(notebook_files.code(notebook_files.notebook_path(name)))


@cache
def library(modules: tuple[str, ...]) -> str:
    """The source of every module that can change a row: what makes the rows, what loads models and writes rows down, and all that these
    import, of this package or of the user's own. The lab itself, figures and the report are left out."""
    return digest({module: _checksum(path) for module, path in closure([*modules, *SHARED]).items()})


@cache
def all_sources() -> str:
    """The source of the whole package."""
    package = root() / "hippo_core"
    return of_files(sorted([*package.rglob("*.py"), *package.rglob("*.yaml")]), package)


@cache
def report_sources() -> str:
    """The source of the results, of the protocols, and of their templates: what a report is made by."""
    package = root() / "hippo_core"
    files = (path for name in ("results", "protocols") for path in (package / name).rglob("*") if path.is_file())
    return of_files(sorted(path for path in files if path.parent.name != "__pycache__"), package)


@cache
def lock() -> str:
    """The pinned versions of all libraries."""
    return sha256(root() / "requirements.lock")


def forget() -> None:
    """Compute everything anew when it is asked for next."""
    source_code.forget()
    checksums.forget()
    for cached in (notebook_files.cells, notebook, library, _checksum, all_sources, report_sources, card.code, lock):
        cached.cache_clear()
