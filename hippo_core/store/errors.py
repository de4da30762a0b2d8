"""SQLite's errors in the lab's words: one line, with the file and the way out."""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hippo_core.files import LabError


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
