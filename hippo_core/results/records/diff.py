"""Are two records, or two trees of records, equal? All is compared but commit, run name, kind of kernel, times and latencies.

A store is compared table by table, whatever session its folder is named by.
"""

import csv
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from hippo_core.errors import LabError, shortened
from hippo_core.files import in_a_line, parse_yaml
from hippo_core.results.records.paths import DONE, files_of, record_folders

TIMING_COLUMNS = ("latency_ms", "retrieval_ms", "recall_ms", "completion_ms", "encode_ms", "ms")
TIMING_KEYS = ("started", "seconds", "cell_seconds", "runtime_s", "time_s_per_100", *(f"{name}_mean" for name in TIMING_COLUMNS))
ORIGIN_KEYS = ("git_sha", "run_id", "record_dir", "kernel", "session_id")
SESSION = re.compile(r"^(store/[^/]+)/[^/]+/")
UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, csv.Error, sqlite3.Error, yaml.YAMLError)
IGNORED = frozenset(TIMING_COLUMNS + TIMING_KEYS + ORIGIN_KEYS)


def diff(a: Path, b: Path) -> tuple[int, list[str]]:
    """Compare the records at or below `a` with those at or below `b`: how many stand on both sides, and every difference."""
    left, right = _records(a), _records(b)
    both = [name for name in left if name in right]
    differences = [f"{name}: only in {a}" for name in left if name not in right]
    differences += [f"{name}: only in {b}" for name in right if name not in left]
    for name in both:
        differences += [f"{name}/{file}: {what}" for file, what in diff_record(left[name], right[name])]
    return len(both), differences


def _records(folder: Path) -> dict[str, Path]:
    records = {record.relative_to(folder).as_posix(): record for record in record_folders(folder)}
    if not records:
        raise LabError(f"no finished record at {folder}")
    return records


def diff_record(a: Path, b: Path) -> Iterator[tuple[str, str]]:
    """Pairs (file, what differs) of two records."""
    ours, theirs = _files(a), _files(b)
    for name in sorted(ours | theirs):
        if name not in ours or name not in theirs:
            yield name, f"only in {a if name in ours else b}"
            continue
        try:
            yield from ((name, what) for what in _differences(_content(ours[name]), _content(theirs[name])))
        except UNREADABLE as error:
            yield name, f"cannot be read: {in_a_line(error)}"


def _files(record: Path) -> dict[str, Path]:
    """The files of a record by their names, in which a store's session is a star."""
    names = [name for name in files_of(record) if name != DONE]
    return {SESSION.sub(r"\1/*/", name): record / name for name in names}


def _content(path: Path) -> Any:
    """What a file holds: a table its columns and its rows by number, a notebook sources and scraps, a store its tables."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as lines:
            header, *rows = list(csv.reader(lines)) or [[]]
        return {"columns": header, **{f"row {number}": dict(zip_longest(header, row)) for number, row in enumerate(rows)}}
    if path.suffix == ".sqlite":
        return _tables(path)
    if path.suffix not in (".json", ".yaml", ".ipynb"):
        return path.read_bytes()
    text = path.read_text(encoding="utf-8")
    values = parse_yaml(text) if path.suffix == ".yaml" else json.loads(text)
    return _sources_and_scraps(values) if path.suffix == ".ipynb" else values


def _sources_and_scraps(notebook: dict[str, Any]) -> dict[str, Any]:
    """The sources of the cells that papermill did not write, whose parameters stand in `meta.json`, and what they glued, by name. Other
    outputs hold times."""
    sources, scraps = [], {}
    for cell in notebook["cells"]:
        if "injected-parameters" in cell["metadata"].get("tags", []):
            continue
        sources.append("".join(cell["source"]))
        media = [item for output in cell.get("outputs", []) for item in output.get("data", {}).items()]
        scraps |= {payload["name"]: payload["data"] for name, payload in media if name.startswith("application/scrapbook.scrap")}
    return {"sources": sources, "scraps": scraps}


def _tables(path: Path) -> dict[str, dict[str, tuple[Any, ...]]]:
    """The rows of each table of a store by number, in the order of their text; those that begin with an ignored name are left out."""
    with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)) as store:
        names = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {name: sorted(store.execute(f'SELECT * FROM "{name}"'), key=repr) for name in names}
    kept = {name: [row for row in table_rows if row[0] not in IGNORED] for name, table_rows in rows.items()}
    return {f"table {name}": {f"row {number}": row for number, row in enumerate(kept_rows)} for name, kept_rows in kept.items()}


def _differences(a: Any, b: Any, where: str = "") -> Iterator[str]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys(), key=str):
            if key not in IGNORED:
                yield from _differences(a.get(key), b.get(key), f"{where}.{key}" if where else str(key))
    elif a != b:
        yield f"{where or 'its content'} is {shortened(repr(a))} and {shortened(repr(b))}"
