"""Writing a record: what was asked before the run, rows and metrics after it, the DONE file last; and telling whether one is whole.

Each file is written whole or not at all. A record is whole when it is sealed, and only then.
"""

import json
import math
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from hippo_core.files import LabError, sha256, write_json, write_text
from hippo_core.results.records.paths import DONE, files_of, record_folders
from hippo_core.results.records.read import read_meta

if TYPE_CHECKING:
    import pandas as pd


SCHEMA_VERSION = 1
TO_QUOTE = re.compile(r'[",\r\n]|^\s|\s$')


def begin_record(record: Path, config: dict[str, Any], meta: dict[str, Any]) -> None:
    """Write what the cell was told and what it runs on, before it runs."""
    write_text(record / "config_snapshot.yaml", yaml.safe_dump(config, sort_keys=True, allow_unicode=True, width=120))
    started = datetime.now(UTC).isoformat(timespec="seconds")
    write_json(record / "meta.json", {"schema_version": SCHEMA_VERSION, **meta, "started": started, "seconds": None})


def finish_record(record: Path, rows: "pd.DataFrame", metrics: dict[str, Any], added: dict[str, Any], file: str = "metrics.csv") -> None:
    """Write the rows and the metrics, and complete `meta.json` with what is known only now (seconds, device)."""
    write_rows(record / file, rows)
    write_json(record / "metrics.json", {"schema_version": SCHEMA_VERSION, **metrics})
    write_json(record / "meta.json", {**read_meta(record), **added})


def write_rows(path: Path, rows: "pd.DataFrame") -> None:
    """One line a row in the frame's order; what was not measured is empty, whole numbers have no point, floats are exact."""
    lines = [",".join(map(_cell, line)) + "\n" for line in (tuple(rows.columns), *rows.itertuples(index=False, name=None))]
    write_text(path, "".join(lines))


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"' if TO_QUOTE.search(value) else value
    if value is None:
        return ""
    number = float(value)
    if math.isnan(number):
        return ""
    return str(int(number)) if number.is_integer() else repr(number)


def seal(record: Path) -> None:
    """Write DONE: the checksum of every file of the record, at any depth. Nothing may be written to it afterwards."""
    checksums = {name: sha256(record / name) for name in files_of(record) if name != DONE}
    write_json(record / DONE, {"schema_version": SCHEMA_VERSION, "sha256": checksums})


def is_complete(record: Path) -> bool:
    """True when DONE is there and every file that it names has the checksum that it gives."""
    return not faults(record)


def faults(record: Path) -> list[str]:
    """Everything wrong with one record, in words that begin with it; an empty list for a whole one."""
    try:
        expected = json.loads((record / DONE).read_text(encoding="utf-8"))["sha256"]
    except FileNotFoundError:
        return [f"{record}: not finished (no DONE file)"]
    except (json.JSONDecodeError, KeyError, TypeError, UnicodeDecodeError):
        return [f"{record}: its DONE file is damaged"]
    return [f"{record}: {what}" for name, checksum in expected.items() if (what := _file_fault(record / name, name, checksum))]


def _file_fault(path: Path, name: str, checksum: str) -> str:
    if not path.is_file():
        return f"{name} is missing"
    return "" if sha256(path) == checksum else f"{name} was changed after the record was finished"


def verify(folder: Path) -> tuple[int, list[str]]:
    """Check every record at or below `folder`: how many there are, and what is wrong with them. No record at all raises."""
    records = list(record_folders(folder))
    if not records:
        raise LabError(f"no finished record at {folder}")
    return len(records), [fault for record in records for fault in faults(record)]
