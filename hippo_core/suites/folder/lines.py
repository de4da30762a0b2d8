"""Reading a JSONL file that a user wrote: every line is checked, every mistake is one LabError with file and line."""

import codecs
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from hippo_core.errors import LabError
from hippo_core.files import once_each
from hippo_core.suites.types import Fact, Item
from hippo_core.text import normal_values

LONGEST = 20_000  # characters of a fact or a question, some 4,000 words: more than any model of the lab reads at once


def _is_integer(value: Any, least: int = -(2**63)) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63  # what a store can hold


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _has_strings(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(part, str) for part in value.values())


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_different(value: Any) -> bool:
    return _are_texts(value) and len(set(value)) == len(value)


SHORT = f"a string of at most {LONGEST:,} characters that is not empty"
CHECKS: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (  # what a value must be, the fields of which that is true, the check
    ("a string", "context_key provenance teller", lambda value: isinstance(value, str)),
    ("a string that is not empty", "id world kind rung", _is_text),
    (SHORT, "text question", lambda value: _is_text(value) and len(value) <= LONGEST),
    ("true or false", "schema_fit reward pin asked", lambda value: isinstance(value, bool)),
    ("a whole number of 64 bits", "time", _is_integer),
    ("a whole number, 0 or more", "distance", lambda value: _is_integer(value, 0)),
    ("a whole number, 1 or more", "hops", lambda value: _is_integer(value, 1)),
    ("a number from 0 to 1", "confidence chance", _is_share),
    ("an object of strings", "slots cue retold", _has_strings),
    ("a list of strings, none twice", "window taught refuted", _are_different),
    ("a list of strings without ';', none twice", "slices", lambda value: _are_different(value) and ";" not in "".join(value)),
    ("a list of at least one string, none empty", "answers", lambda value: _are_texts(value) and bool(value)),
    ("a list of at least one string, none twice", "gold_facts", lambda value: _are_different(value) and bool(value)),
)
CHECK_OF = {name: (kind, check) for kind, names, check in CHECKS for name in names.split()}
FACT_FIELDS, ITEM_FIELDS = (tuple(field.name for field in fields(line) if field.name in CHECK_OF) for line in (Fact, Item))
REQUIRED = ("id", "world", "text", "question", "answers", "gold_facts")  # where a line may have them at all


def read_lines(path: Path, names: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each line's position ("path:line") and its checked values; blank lines are skipped, ids must differ."""
    seen: dict[str, int] = {}
    number = 0
    for number, raw in enumerate(raw_lines(path), 1):
        where = f"{path}:{number}"
        if not raw.strip():
            continue
        values = read_line(where, raw)
        check_fields(where, values, names)
        if values["id"] in seen:
            raise mistake(where, "an id of its own", repr(values["id"]), f"line {seen[values['id']]} has it already")
        seen[values["id"]] = number
        yield where, values
    if not seen:
        raise mistake(f"{path}:{max(number, 1)}", "at least one line", "none", f"required fields: {_required(names)}")


def raw_lines(path: Path) -> list[bytes]:
    """The lines of a file, without the mark that some editors put before the first; however they end."""
    if not path.is_file():
        what = f"{path} is no file" if path.exists() else f"no such file: {path}"
        raise LabError(f"{what}; a suite of your own is a folder with facts.jsonl and items.jsonl")
    try:
        return path.read_bytes().removeprefix(codecs.BOM_UTF8).splitlines()
    except OSError as error:
        raise LabError(f"{path} cannot be read ({error.strerror}); let this user read it") from None


def read_line(where: str, raw: bytes) -> dict[str, Any]:
    """A line as an object."""
    remedy = "each line must be a JSON object of its own"
    try:
        text = raw.decode("utf-8")
        values = json.loads(text, object_pairs_hook=once_each)
        if "\\ud" in text.lower():
            json.dumps(values, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError as error:
        raise mistake(where, "UTF-8 text", f"byte 0x{raw[error.start]:02x} at column {error.start + 1}", "save the file as UTF-8") from None
    except UnicodeEncodeError as error:
        got = f"{error.object[error.start]!a}, half of a pair"
        raise mistake(where, "whole characters", got, "write the character itself, or both halves of its pair") from None
    except json.JSONDecodeError as error:
        raise mistake(where, "one JSON object", f"{error.msg} at column {error.colno}", remedy) from None
    except RecursionError:
        raise mistake(where, "one JSON object", "one that is nested too deep", remedy) from None
    except ValueError as error:  # a field that stands twice, a number of more digits than Python reads
        raise mistake(where, "one JSON object", str(error).partition(":")[0].partition(";")[0], remedy) from None
    if not isinstance(values, dict):
        raise mistake(where, "one JSON object", type(values).__name__, remedy)
    return normal_values(values, where)


def check_fields(where: str, values: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse fields that are missing, unknown or of the wrong type."""
    for name in names:
        if name in REQUIRED and name not in values:
            raise mistake(where, f"a field {name!r}", f"only {some(values) or 'nothing'}", f"required fields: {_required(names)}")
    for name, value in values.items():
        if name not in names:
            raise mistake(where, "known fields", repr(name), f"legal: {', '.join(names)}")
        kind, check = CHECK_OF[name]
        if not check(value):
            raise mistake(where, f"{name} to be {kind}", _shown(value), "mend this line")


def _shown(value: Any) -> str:
    """The beginning of a value; of a long text its length as well."""
    begun = json.dumps(value[:60] if isinstance(value, str) else value, ensure_ascii=False)[:60]
    return f"{begun} ... ({len(value):,} characters)" if isinstance(value, str) and len(value) > LONGEST else begun


def mistake(where: str, expected: str, got: str, remedy: str) -> LabError:
    """The one line that a mistake in a user's file is answered with."""
    return LabError(f"{where}: expected {expected}, got {got}; {remedy}")


def _required(names: Sequence[str]) -> str:
    return ", ".join(name for name in names if name in REQUIRED)


def some(names: Any) -> str:
    """The first few names, for an error message."""
    listed = list(names)
    return ", ".join(listed[:8]) + (", ..." if len(listed) > 8 else "")
