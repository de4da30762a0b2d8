"""JSON lines that grow: each is whole once it is written, a killed run goes on behind the last whole one.

A line ends with the SHA-256 of its values as `seal`. One that a person or an earlier lab wrote has none and is read as it is.
"""

import fcntl
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hippo_core.errors import LabError
from hippo_core.files import parse_json, values_sha256, write_text

SEAL = "seal"


def read_lines(path: Path, names: Iterable[str] = ()) -> list[dict[str, Any]]:
    """The objects of a file, in order, each with these names. A last line that a kill has cut is left out; LabError, with its number, for
    another."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LabError(f"{path} cannot be read: {error.strerror}") from None
    values = []
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        try:
            value = parse_json(line, f"{path}:{number}")
        except LabError:
            raise LabError(f"{path}:{number}: expected a JSON object on a line of its own; run the phase that writes it again") from None
        if value.pop(SEAL, None) not in (None, values_sha256(value)):
            raise LabError(f"{path}:{number} is not as it was written (its SHA-256 differs); run the phase that writes it again")
        if missing := [name for name in names if name not in value]:
            raise LabError(f"{path}:{number}: a line without {missing[0]}; run the phase that writes it again")
        values.append(value)
    return values


def write_lines(path: Path, values: list[dict[str, Any]]) -> None:
    """All lines of a file, whole or not at all; what was not measured (NaN) is null."""
    write_text(path, "".join(_line(value) for value in values))


@contextmanager
def appending(path: Path) -> Iterator[Callable[[dict[str, Any]], None]]:
    """What appends an object to a file, each synced; one process at a time may. What a kill has left of a last line is removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LabError(f"{path} is written by another process; wait for it, or choose another file") from None
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)

        def append(value: dict[str, Any]) -> None:
            file.write(_line(value).encode())
            file.flush()
            os.fsync(file.fileno())

        yield append


def _line(value: dict[str, Any]) -> str:
    value = {name: None if isinstance(field, float) and math.isnan(field) else field for name, field in value.items()}
    return json.dumps({**value, SEAL: values_sha256(json.loads(json.dumps(value)))}, ensure_ascii=False, allow_nan=False) + "\n"
