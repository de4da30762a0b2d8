"""A connection to a store's file: transactions, closing, and SQLite's errors in the lab's words.

While a writer has it open there is a write-ahead log beside it, with `synchronous = FULL`: a commit is on the disk after one sync, where a
rollback journal takes four. A writer that closes folds the log into the file, so that a closed store is one file in a rollback journal's
format, which opens in a read-only folder. After a kill the log stays, readers read it, and the next writer folds it in.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from hippo_core.files import LabError
from hippo_core.store.errors import damaged, in_our_words

WAIT = 10.0  # seconds that a reader waits for a writer that is just opening or closing


class Connection:
    """A file that is open; `close` it, or use it in a `with`."""

    def __init__(self, path: Path, lock: int | None) -> None:
        """`lock`: the held descriptor of the folder, which goes with the connection; None to read only."""
        self.path, self.read_only, self._lock = path, lock is None, lock
        mode = "ro" if self.read_only else "rw"
        uri = f"file:{quote(str(path.absolute()))}?mode={mode}"
        with self._errors():
            self._connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=WAIT)
            self._connection.execute("PRAGMA trusted_schema = OFF")
            self._connection.execute("PRAGMA cell_size_check = ON")

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
