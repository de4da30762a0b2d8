"""Is a record whole? Its DONE file names every other file with a checksum, and each is compared."""

import json
from dataclasses import dataclass
from pathlib import Path

from hippo_core.files import LabError, sha256
from hippo_core.results.records.paths import DONE, record_folders


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with one record."""

    record: Path
    what: str

    def __str__(self) -> str:
        return f"{self.record}: {self.what}"


def is_complete(record: Path) -> bool:
    """True when DONE is there and every file that it names has the checksum that it gives."""
    return not faults(record)


def faults(record: Path) -> list[Fault]:
    """Everything wrong with one record; an empty list for a whole one."""
    try:
        expected = json.loads((record / DONE).read_text(encoding="utf-8"))["sha256"]
    except FileNotFoundError:
        return [Fault(record, "not finished (no DONE file)")]
    except (json.JSONDecodeError, KeyError, TypeError, UnicodeDecodeError):
        return [Fault(record, "its DONE file is damaged")]
    return [Fault(record, what) for name, checksum in expected.items() if (what := _file_fault(record / name, name, checksum))]


def _file_fault(path: Path, name: str, checksum: str) -> str:
    if not path.is_file():
        return f"{name} is missing"
    return "" if sha256(path) == checksum else f"{name} was changed after the record was finished"


def verify(folder: Path) -> tuple[int, list[Fault]]:
    """Check every record at or below `folder`: how many there are, and what is wrong with them. No record at all raises."""
    records = list(record_folders(folder))
    if not records:
        raise LabError(f"no finished record at {folder}")
    return len(records), [fault for record in records for fault in faults(record)]
