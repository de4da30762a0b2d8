"""Where a store lies, and the lock by which it has one writer."""

import errno
import fcntl
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hippo_core.errors import LabError

FILE = "traces.sqlite"
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def store_path(folder: Path | str, session_id: str, algorithm: str) -> Path:
    """`<folder>/<algorithm>/<session_id>/traces.sqlite`, whether it is there or not; a folder that ends in the algorithm's name already is
    taken as it is."""
    if not _SESSION.fullmatch(session_id):
        expected = "at most 100 letters, digits, '-', '_' and '.', the first a letter or digit"
        raise LabError(f"session id {session_id!r} is not a plain name: expected {expected}")
    folder = Path(folder)
    return (folder if folder.name == algorithm else folder / algorithm) / session_id / FILE


def existing(folder: Path | str, session_id: str, algorithm: str | None = None) -> Path:
    """The file of a store, which `folder` may name itself; LabError, naming the sessions that are there, where it is missing.

    Without an algorithm it is that of any, if the session is there once.
    """
    folder = Path(folder)
    if folder.is_file():
        return folder
    path = store_path(folder, session_id, algorithm or "*")
    parents = ["", f"{algorithm or '*'}/"] if algorithm in (None, folder.name) else [f"{algorithm}/"]
    stores = sorted(store for parent in parents for store in folder.glob(f"{parent}*/{FILE}"))
    matching = [store for store in stores if store.parent.name == session_id]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise LabError(f"session {session_id} is there more than once: {', '.join(map(str, matching))}; name the file")
    others = [store.parent.name for store in stores]
    raise LabError(f"no store at {path}; sessions there: {', '.join(others) or 'none'}; teach first, or name one of them")


def require_free(folder: Path | str, session_id: str, algorithm: str) -> None:
    """LabError where the session is there already."""
    if (path := store_path(folder, session_id, algorithm)).exists():
        raise LabError(f"there is a store at {path} already; open it, name another session, or remove it first")


def hold(folder: Path) -> int:
    """A descriptor that makes this process the writer of a session's folder until it is closed or the process ends.

    The lock is the folder's, not the file's: closing a second descriptor of the file would drop SQLite's own locks on it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno == errno.EWOULDBLOCK:
            raise LabError(f"another process or store object writes to {folder}; wait until it has closed, or open read-only") from None
        raise LabError(f"{folder} is on a file system without locks ({error.strerror}): put the store on a local disk") from None
    return descriptor


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def in_our_words(path: Path, read_only: bool = False) -> Iterator[None]:
    """Turn what SQLite raises within into a LabError, or into the OSError of a full disk."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(error, path, read_only) from None
    except UnicodeDecodeError as error:  # a damaged schema, which SQLite quotes
        raise damaged(path, error) from None


def damaged(path: Path, why: object) -> LabError:
    """The error for a file whose content is not what a store has written."""
    return LabError(f"{path} is damaged or no store ({' '.join(str(why).split())}); bring back a copy, or teach anew")


def _translated(error: sqlite3.Error, path: Path, read_only: bool) -> Exception:
    if isinstance(error, sqlite3.ProgrammingError):  # a closed store, another thread: the caller's mistake, not the file's
        return error
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the details of the extended code
    if code == sqlite3.SQLITE_FULL:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LabError(f"{path} is in use by a reader or another process; wait until it has closed, then open and close it again")
    if code == sqlite3.SQLITE_IOERR:
        return OSError(errno.EIO, f"{error}; look after the disk", str(path))
    if code not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
        return damaged(path, error)
    if read_only and path.with_name(f"{path.name}-journal").exists():
        return LabError(f"{path} was left in the middle of a write; open it for writing once, which undoes that write")
    return LabError(f"no access to {path} ({error}); check the permissions of the file and its folder")
