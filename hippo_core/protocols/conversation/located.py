"""Objects of JSON files, with the line on which each part of them stands."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from hippo_core.errors import LabError
from hippo_core.files import in_a_line, once_each
from hippo_core.text import normal_values

ENDINGS = (".json", ".jsonl")
ALIASES = {"questions": "recallQuestions", "speaker": "role", "text": "content", "answer": "expectedAnswer"}  # names of the specification


@dataclass(frozen=True)
class Located:
    """A value of a file.

    Args:
        value: what was read.
        text: the JSON that it was read from; line: the line on which that begins, from 1.
        at: which of a list of values it is; None where the text is the value.
    """

    value: Any
    path: Path
    text: str
    line: int
    at: int | None = None

    def location(self, *keys: str | int) -> str:
        """ "path:line" of the part below these keys, or of the nearest part above it that is there."""
        inner = (*([] if self.at is None else [self.at]), *keys)
        return f"{self.path}:{self.line + _line(self.text, inner)}"

    def validated(self, form: type[BaseModel]) -> Any:
        """The value in this form; LabError that names the first fault and its line."""
        try:
            return form.model_validate(self.value)
        except ValidationError as error:
            fault = error.errors()[0]
            keys = [key for key in fault["loc"] if not (isinstance(key, str) and key.startswith("function-"))]
            name = ".".join(map(str, keys)) or "value"
            got = "nothing" if fault["type"] == "missing" else f"{fault['input']!r}"[:80]
            raise LabError(f"{self.location(*keys)}: {name}: {fault['msg']}, got {got}") from None


def _line(text: str, keys: tuple[str | int, ...]) -> int:
    """How many lines below the beginning of a JSON text the part of these keys begins; JSON is YAML, whose parser keeps the lines."""
    try:
        node = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return 0
    for key in keys:
        inner = _below(node, key)
        if inner is None:
            break
        node = inner
    return int(node.start_mark.line) if node else 0


def _below(node: Any, key: str | int) -> Any:
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
        return node.value[key] if key < len(node.value) else None
    if isinstance(node, yaml.MappingNode):
        inner = {name.value: value for name, value in node.value}
        return inner.get(str(key), inner.get(ALIASES.get(str(key), "")))
    return None


def read_located(path: Path) -> Iterator[Located]:
    """The values of a .json or .jsonl file, or of all of a folder; LabError where there are none, or a file is no JSON."""
    for file in files(path):
        try:
            text = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise LabError(f"{file} cannot be read as UTF-8 text: {error}") from None
        lines = enumerate(text.split("\n"), 1) if file.suffix == ".jsonl" else [(1, text)]
        for number, part in lines:
            if part.strip():
                yield from _values(file, part, number)


def _values(file: Path, text: str, line: int) -> Iterator[Located]:
    try:
        value = normal_values(json.loads(text, object_pairs_hook=once_each), f"{file}:{line}: a text")
    except json.JSONDecodeError as error:
        raise LabError(f"{file}:{line + error.lineno - 1}: expected JSON, got {error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError) as error:  # a key twice, a number of more digits than Python reads, values nested too deep
        raise LabError(f"{file}:{line}: expected JSON, got {in_a_line(error).partition(';')[0]}") from None
    if isinstance(value, list):
        yield from (Located(item, file, text, line, number) for number, item in enumerate(value))
    else:
        yield Located(value, file, text, line)


def files(path: Path) -> list[Path]:
    """The file, or the .json and .jsonl files of a folder, by name; LabError where there are none."""
    if path.is_dir():
        paths = sorted(file for file in path.iterdir() if file.suffix in ENDINGS)
        if not paths:
            raise LabError(f"{path} holds no .json or .jsonl file; expected files of dialogues")
        return paths
    if not path.is_file():
        raise LabError(f"no such file or folder: {path}; expected dialogues (.json, .jsonl)")
    if path.suffix not in ENDINGS:
        raise LabError(f"{path}: expected a file that ends in {' or '.join(ENDINGS)}")
    return [path]
