"""Are two records, or two trees of records, equal? All is compared but commit, run name, kind of kernel, times and latencies.

A store is compared table by table, whatever session its folder is named by.
"""

import csv
import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from hippo_core.errors import LabError
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
        else:
            left, right = ours[name], theirs[name]
            try:
                yield from ((name, what) for what in COMPARE.get(left.suffix, _bytes)(left, right))
            except UNREADABLE as error:
                yield name, f"cannot be read: {in_a_line(error)}"


def _files(record: Path) -> dict[str, Path]:
    """The files of a record by their names, in which a store's session is a star."""
    names = [name for name in files_of(record) if name != DONE]
    return {SESSION.sub(r"\1/*/", name): record / name for name in names}


def _rows(a: Path, b: Path) -> Iterator[str]:
    """Line by line, the timing columns left out; the first differing cell of a row stands for the row."""
    with a.open(encoding="utf-8", newline="") as left, b.open(encoding="utf-8", newline="") as right:
        header, other = next(reader := csv.reader(left), []), next(reader_b := csv.reader(right), [])
        if header != other:
            yield f"other columns: {sorted(set(header) ^ set(other)) or 'in another order'}"
            return
        for number, (row, twin) in enumerate(zip_longest(reader, reader_b)):
            if row is None or twin is None:
                yield f"one ends after {number} rows"
                return
            cells = zip(header, row, twin, strict=False)
            where = next((f"{name} is {x!r} and {y!r}" for name, x, y in cells if x != y and name not in IGNORED), None)
            if where or len(row) != len(twin):
                yield f"row {number}: {where or 'not the same number of cells'}"


def _parsed(parse: Callable[[str], Any]) -> Callable[[Path, Path], Iterator[str]]:
    return lambda a, b: _values(*(parse(path.read_text(encoding="utf-8")) for path in (a, b)))


def _values(a: Any, b: Any, where: str = "") -> Iterator[str]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys(), key=str):
            if key not in IGNORED:
                yield from _values(a.get(key), b.get(key), f"{where}.{key}" if where else str(key))
    elif a != b:
        yield f"{where} is {a!r} and {b!r}"


def _notebook(a: Path, b: Path) -> Iterator[str]:
    """The code, the text and the glued scraps; outputs hold times, and the parameters papermill wrote stand in `meta.json` too."""
    (sources, scraps), (other_sources, other_scraps) = map(_sources_and_scraps, (a, b))
    if sources != other_sources:
        yield "the code or the text differs"
    yield from _values(scraps, other_scraps, "scraps")


def _sources_and_scraps(notebook: Path) -> tuple[list[str], dict[str, Any]]:
    """The sources of the cells that papermill did not write, and what they glued, by name."""
    sources, scraps = [], {}
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if "injected-parameters" in cell["metadata"].get("tags", []):
            continue
        sources.append("".join(cell["source"]))
        media = [item for output in cell.get("outputs", []) for item in output.get("data", {}).items()]
        scraps |= {payload["name"]: payload["data"] for name, payload in media if name.startswith("application/scrapbook.scrap")}
    return sources, scraps


def _tables(a: Path, b: Path) -> Iterator[str]:
    """Table by table; values that a name of the ignored ones stands before are left out."""
    left, right = _content(a), _content(b)
    for table in sorted(left.keys() | right.keys()):
        if left.get(table) != right.get(table):
            yield f"the table {table} differs"


def _content(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)) as store:
        names = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {name: sorted(store.execute(f'SELECT * FROM "{name}"'), key=repr) for name in names}
    return {name: [row for row in table_rows if row[0] not in IGNORED] for name, table_rows in rows.items()}


def _bytes(a: Path, b: Path) -> Iterator[str]:
    if a.read_bytes() != b.read_bytes():
        yield "other bytes"


COMPARE = {".csv": _rows, ".json": _parsed(json.loads), ".yaml": _parsed(parse_yaml), ".ipynb": _notebook, ".sqlite": _tables}
