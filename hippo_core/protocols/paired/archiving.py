"""A run with its suite in one file: a tar.gz of the same bytes each time, with the length and SHA-256 of every file in it.

An archive is read as a stream and nothing of it is written to the disk. No more is unpacked than its own list says.
"""

import gzip
import hashlib
import io
import json
import tarfile
import zlib
from pathlib import Path

from hippo_core.errors import LabError
from hippo_core.files import in_a_line, parse_json, seal, write_bytes
from hippo_core.protocols.paired.comparison import require_same
from hippo_core.protocols.paired.run_files import RESULTS, RUN, PairedRun
from hippo_core.protocols.paired.suite import HASHED, MANIFEST, PairedSuite, inside

CONTENTS = "sha256.json"
LONGEST_LIST, HEADERS = 16 << 20, 1 << 16  # bytes: of the list, and around each file


def archive(run: PairedRun, suite: PairedSuite, target: Path) -> dict[str, str]:
    """Write the archive; the SHA-256 of each file by its name in it. LabError where the suite is no longer that of the run, or the target
    is there."""
    if target.exists():
        raise LabError(f"{target} is there already; name another file")
    require_same(run, PairedRun(run.folder, {"checksums": suite.checksums}, run.rows))
    files = {f"run/{name}": run.folder / name for name in (RUN, RESULTS)}
    for name in filter(None, (MANIFEST, suite.manifest.items, suite.manifest.notes, *suite.manifest.scripts)):
        files[f"suite/{name}"] = inside(suite.folder, name)
    for folder in HASHED:
        below = [path for path in (suite.folder / folder).rglob("*") if path.is_file()]
        files |= {f"suite/{path.relative_to(suite.folder).as_posix()}": path for path in below}
    seals = {name: seal(path) for name, path in sorted(files.items())}
    contents = {CONTENTS: (json.dumps(seals, indent=2) + "\n").encode()} | {name: files[name].read_bytes() for name in seals}
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream, tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    write_bytes(target, packed.getvalue())
    return {name: str(about["sha256"]) for name, about in seals.items()}


def verify(target: Path) -> dict[str, str]:
    """The SHA-256 of each file of an archive; LabError where one is not as its list says, or where it holds anything but plain files."""
    sums: dict[str, str] = {}
    try:
        with gzip.open(target) as packed, tarfile.open(fileobj=(content := _Unpacked(target, packed)), mode="r|") as tar:  # type: ignore[call-overload]
            listed = _list_of(target, tar)
            content.left = sum(size for size, _ in listed.values()) + HEADERS * len(listed)
            while (entry := tar.next()) is not None:
                if entry.name not in listed or entry.name in sums or not entry.isreg():
                    why = "is in it twice" if entry.name in sums else "is not in its list"
                    why = why if entry.isreg() else "is no plain file; an archive holds no links, folders or devices"
                    raise LabError(f"{target}: {entry.name!r} {why}")
                if entry.size != (size := listed[entry.name][0]):
                    raise LabError(f"{target}: {entry.name!r} would unpack to {entry.size:,} bytes; its list says {size:,}")
                sums[entry.name] = hashlib.file_digest(tar.extractfile(entry), "sha256").hexdigest()  # type: ignore[arg-type]
            while content.read(HEADERS):  # to the end, where gzip says whether all was right
                pass
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise LabError(f"{target} is no archive, or cut off: {in_a_line(error)}") from None
    if wrong := [name for name, (_, expected) in listed.items() if expected != sums.get(name)]:
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


def _list_of(target: Path, tar: tarfile.TarFile) -> dict[str, tuple[int, str]]:
    """The length and SHA-256 of each file. The list stands before them, so that it is known how much may be unpacked."""
    entry = tar.next()
    if entry is None or entry.name != CONTENTS or not entry.isreg() or entry.size > LONGEST_LIST:
        raise LabError(f"{target}: expected the list of its files, {CONTENTS}, as its first file; write it with `paired archive`")
    listed = parse_json(tar.extractfile(entry).read(), f"{target}: {CONTENTS}")  # pyright: ignore[reportOptionalMemberAccess]
    if not listed:
        raise LabError(f"{target}: its list names no file; there is nothing to verify")
    seals = {}
    for name, about in listed.items():
        size, checksum = (about.get("bytes"), about.get("sha256")) if isinstance(about, dict) else (None, None)
        if {"", ".", ".."} & {*name.split("/")} or not isinstance(size, int) or size < 0 or not isinstance(checksum, str):
            raise LabError(f"{target}: its list says of {name!r} no length and SHA-256 of a file inside the archive")
        seals[name] = (size, checksum)
    return seals
