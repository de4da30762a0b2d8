"""The tables of a store, and making a file of them that is there whole or not at all."""

import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from hippo_core.errors import LabError
from hippo_core.store.codec import Codec
from hippo_core.store.paths import in_our_words, sync_folder
from hippo_core.store.rows import INSERT, trace_row
from hippo_core.store.seal import FILE_VERSION, seal_now
from hippo_core.store.trace import Trace

APPLICATION = 0x48454957  # "HEIW": SQLite keeps it in the file's header, so that another program's file is known as such

# A trace that is deleted or evicted stays as a tombstone (`gone`) until it is purged, so that it can be brought back.
# `undo` holds, for each change of a batch: of the salience the value before, of uses and evidence by how much they rose.
TABLES = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FILE_VERSION};
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE traces (
    id INTEGER PRIMARY KEY AUTOINCREMENT, world TEXT NOT NULL, source TEXT NOT NULL, text TEXT NOT NULL,
    teller TEXT NOT NULL, confidence REAL, payload BLOB NOT NULL, pinned INTEGER NOT NULL, provenance TEXT NOT NULL,
    context_key TEXT NOT NULL, time INTEGER NOT NULL, checksum INTEGER NOT NULL,
    salience REAL NOT NULL, uses INTEGER NOT NULL, evidence INTEGER NOT NULL, gone INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX traces_of_world ON traces (world);
CREATE TABLE decisions (
    id INTEGER PRIMARY KEY, source TEXT NOT NULL, world TEXT NOT NULL, text TEXT NOT NULL, time INTEGER NOT NULL,
    S REAL NOT NULL, contributions TEXT NOT NULL, raw TEXT NOT NULL, action TEXT NOT NULL, trace INTEGER, told TEXT NOT NULL
) STRICT;
CREATE TABLE batches (id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL) STRICT;
CREATE TABLE undo (id INTEGER PRIMARY KEY, batch INTEGER NOT NULL, trace INTEGER NOT NULL, field TEXT NOT NULL, value ANY) STRICT;
CREATE INDEX undo_of_batch ON undo (batch);
"""


def make_file(path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """A new database at `path`, filled, synced and then named. The caller holds the folder, so what a killed maker left can go."""
    building = path.with_name(f".{path.name}.hippo-new")
    for leftover in (building, building.with_name(f"{building.name}-journal")):
        if leftover.is_symlink():
            raise LabError(f"{leftover} is a link, where a file is about to be made; remove it")
        leftover.unlink(missing_ok=True)
    with in_our_words(path), closing(sqlite3.connect(building, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        fill(connection)
    os.rename(building, path)
    sync_folder(path.parent)


def lay_out(meta: dict[str, Any], traces: Sequence[Trace], codec: Codec) -> Callable[[sqlite3.Connection], None]:
    """What fills a new store: these values in `meta`, these traces under their own ids."""

    def fill(connection: sqlite3.Connection) -> None:
        connection.executescript(f"BEGIN; {TABLES}")
        connection.executemany("INSERT INTO meta VALUES (?, ?)", [(name, json.dumps(value)) for name, value in meta.items()])
        connection.executemany(INSERT, (trace_row(trace, trace.id, codec) for trace in traces))
        seal_now(connection)
        connection.execute("COMMIT")

    return fill
