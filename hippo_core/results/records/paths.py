"""Where records live, and how an old one is kept aside."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from hippo_core.errors import LabError
from hippo_core.files import remove_made, root

RUNS = "executed"
DONE = "DONE"
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")


def run_folder(run_id: str) -> Path:
    """The folder of a run. A run's id is a plain folder name; anything else raises."""
    if not _RUN_ID.fullmatch(run_id):
        expected = "at most 80 letters, digits, '-', '_' and '.', the first a letter or digit"
        raise LabError(f"RUN_ID {run_id!r} is not a plain name: expected {expected}")
    return root() / RUNS / run_id


def run_names(runs: Path) -> list[str]:
    """The runs in a folder."""
    return sorted(path.name for path in runs.iterdir() if path.is_dir() and "." not in path.name[:1]) if runs.is_dir() else []


def suite_folder(suite: str) -> str:
    """A suite's name as one folder name: `folder:/data/my-suite` becomes `folder-my-suite`, `package.module:NAME` `package-module-NAME`."""
    kind = "folder:" if suite.startswith("folder:") else ""
    name = Path(suite.removeprefix(kind)).name if kind else suite
    return kind.replace(":", "-") + re.sub(r"[^A-Za-z0-9_-]+", "-", name)


def record_folders(folder: Path) -> Iterator[Path]:
    """Every folder at or below `folder` with a DONE file, sorted; those kept aside or still written (a dot in the name) are left out."""
    return folders_with(DONE, folder)


def folders_with(name: str, top: Path) -> Iterator[Path]:
    """Every folder at or below `top` with a file of this name, sorted; nothing below such a folder, nor below one with a dot."""
    for folder, below, files in os.walk(top):
        if name in files:
            yield Path(folder)
            below.clear()
        below[:] = sorted(part for part in below if "." not in part)


def files_of(record: Path) -> list[str]:
    """The files of a record at any depth, by their path below it, sorted; hidden ones are left out."""
    below = (path.relative_to(record) for path in record.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in below if not any(part.startswith(".") for part in path.parts))


def clear_record(record: Path) -> None:
    """Free a record's folder: what the lab began and never finished is removed, all else is kept aside."""
    if not (record / DONE).exists():
        remove_made(record)
    if record.exists() or record.is_symlink():
        set_aside(record)


def set_aside(record: Path) -> Path:
    """Rename a record to `<name>.aside-<k>`, which readers ignore; returns the new path."""
    number = 1
    while (aside := record.with_name(f"{record.name}.aside-{number}")).exists():
        number += 1
    return record.rename(aside)
