"""Reading a JSONL file that a user wrote: every line is checked, every mistake is one LabError with file and line."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hippo_core.files import LabError


@dataclass(frozen=True, slots=True)
class Field:
    """What a field must be: `fits` decides, `expected` says it in words."""

    expected: str
    required: bool = False

    def fits(self, value: Any) -> bool:
        return CHECKS[self.expected](value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


CHECKS = {
    "a string": lambda value: isinstance(value, str),
    "a string that is not empty": lambda value: isinstance(value, str) and bool(value.strip()),
    "true or false": lambda value: isinstance(value, bool),
    "a whole number": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "a number from 0 to 1": lambda value: _is_number(value) and 0 <= value <= 1,
    "an object of strings": lambda value: isinstance(value, dict) and all(isinstance(part, str) for part in value.values()),
    "a list of strings": lambda value: isinstance(value, list) and all(isinstance(part, str) for part in value),
    "a list of at least one string, none empty": lambda value: (
        isinstance(value, list) and bool(value) and all(isinstance(part, str) and part.strip() for part in value)
    ),
}
ID, TEXT, FLAG = Field("a string that is not empty", required=True), Field("a string"), Field("true or false")
FACT_FIELDS = {
    "id": ID, "world": ID, "text": ID, "slots": Field("an object of strings"), "time": Field("a whole number"),
    "schema_fit": FLAG, "reward": FLAG, "pin": FLAG, "context_key": TEXT, "provenance": TEXT, "asked": FLAG,
}  # fmt: skip
IDS = Field("a list of strings")
SOME = Field("a list of at least one string, none empty", required=True)
ITEM_FIELDS = {
    "id": ID, "world": ID, "question": ID, "answers": SOME, "gold_facts": SOME,
    "kind": TEXT, "rung": TEXT, "hops": Field("a whole number"), "distance": Field("a whole number"),
    "chance": Field("a number from 0 to 1"), "cue": Field("an object of strings"), "window": IDS, "taught": IDS, "slices": IDS,
}  # fmt: skip


def read_lines(path: Path, fields: Mapping[str, Field]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each line's place ("path:line") and its checked values; blank lines are skipped, ids must differ."""
    if not path.exists():
        raise LabError(f"no such file: {path}; a suite of your own is a folder with facts.jsonl and items.jsonl")
    seen: dict[str, int] = {}
    number = 0
    for number, raw in enumerate(path.read_bytes().splitlines(), 1):
        where = f"{path}:{number}"
        if not raw.strip():
            continue
        values = read_line(where, raw)
        check_fields(where, values, fields)
        if values["id"] in seen:
            raise mistake(where, "an id of its own", repr(values["id"]), f"line {seen[values['id']]} has it already")
        seen[values["id"]] = number
        yield where, values
    if not seen:
        raise mistake(f"{path}:{max(number, 1)}", "at least one line", "none", f"required fields: {_required(fields)}")


def read_line(where: str, raw: bytes) -> dict[str, Any]:
    """A line as an object."""
    way_out = "each line must be a JSON object of its own"
    try:
        values = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise mistake(where, "UTF-8 text", f"byte 0x{raw[error.start]:02x} at column {error.start + 1}", "save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise mistake(where, "one JSON object", f"{error.msg} at column {error.colno}", way_out) from None
    if not isinstance(values, dict):
        raise mistake(where, "one JSON object", type(values).__name__, way_out)
    return values


def check_fields(where: str, values: Mapping[str, Any], fields: Mapping[str, Field]) -> None:
    """Refuse fields that are missing, unknown or of the wrong type."""
    for name, field in fields.items():
        if field.required and name not in values:
            raise mistake(where, f"a field {name!r}", f"only {some(values) or 'nothing'}", f"required fields: {_required(fields)}")
    for name, value in values.items():
        if name not in fields:
            raise mistake(where, "known fields", repr(name), f"legal: {', '.join(fields)}")
        if not fields[name].fits(value):
            raise mistake(where, f"{name} to be {fields[name].expected}", json.dumps(value, ensure_ascii=False)[:60], "mend this line")


def mistake(where: str, expected: str, got: str, way_out: str) -> LabError:
    """The one line that a mistake in a user's file is answered with."""
    return LabError(f"{where}: expected {expected}, got {got}; {way_out}")


def _required(fields: Mapping[str, Field]) -> str:
    return ", ".join(name for name, field in fields.items() if field.required)


def some(names: Any) -> str:
    """The first few names, for an error message."""
    listed = list(names)
    return ", ".join(listed[:8]) + (", ..." if len(listed) > 8 else "")
