"""A run with its suite in one file: a tar.gz of the same bytes each time, with the SHA-256 of every file in it."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

from hippo_core.files import LabError, sha256, write_bytes
from hippo_core.paired.comparison import require_same
from hippo_core.paired.run_files import RESULTS, RUN, PairedRun
from hippo_core.paired.suite import HASHED, MANIFEST, Suite, inside

CONTENTS = "sha256.json"


def archive(run: PairedRun, suite: Suite, target: Path) -> dict[str, str]:
    """Write the archive; the SHA-256 of each file by its name in it. LabError where the suite is no longer that of the run, or the target
    is there."""
    if target.exists():
        raise LabError(f"{target} is there already; name another file")
    require_same(run, PairedRun(run.folder, {"checksums": suite.checksums}, run.rows))
    files = {f"run/{name}": run.folder / name for name in (RUN, RESULTS)} | {
        f"suite/{name}": path for name, path in _of_suite(suite).items()
    }
    sums = {name: sha256(path) for name, path in sorted(files.items())}
    content = io.BytesIO()
    with gzip.GzipFile(fileobj=content, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        _add(tar, CONTENTS, (json.dumps(sums, indent=2) + "\n").encode())
        for name, path in sorted(files.items()):
            _add(tar, name, path.read_bytes())
    write_bytes(target, content.getvalue())
    return sums


def verify(target: Path) -> dict[str, str]:
    """The SHA-256 of each file of an archive; LabError where one is not as its list says."""
    try:
        with tarfile.open(target, "r:gz") as tar:
            found = {one.name: tar.extractfile(one) for one in tar.getmembers() if one.isfile()}
            contents = {name: file.read() for name, file in found.items() if file}
    except (OSError, EOFError, tarfile.TarError) as error:
        raise LabError(f"{target} is no archive, or cut off: {error}") from None
    sums: Mapping[str, str] = json.loads(contents.pop(CONTENTS, b"{}"))
    actual = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
    if wrong := [name for name in dict.fromkeys((*sums, *actual)) if sums.get(name) != actual.get(name)]:
        raise LabError(f"{target}: not as its list says: {', '.join(wrong)}")
    return actual


def _of_suite(suite: Suite) -> dict[str, Path]:
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
