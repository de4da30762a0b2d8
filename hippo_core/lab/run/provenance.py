"""What a record says of its origin, written before the cell runs: configuration, commit, versions, checksums."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from hippo_core.experiments.parameters import Parameters
from hippo_core.files import root
from hippo_core.lab.run import fingerprints
from hippo_core.lab.run.cells import Cell
from hippo_core.results.records.table import Table

MODEL_LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "bm25s")
LIBRARIES = (*MODEL_LIBRARIES, "pandas", "scipy", "papermill", "nbclient", "ipykernel", "hippo-core")


def describe_run(cell: Cell, parameters: Parameters, table: Table) -> tuple[dict[str, Any], dict[str, Any]]:
    """The content of `config_snapshot.yaml` and of `meta.json`."""
    config = {"parameters": parameters.values(), **(cell.plan.config if cell.plan else {})}
    meta = {
        "git_sha": git_sha(),
        "config_hash": fingerprints.digest(config),
        "cell": cell.id,
        "phase": cell.phase,
        "experiment": cell.experiment,
        "step": table.step,
        "table": table.described(),
        "parameters": parameters.model_dump(exclude={"record_dir"}),
        "needs": cell.needs,
        "threads": parameters.threads,
        "versions": versions(),
        "checksums": {"notebook": fingerprints.notebook(cell.notebook), **cell.checksums},
    }
    return config, meta


def versions() -> dict[str, str]:
    """The versions of Python and of the libraries that a row can depend on."""
    return {"python": platform.python_version(), **{name: version_of(name) or "absent" for name in LIBRARIES}}


def version_of(package: str) -> str | None:
    """The installed version of a package; None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def git_sha() -> str | None:
    """The commit, with `-dirty` where tracked files differ from it; None outside a repository or before its first commit."""
    commit = _git("rev-parse", "--verify", "--quiet", "HEAD")
    return f"{commit}-dirty" if commit and _git("status", "--porcelain", "--untracked-files=no") else commit or None


def _git(*arguments: str) -> str:
    try:
        return subprocess.run(["git", *arguments], cwd=root(), capture_output=True, text=True, check=False, timeout=20).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""
