"""A store's file: opened and looked over, transactions, closing, SQLite's errors in the lab's words, and what a store says of itself.

While a writer has it open there is a write-ahead log beside it, with `synchronous = FULL`: a commit is on the disk after one sync, where a
rollback journal takes four. A writer that closes folds the log into the file, so that a closed store is one file in a rollback journal's
format, which opens in a read-only folder. After a kill the log stays, readers read it, and the next writer folds it in. A log that is
broken before its last commit is refused (log.py).
"""

import json
import os
import sqlite3
import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from hippo_core.errors import LabError
from hippo_core.files import remove_unwritten, write_json
from hippo_core.store import rows, seal
from hippo_core.store.codec import Codec
from hippo_core.store.identity import Identity, as_values, check_same, check_version, from_values
from hippo_core.store.log import loses_commits
from hippo_core.store.paths import damaged, existing, hold, in_our_words
from hippo_core.store.schema import APPLICATION

WAIT = 10.0  # seconds that a reader waits for a writer that is just opening or closing
META = "store_meta.json"  # beside the file: what a reviewer asks of a store, without SQLite; the file stays the truth
OWED = "compact"  # a row of `meta` while words of what was removed for good may still be in the file; no note of the user's
REMOVED = "SELECT (SELECT count(*) FROM traces WHERE gone), (SELECT count(*) FROM undo WHERE field = 'gone')"  # equal between commits


class StoreFile:
    """A file that is open; made by `open` or `opened`, ended by `close`."""

    def __init__(self, path: Path, lock: int | None) -> None:
        """`lock`: the held descriptor of the folder, which goes with the connection; None to read only."""
        self.path, self.read_only, self._lock, self._rolled_back = path, lock is None, lock, 0
        self._unfolded = False  # a reader was in the way of `compact`
        mode = "ro" if self.read_only else "rw"
        uri = f"file:{quote(str(path.absolute()))}?mode={mode}"
        with self._errors():
            self._connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=WAIT)
            self._connection.execute("PRAGMA trusted_schema = OFF")
            self._connection.execute("PRAGMA cell_size_check = ON")

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is written within is on the disk when the block ends, all of it; none of it after an error. Blocks may be nested."""
        self.check_writable()
        if self._connection.in_transaction:
            yield
            return
        self.rows("BEGIN IMMEDIATE")
        try:
            yield
            self.rows("COMMIT")
        except BaseException:
            self._rolled_back += 1
            with suppress(sqlite3.Error):  # a full disk has rolled it back already
                self._connection.execute("ROLLBACK")
            raise
        self._fold_now()

    def check_writable(self) -> None:
        """LabError for a store that was opened to be read."""
        if self.read_only:
            raise LabError(f"{self.path} was opened read-only: nothing can be written to it; open it for writing")

    def check_idle(self) -> None:
        """LabError while a block is under way."""
        if self.in_transaction:
            raise LabError("a block is under way: end it before the store is compacted or purged")

    def close(self) -> None:
        """Give the store back, once: what is not committed is undone, and the file is alone in its folder. LabError where a reader still
        has it open: all is written, but the log stays beside the file until a writer closes it again."""
        try:
            if self._lock is not None:
                self._connection.rollback()
                self._fold_now()
                self.rows("PRAGMA journal_mode = DELETE")
                write_json(self.path.with_name(META), self.described())
        finally:
            self._release()

    def _release(self) -> None:
        self._connection.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def write_to(self, other: sqlite3.Connection) -> None:
        """Copy the file's content, as it stands between two commits, into another database."""
        with self._errors():
            self._connection.backup(other)

    @property
    def changes(self) -> int:
        """How many rows were changed, and blocks undone, since the file was opened, and a number that rises when others change it."""
        [[others]] = self.rows("PRAGMA data_version")
        return self._connection.total_changes + self._rolled_back + others

    @property
    def in_transaction(self) -> bool:
        """Whether a block is under way."""
        return self._connection.in_transaction

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Run a statement; its rows."""
        with self._errors():
            return self._connection.execute(sql, values).fetchall()

    def many(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Run a statement for each of these rows."""
        with self._errors():
            self._connection.executemany(sql, rows)

    def owe(self) -> None:
        """Within a block that removes rows for good: their words go with the next `compact`, at the latest when a writer opens the file."""
        self.rows("INSERT INTO meta VALUES (?, 'true') ON CONFLICT DO NOTHING", (OWED,))

    def compact(self) -> None:
        """Give the room of removed rows back: their words are in no file any more, neither the store's nor its log. LabError within a
        block. A warning where a reader is in the way: the words go with the next write, close or opening that finds none."""
        self.check_idle()
        self.rows("VACUUM")
        self._fold()
        if self._unfolded:
            warnings.warn(
                f"what was removed is gone from the answers, but its words stay in {self.path} while another process reads there; "
                "they go with the next write, close or opening after that",
                stacklevel=3,
            )

    def _fold(self) -> None:
        """Put the log into the file, and empty it; what is owed is paid then, and not before."""
        [[busy, *_]] = self.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        self._unfolded = bool(busy)
        if not busy:
            self.rows("DELETE FROM meta WHERE name = ?", (OWED,))

    def _fold_now(self) -> None:
        """Where a reader was in the way: try again, without waiting for it."""
        if self._unfolded:
            [[wait]] = self.rows("PRAGMA busy_timeout")
            self.rows("PRAGMA busy_timeout = 0")
            with suppress(OSError, LabError):
                self._fold()
            self.rows(f"PRAGMA busy_timeout = {wait}")

    def _pay(self) -> None:
        """Compact what was left uncompacted by a kill or a full disk; where the disk is still full, or a reader is in, it stays owed."""
        if self.rows("SELECT 1 FROM meta WHERE name = ?", (OWED,)):
            with suppress(OSError, LabError):
                self.compact()

    def _errors(self) -> AbstractContextManager[None]:
        return in_our_words(self.path, self.read_only)

    def damaged(self, why: object) -> LabError:
        """The error for a file whose content is not what a store has written."""
        return damaged(self.path, why)

    @classmethod
    def open(cls, folder: Path | str, session_id: str, expect: Identity | None = None, read_only: bool = False) -> Self:
        """The store of a session. LabError, in one line, where it is missing, damaged, not a store, held by another writer, or was
        written with another model or key than `expect` (None: any)."""
        path = existing(folder, session_id, expect.algorithm if expect else None)
        if not read_only and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
            raise LabError(f"no write access to {path}; open it read-only, or copy it")
        return cls.opened(path, None if read_only else hold(path.parent), expect)

    @classmethod
    def opened(cls, path: Path, lock: int | None, expect: Identity | None) -> Self:
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
                store.identity = expect
            if not store.read_only:
                store.rows("PRAGMA journal_mode = WAL")
                store.rows("PRAGMA synchronous = FULL")
                store._keep_sealed()
                store._pay()
                remove_unwritten(path.with_name(META))
            return store
        except BaseException:
            store._release()
            raise

    def _check_file(self) -> None:
        if loses_commits(self.path):  # before SQLite opens the log, which it may fold in and take away
            raise self.damaged("its log is broken, and commits stand behind that")
        [[application]], [[version]] = self.rows("PRAGMA application_id"), self.rows("PRAGMA user_version")
        if application != APPLICATION:
            raise LabError(f"{self.path} is an SQLite file of another program, not a store of traces; name another folder or session")
        if version != seal.FILE_VERSION:
            check_version(version, str(self.path))
        [[pages]], [[size]], length = self.rows("PRAGMA page_count"), self.rows("PRAGMA page_size"), self.path.stat().st_size
        if length < pages * size and not self.path.with_name(f"{self.path.name}-wal").exists():
            raise self.damaged(f"it should have {pages * size} bytes, it has {length}")
        self.rows("BEGIN")  # one state of the file, whoever writes to it meanwhile
        try:
            self._check_content(version == seal.FILE_VERSION)
        finally:
            self._connection.rollback()

    def _check_content(self, sealed: bool) -> None:
        [[verdict]] = self.rows("PRAGMA integrity_check(1)")  # also of each index, which decides what is found
        if verdict != "ok":
            raise self.damaged(verdict)
        [[removed, undoable]] = self.rows(REMOVED)
        if removed != undoable:
            raise self.damaged(f"{removed} traces are gone, of which {undoable} went by the store's own doing")
        if sealed:
            self.check_seal()
        else:
            self._check_unsealed()
        _ = self.identity

    def check_seal(self) -> None:
        """LabError where a row, or its place, is not as a store has written it."""
        with self._errors():
            why = seal.fault(self._connection)
        if why:
            raise self.damaged(why)

    def _check_unsealed(self) -> None:
        """Of a store that an earlier lab wrote, without a seal: what can be checked, which is each row by itself."""
        if self.rows("SELECT 1 FROM meta WHERE name = ?", (seal.SEAL,)):
            raise self.damaged("it has a seal, and the version of a file that has none")
        try:
            for row in self.rows(rows.SELECT):
                rows.row_trace(row, self.codec)
            for row in self.rows(rows.READ_LOG):
                rows.row_decision(row)
        except ValueError as error:
            raise self.damaged(error) from None

    def _keep_sealed(self) -> None:
        """Seal a store of an earlier lab as it is, once, since nothing tells what it was; then keep the seal up to date."""
        with self._errors():
            if self.rows("PRAGMA user_version") != [(seal.FILE_VERSION,)]:
                with self.together():
                    seal.seal_now(self._connection)
            seal.watch(self._connection)

    @cached_property
    def meta(self) -> dict[str, Any]:
        """session_id, identity, and what `note` added."""
        try:
            noted = self.rows("SELECT name, value FROM meta WHERE name NOT IN (?, ?) ORDER BY name", (OWED, seal.SEAL))
            return {name: json.loads(value) for name, value in noted}
        except (ValueError, RecursionError) as error:
            raise self.damaged(error) from None

    @cached_property
    def identity(self) -> Identity:
        """What the store was written with."""
        return from_values(self.meta.get("identity", {}), str(self.path))

    @property
    def codec(self) -> Codec:
        """That of the payloads: bytes where the store was opened without an identity."""
        return self.identity.codec

    def note(self, name: str, value: Any) -> None:
        """Keep a JSON value with the store, such as a gate's calibration; it is found in `meta`. A note of the same name is replaced."""
        if name in ("identity", "session_id", OWED, seal.SEAL):
            raise LabError(f"{name} of a store is fixed by the store itself; note it under another name")
        try:
            text = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise LabError(f"note {name!r} is no JSON ({error}); give plain values") from None
        with self.together():
            self.rows("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (name, text))
        self.__dict__.pop("meta", None)

    def described(self) -> dict[str, Any]:
        """What `store_meta.json` says: whose store it is, whether it was taught or replayed last (`source`), and how much it holds."""
        [[traces, worlds]] = self.rows("SELECT count(*), count(DISTINCT world) FROM traces WHERE NOT gone")
        noted = {name: value for name, value in self.meta.items() if name != "identity"}
        samples = noted.get("replay", {}).get("items", 0)
        written = {"source": "replay" if samples else "teach", "replay_samples": samples}
        return {**as_values(self.identity), **noted, **written, "traces": traces, "worlds": worlds, "bytes": self.path.stat().st_size}
