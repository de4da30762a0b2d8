"""An open store file: how it is opened and closed, what is wrong with one that cannot be, and transactions.

While a writer has it open there is a write-ahead log beside it, with `synchronous = FULL`: a commit is on the disk after one sync, where a
rollback journal takes four. A writer that closes folds the log into the file, so that a closed store is one file in a rollback journal's
format, which opens in a read-only folder. After a kill the log stays, readers read it, and the next writer folds it in.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from hippo_core.files import LabError
from hippo_core.memory.store.errors import damaged, in_our_words
from hippo_core.memory.store.identity import SCHEMA_VERSION, Identity, check_same, from_values
from hippo_core.memory.store.places import existing, hold
from hippo_core.memory.store.schema import APPLICATION

WAIT = 10.0  # seconds that a reader waits for a writer that is just opening or closing
GONE = "SELECT (SELECT count(*) FROM traces WHERE gone), (SELECT count(*) FROM undo WHERE field = 'gone')"  # equal, between two commits


class StoreFile:
    """A connection to a store's file. Made by `open`; `close` it, or use it in a `with`."""

    def __init__(self, path: Path, lock: int | None) -> None:
        """For `open` and `create` only. `lock`: the held descriptor of the folder, None to read only."""
        self.path, self.read_only, self._lock = path, lock is None, lock
        mode = "ro" if self.read_only else "rw"
        uri = f"file:{quote(str(path.absolute()))}?mode={mode}"
        with self._errors():
            self._connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=WAIT)
            self._connection.execute("PRAGMA trusted_schema = OFF")
            self._connection.execute("PRAGMA cell_size_check = ON")

    @classmethod
    def open(cls, folder: Path | str, session_id: str, expect: Identity | None = None, read_only: bool = False) -> Self:
        """The store of a session. LabError, in one line, where it is missing, damaged, not a store, held by another writer, or was
        written with another model or key than `expect` (None: any)."""
        path = existing(folder, session_id)
        if not read_only and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
            raise LabError(f"no write access to {path}; open it read-only, or copy it")
        return cls._opened(path, None if read_only else hold(path.parent), expect)

    @classmethod
    def _opened(cls, path: Path, lock: int | None, expect: Identity | None) -> Self:
        """The store at `path`, checked; the lock goes with it, and is given back where it cannot be opened."""
        try:
            store = cls(path, lock)
        except BaseException:
            if lock is not None:
                os.close(lock)
            raise
        try:
            store._check_file()
            if expect is not None:
                check_same(store.identity, expect, str(path))
            if not store.read_only:
                store._rows("PRAGMA journal_mode = WAL")
                store._rows("PRAGMA synchronous = FULL")
            return store
        except BaseException:
            store._release()
            raise

    def _check_file(self) -> None:
        [[application]], [[version]] = self._rows("PRAGMA application_id"), self._rows("PRAGMA user_version")
        if application != APPLICATION:
            raise LabError(f"{self.path} is an SQLite file of another program, not a store of traces; name another folder or session")
        if version != SCHEMA_VERSION:
            raise LabError(f"{self.path} has schema version {version}, this lab reads version {SCHEMA_VERSION}; use the lab that wrote it")
        [[verdict]] = self._rows("PRAGMA quick_check(1)")
        if verdict != "ok":
            raise self._damaged(verdict)
        [[gone, undoable]] = self._rows(GONE)
        if gone != undoable:
            raise self._damaged(f"{gone} traces are gone, of which {undoable} went by the store's own doing")
        _ = self.identity

    @cached_property
    def meta(self) -> dict[str, Any]:
        """session_id, token_limit, identity, and what `note` added."""
        try:
            return {name: json.loads(value) for name, value in self._rows("SELECT name, value FROM meta ORDER BY name")}
        except ValueError as error:
            raise self._damaged(error) from None

    @cached_property
    def identity(self) -> Identity:
        """What the store was written with."""
        return from_values(self.meta.get("identity", {}), str(self.path))

    @cached_property
    def token_limit(self) -> int:
        """How many tokens a trace may have."""
        return int(self.meta["token_limit"])

    def note(self, name: str, value: Any) -> None:
        """Keep a JSON value with the store, such as a gate's calibration; it is found in `meta`. A note of the same name is replaced."""
        if name in ("identity", "session_id", "token_limit"):
            raise LabError(f"{name} of a store is fixed when it is created; note it under another name")
        with self.together():
            self._rows("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, json.dumps(value, allow_nan=False)))
        self.__dict__.pop("meta", None)

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is written within is on the disk when the block ends, all of it; none of it after an error. Blocks may be nested."""
        if self.read_only:
            raise LabError(f"{self.path} was opened read-only: nothing can be written to it; open it for writing")
        if self._connection.in_transaction:
            yield
            return
        self._rows("BEGIN IMMEDIATE")
        try:
            yield
            self._rows("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # a full disk has rolled it back already
                self._connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Give the store back: what is not committed is undone, and the file is alone in its folder. A second call does nothing.

        LabError where a reader still has the store open: all is written, but the log stays beside the file until a writer closes it again.
        """
        try:
            if self._lock is not None:
                self._connection.rollback()
                self._rows("PRAGMA journal_mode = DELETE")
        finally:
            self._release()

    def _release(self) -> None:
        self._connection.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _write_to(self, other: sqlite3.Connection) -> None:
        """Copy the file's content, as it stands between two commits, into another database."""
        with self._errors():
            self._connection.backup(other)

    def _rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._errors():
            return self._connection.execute(sql, values).fetchall()

    def _many(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with self._errors():
            self._connection.executemany(sql, rows)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        with in_our_words(self.path, self.read_only):
            yield

    def _damaged(self, why: object) -> LabError:
        return damaged(self.path, why)
