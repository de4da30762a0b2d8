"""A run with its suite in one file: a tar.gz of the same bytes each time, with the length and SHA-256 of every file in it.

An archive is read as a stream and nothing of it is written to the disk. No more is unpacked than its own list says, and of an archive
with an older list, which says no lengths, no more than UNLISTED bytes.
"""

import gzip
import hashlib
import io
import json
import tarfile
import zlib
from collections.abc import Container
from pathlib import Path
from typing import Any

from hippo_core.errors import LabError
from hippo_core.files import in_a_line, parse_json, seal, write_bytes
from hippo_core.protocols.paired.comparison import require_same
from hippo_core.protocols.paired.run_files import RESULTS, RUN, PairedRun
from hippo_core.protocols.paired.suite import HASHED, MANIFEST, PairedSuite, inside

CONTENTS = "sha256.json"
LONGEST_LIST, HEADERS, UNLISTED = 16 << 20, 1 << 16, 1 << 30  # bytes: of the list, around each file, of all files with an older list


def archive(run: PairedRun, suite: PairedSuite, target: Path) -> dict[str, str]:
    """Write the archive; the SHA-256 of each file by its name in it. LabError where the suite is no longer that of the run, or the target
    is there."""
    if target.exists():
        raise LabError(f"{target} is there already; name another file")
    require_same(run, PairedRun(run.folder, {"checksums": suite.checksums}, run.rows))
    files = {f"run/{name}": run.folder / name for name in (RUN, RESULTS)} | {
        f"suite/{name}": path for name, path in _of_suite(suite).items()
    }
    seals = {name: seal(path) for name, path in sorted(files.items())}
    content = io.BytesIO()
    with gzip.GzipFile(fileobj=content, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        _add(tar, CONTENTS, (json.dumps(seals, indent=2) + "\n").encode())
        for name, path in sorted(files.items()):
            _add(tar, name, path.read_bytes())
    write_bytes(target, content.getvalue())
    return {name: str(about["sha256"]) for name, about in seals.items()}


def verify(target: Path) -> dict[str, str]:
    """The SHA-256 of each file of an archive; LabError where one is not as its list says, or where it holds anything but plain files."""
    sums: dict[str, str] = {}
    try:
        with gzip.open(target) as packed, tarfile.open(fileobj=(content := _Unpacked(target, packed)), mode="r|") as tar:  # type: ignore[call-overload]
            listed = _list_of(target, tar)
            lengths = [about["bytes"] for about in listed.values() if "bytes" in about]
            content.left = sum(lengths) + HEADERS * len(listed) if len(lengths) == len(listed) else UNLISTED
            while (entry := tar.next()) is not None:
                if entry.name not in listed or entry.name in sums or not entry.isreg():
                    raise LabError(f"{target}: {entry.name!r} {_why_refused(entry, sums)}")
                if entry.size != (size := listed[entry.name].get("bytes", entry.size)):
                    raise LabError(f"{target}: {entry.name!r} would unpack to {entry.size:,} bytes; its list says {size:,}")
                sums[entry.name] = _sum_of(tar, entry)
            while content.read(HEADERS):  # to the end, where gzip says whether all was right
                pass
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise LabError(f"{target} is no archive, or cut off: {in_a_line(error)}") from None
    if wrong := [name for name, about in listed.items() if about["sha256"] != sums.get(name)]:
        raise LabError(f"{target}: not as its list says: {', '.join(wrong)}")
    return sums


class _Unpacked:
    """The unpacked bytes of an archive, of which no more are read than are `left`; at first enough for its list."""

    def __init__(self, target: Path, packed: gzip.GzipFile) -> None:
        self.left, self._target, self._packed = LONGEST_LIST + HEADERS, target, packed

    def read(self, size: int) -> bytes:
        """The next bytes."""
        data = self._packed.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise LabError(f"{self._target} would unpack to more than its list says; it is no archive of a run")
        return data


def _list_of(target: Path, tar: tarfile.TarFile) -> dict[str, dict[str, Any]]:
    """What an archive says of its files. It stands before them, so that it is known how much may be unpacked."""
    entry = tar.next()
    if entry is None or entry.name != CONTENTS or not entry.isreg() or entry.size > LONGEST_LIST:
        raise LabError(f"{target}: expected the list of its files, {CONTENTS}, as its first file; write it with `paired archive`")
    file = tar.extractfile(entry)
    parsed = parse_json(file.read() if file else b"", f"{target}: {CONTENTS}")
    listed = {
        name: {"sha256": value} if isinstance(value, str) else value for name, value in parsed.items()
    }  # an older list has the sums alone
    if not listed:
        raise LabError(f"{target}: its list names no file; there is nothing to verify")
    for name, value in listed.items():
        size = value.get("bytes", 0) if isinstance(value, dict) else None
        if {"", ".", ".."} & {*name.split("/")} or not isinstance(size, int) or size < 0 or not isinstance(value.get("sha256"), str):
            raise LabError(f"{target}: its list says of {name!r} no length and SHA-256 of a file inside the archive")
    return listed


def _why_refused(entry: tarfile.TarInfo, seen: Container[str]) -> str:
    if not entry.isreg():
        return "is no plain file; an archive holds no links, folders or devices"
    return "is in it twice" if entry.name in seen else "is not in its list"


def _sum_of(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> str:
    file = tar.extractfile(entry)
    return hashlib.file_digest(file, "sha256").hexdigest() if file else ""  # type: ignore[arg-type]


def _of_suite(suite: PairedSuite) -> dict[str, Path]:
    manifest = suite.manifest
    named = [MANIFEST, manifest.items, *([manifest.notes] if manifest.notes else []), *manifest.scripts]
    files = {name: inside(suite.folder, name) for name in named}
    for folder in HASHED:
        files |= {path.relative_to(suite.folder).as_posix(): path for path in (suite.folder / folder).rglob("*") if path.is_file()}
    return files


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o644
    tar.addfile(entry, io.BytesIO(data))
