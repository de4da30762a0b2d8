"""Files that others wrote: read from a folder that the user names, each listed in params/data.yaml and checked before it is read."""

import os
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from hippo_core.errors import LabError, unknown
from hippo_core.files import home, root
from hippo_core.models.packages.pins import Below, Sha256
from hippo_core.models.spec import read_mapping, validated

LIST = "params/data.yaml"


class TextFile(BaseModel):
    """A file of somebody else's. Unknown keys are an error. `path` is where it lies below the user's folder."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Below
    sha256: Sha256
    bytes: Annotated[int, Field(gt=0)]
    title: str
    source: str
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    licence: str


class TextFiles(BaseModel):
    """The content of params/data.yaml: the user's folder, and every file that the lab can read from it, by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: str | None = None
    files: dict[str, TextFile]


def listed() -> TextFiles:
    """The list of files; LabError where params/data.yaml is missing or wrong."""
    return validated(TextFiles, read_mapping(root() / LIST), LIST)


def text_file(name: str) -> TextFile:
    """The entry of a file in the list; LabError for a name that is not in it."""
    files = listed().files
    if name not in files:
        raise unknown("text file", name, files)
    return files[name]


def data_folder() -> Path | None:
    """The folder that the user names, by `$HIPPO_DATA` or else `folder` of params/data.yaml, from the lab's home; None for none."""
    named = os.environ.get("HIPPO_DATA") or listed().folder
    return home() / Path(named).expanduser() if named else None


def why_missing(names: Iterable[str]) -> str | None:
    """Why files cannot be read, in one line; None where all of them lie in the user's folder. Their content is not looked at."""
    entries = {name: text_file(name) for name in names}
    folder = data_folder() if entries else None
    absent = [name for name, entry in entries.items() if folder is None or not (folder / entry.path).is_file()]
    if not absent:
        return None
    first, more = entries[absent[0]], f" and {len(absent) - 1} more" if len(absent) > 1 else ""
    where = f"expected {folder / first.path}" if folder else "no folder is named"
    return f"{absent[0]}{more} missing ({first.title}): {where}; set HIPPO_DATA to a folder with the files of data/README.md"


def require(*names: str) -> None:
    """LabError in one line where a file is not there, before any work is done for it."""
    if reason := why_missing(names):
        raise LabError(reason)


def path_of(name: str) -> Path:
    """Where a file lies, its content checked; LabError where it is missing or has another checksum."""
    return _checked(name)[0]


def read_text(name: str) -> str:
    """A file's text, checked as in `path_of`."""
    return _checked(name)[1].decode("utf-8")


def _checked(name: str) -> tuple[Path, bytes]:
    require(name)
    entry = text_file(name)
    path = (data_folder() or home()) / entry.path
    content, checksum = _content(path)
    if checksum != entry.sha256:
        came = f"expected SHA-256 {entry.sha256} ({entry.bytes} bytes), got {checksum} ({len(content)} bytes)"
        raise LabError(f"{name} at {path}: {came}; take it from {entry.source} at {entry.commit}")
    return path, content


@cache
def _content(path: Path) -> tuple[bytes, str]:
    content = path.read_bytes()
    return content, sha256(content).hexdigest()
