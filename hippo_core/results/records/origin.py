"""Where a result comes from: the commit, and the versions of what it was computed with."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version

from hippo_core.files import root

MODEL_LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "bm25s")
LIBRARIES = (*MODEL_LIBRARIES, "pandas", "scipy", "papermill", "nbclient", "ipykernel", "hippo-core")


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
