"""The seal of a record, its DONE file: the SHA-256 of every other file. A record is whole when it is what its seal says, and only then."""

import re
from functools import lru_cache
from pathlib import Path

from hippo_core.errors import LabError, shortened
from hippo_core.files import parse_json, sha256, write_json
from hippo_core.results.records.paths import DONE, files_of, record_folders
from hippo_core.results.records.write import SCHEMA_VERSION

CHECKSUM = re.compile(r"[0-9a-f]{64}")


def seal(record: Path) -> None:
    """Write DONE: the checksum of every file of the record, at any depth. Nothing may be written to it afterwards."""
    checksums = {name: sha256(record / name) for name in files_of(record) if name != DONE}
    write_json(record / DONE, {"schema_version": SCHEMA_VERSION, "sha256": checksums})


def sealed_files(done: Path) -> dict[str, str]:
    """The files that a DONE file names, each with its checksum. LabError where it is damaged, or names a place outside its record."""
    checksums = parse_json(done.read_bytes(), "its DONE file").get("sha256")
    if not isinstance(checksums, dict) or not checksums:
        raise LabError("its DONE file is damaged: it names no files")
    for name, checksum in checksums.items():
        leads_out = any(part[:1] in ("", ".") for part in name.split("/"))
        if name == DONE or leads_out or not isinstance(checksum, str) or not CHECKSUM.fullmatch(checksum):
            raise LabError(f"its DONE file is damaged: {shortened(repr(name))} is no path below the record with a SHA-256")
    return checksums


def is_complete(record: Path) -> bool:
    """Whether the files are those that DONE names, with the checksums that it gives, and no other."""
    return not wrong_with(record)


def wrong_with(record: Path) -> list[str]:
    """Everything in which a record differs from its seal; an empty list for a whole one."""
    if record.is_symlink() or (record / DONE).is_symlink():
        return ["it is a link, or its DONE file is one; links are not followed"]
    if not (record / DONE).is_file():
        return ["not finished (no DONE file)"]
    try:
        checksums = sealed_files(record / DONE)
    except LabError as error:
        return [str(error)]
    added = [f"{name} was added after the record was finished" for name in files_of(record) if name != DONE and name not in checksums]
    return [what for name, checksum in checksums.items() if (what := _file_fault(record, name, checksum))] + added


def _file_fault(record: Path, name: str, checksum: str) -> str:
    path = record / name
    if any(part.is_symlink() for part in (path, *path.parents) if part.is_relative_to(record) and part != record):
        return f"{name} is a link, or lies behind one; links are not followed"
    if not path.is_file():
        return f"{name} is missing"
    return "" if sha256(path) == checksum else f"{name} was changed after the record was finished"


def known_wrong_with(record: Path) -> tuple[str, ...]:
    """The same, for who reads records often: files are read again only where the disk says that one was touched since."""
    states = ((name, (record / name).stat()) for name in files_of(record))
    return _known_wrong_with(record, tuple((name, state.st_ino, state.st_size, state.st_ctime_ns) for name, state in states))


@lru_cache(maxsize=50_000)
def _known_wrong_with(record: Path, touched: tuple[tuple[str, int, int, int], ...]) -> tuple[str, ...]:
    return tuple(wrong_with(record))


def verify(folder: Path) -> tuple[int, list[str]]:
    """Check every record at or below `folder`: how many there are, and what is wrong with them. No record at all raises."""
    records = list(record_folders(folder))
    if not records:
        raise LabError(f"no finished record at {folder}")
    return len(records), [f"{record}: {what}" for record in records for what in wrong_with(record)]
