"""A folder of sealed files that together take at most so many bytes: the least recently used goes first."""

import hashlib
import os
import stat
import warnings
from contextlib import suppress
from pathlib import Path

from hippo_core.errors import LabError
from hippo_core.files import UNWRITTEN, write_bytes

SUFFIX = ".kept"  # ends the name of each file that is written here: others in the folder are somebody else's
SEAL = hashlib.sha256().digest_size  # bytes before the content: its SHA-256
SHARE = 16  # a process counts the folder anew whenever it has written this part of the limit


class BoundedFolder:
    """Files below `folder` of at most `limit` bytes, each behind the SHA-256 of its content; reading one counts as its use. Processes share
    the limit; each but one may go beyond it by a sixteenth. What a killed process left half written goes like any file."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder, self.limit = folder, limit
        self._budget, self._warned = 0, False  # bytes that may be written until the folder is counted again

    def read(self, path: Path) -> bytes | None:
        """The content of a file, marked as used; None if it is not there."""
        path = _kept(path)
        try:
            sealed = path.read_bytes()
        except FileNotFoundError:
            return None
        seal, content = sealed[:SEAL], sealed[SEAL:]
        if hashlib.sha256(content).digest() != seal:
            raise LabError(f"{path} is damaged: its content is not that of its SHA-256; delete it, and it will be made anew")
        with suppress(OSError):  # another process has just removed it, or it is another user's
            os.utime(path)
        return content

    def write(self, path: Path, content: bytes) -> None:
        """Write a file atomically; others are removed until all fit. LabError for a file above the limit."""
        sealed = hashlib.sha256(content).digest() + content
        if len(sealed) > self.limit:
            raise LabError(f"{path.name} takes {len(sealed):,} bytes, {self.folder} may take {self.limit:,}; raise the limit")
        if len(sealed) > self._budget:
            self._evict(len(sealed))
        self._budget -= len(sealed)
        write_bytes(_kept(path), sealed)

    def _evict(self, needed: int) -> None:
        """Count the files, and remove the least recently used until what is needed, and some more, fits."""
        target = max(needed, self.limit // SHARE)
        files = sorted(_files(self.folder))
        free = self.limit - sum(size for _, size, _ in files)
        if free < needed and not self._warned:
            self._warned = True
            warnings.warn(
                f"{self.folder} is full: it may take {self.limit / 2**20:,.0f} MiB; what was not used for longest goes", stacklevel=2
            )
        removed = iter(files) if free < needed else iter(())
        while free < target and (oldest := next(removed, None)):
            with suppress(FileNotFoundError):  # another process was quicker
                oldest[2].unlink()
            free += oldest[1]
        self._budget = max(needed, min(free, target))


def _kept(path: Path) -> Path:
    return path.with_name(path.name + SUFFIX)


def _files(folder: Path) -> list[tuple[int, int, Path]]:
    """When each file that was written here was last used (nanoseconds), its bytes, and its path; links and files of others do not count."""
    files = []
    for parent, _, names in os.walk(folder):
        for name in names:
            if not name.endswith((SUFFIX, UNWRITTEN)):
                continue
            with suppress(FileNotFoundError):
                status = os.lstat(path := Path(parent, name))
                if not stat.S_ISREG(status.st_mode):
                    continue
                files.append((status.st_mtime_ns, status.st_size, path))
    return files
