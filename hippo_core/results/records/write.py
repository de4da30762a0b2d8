"""Writing a record: what was asked before the run, rows and metrics after it. Each file is written whole or not at all."""

import math
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from hippo_core.files import made_folder, read_object, write_json, write_text

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = 1
TO_QUOTE = re.compile(r'[",\r\n]|^\s|\s$')


def begin_record(record: Path, config: dict[str, Any], meta: dict[str, Any]) -> None:
    """Write what the cell was told and what it runs on, before it runs."""
    made_folder(record)
    write_text(record / "config_snapshot.yaml", yaml.safe_dump(config, sort_keys=True, allow_unicode=True, width=120))
    started = datetime.now(UTC).isoformat(timespec="seconds")
    write_json(record / "meta.json", {"schema_version": SCHEMA_VERSION, **meta, "started": started, "seconds": None})


def finish_record(record: Path, rows: "pd.DataFrame", metrics: dict[str, Any], added: dict[str, Any], file: str = "metrics.csv") -> None:
    """Write the rows and the metrics, and complete `meta.json` with what is known only now (seconds, device)."""
    write_rows(record / file, rows)
    write_json(record / "metrics.json", {"schema_version": SCHEMA_VERSION, **metrics})
    write_json(record / "meta.json", {**read_object(record / "meta.json"), **added})


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
