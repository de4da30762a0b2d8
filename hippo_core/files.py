"""Files and errors that every part of the lab shares: where the repository is, atomic writes, safe YAML, checksums."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml


class LabError(Exception):
    """A mistake that the user can mend. The message is one line: what was expected, what came, the way out."""


def root() -> Path:
    """The repository's root: `$HIPPO_ROOT` where set, else the folder that holds `hippo_core`."""
    return Path(os.environ.get("HIPPO_ROOT") or Path(__file__).resolve().parents[1])


def unknown(what: str, name: object, legal: Iterable[str]) -> LabError:
    """The error for a name that does not exist; it lists those that do."""
    return LabError(f"unknown {what} {name!r}; legal: {', '.join(sorted(legal))}")


def parse_yaml(text: str) -> Any:
    """What a YAML text holds, loaded safely, by libyaml where PyYAML was built with it: ten times as fast."""
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def read_yaml(path: Path, parse: Callable[[str], Any] = parse_yaml) -> Any:
    """The content of a YAML file, loaded safely; LabError where it is missing or no YAML."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LabError(f"no such file: {path}") from None
    except yaml.YAMLError as error:
        raise LabError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all: a temporary file beside it, synced, then renamed over it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically, keys in the given order, not-a-number refused (use None)."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder that appears at `path` whole, when the block ends without an error, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield temporary
        os.chmod(temporary, 0o755)
        os.rename(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
