"""Where a store lies, and the lock by which it has one writer."""

import errno
import fcntl
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hippo_core.files import LabError

ALGORITHM, FILE = "hei_nw", "episodic.sqlite"
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def session_folder(folder: Path | str, session_id: str) -> Path:
    """`<folder>/hei_nw/<session_id>`; a folder that ends in hei_nw already is taken as it is."""
    if not _SESSION.fullmatch(session_id):
        expected = "at most 100 letters, digits, '-', '_' and '.', the first a letter or digit"
        raise LabError(f"session id {session_id!r} is not a plain name: expected {expected}")
    folder = Path(folder)
    return (folder if folder.name == ALGORITHM else folder / ALGORITHM) / session_id


def store_path(folder: Path | str, session_id: str) -> Path:
    """The file of a store, whether it is there or not."""
    return session_folder(folder, session_id) / FILE


def existing(folder: Path | str, session_id: str) -> Path:
    """The file of a store; LabError, naming the sessions that are there, where it is missing."""
    path = store_path(folder, session_id)
    if not path.is_file():
        others = sorted(file.parent.name for file in path.parent.parent.glob(f"*/{FILE}"))
        raise LabError(f"no store at {path}; sessions there: {', '.join(others) or 'none'}; teach first, or name one of them")
    return path


def hold(folder: Path) -> int:
    """A descriptor that makes this process the writer of a session's folder until it is closed or the process ends.

    The lock is the folder's, not the file's: closing a second descriptor of the file would drop SQLite's own locks on it.
    """
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(held)
        if error.errno == errno.EWOULDBLOCK:
            raise LabError(f"another process or store object writes to {folder}; wait until it has closed, or open read-only") from None
        raise LabError(f"{folder} is on a file system without locks ({error.strerror}): put the store on a local disk") from None
    return held


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
