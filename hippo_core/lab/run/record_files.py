"""The files of a running cell. A record grows in a hidden folder beside its own and is renamed when it is complete.

So a killed runner leaves the complete record or none, and a kernel that outlives its runner writes where nobody reads.
"""

import fcntl
import glob
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hippo_core.errors import LabError
from hippo_core.files import COMMAND, MARK, UNWRITTEN, mark, remove_made, root
from hippo_core.results.records import clear_record, is_complete, seal

CLAIM = ".running"
FAILED_NOTEBOOK, NOTEBOOK, ERROR = "notebook.failed.ipynb", "notebook.ipynb", "error.txt"


def open_folder(record: Path) -> Path:
    """A fresh hidden folder for a record that is going to be made; what an earlier, killed attempt left is removed."""
    record.parent.mkdir(parents=True, exist_ok=True)
    discard(record)
    folder = Path(tempfile.mkdtemp(dir=record.parent, prefix=f".{record.name}."))
    folder.chmod(0o755)
    mark(folder)
    (folder / CLAIM).touch()
    return folder


def discard(record: Path) -> None:
    """Remove the hidden folders of a record that was not made."""
    for leftover in record.parent.glob(f".{glob.escape(record.name)}.*"):
        remove_made(leftover)


def sweep(run: Path) -> None:
    """Remove what killed runners and kernels left of a run, in its records and its report; only for one who holds the run alone."""
    for folder in (run, root() / "reports" / run.name):
        for leftover in list(folder.rglob(".*.*")):
            if leftover.is_dir():
                remove_made(leftover)
            elif leftover.name.endswith(UNWRITTEN):
                leftover.unlink(missing_ok=True)


def remove(record: Path) -> None:
    """Remove a record that nobody wants any more, all at once: one that is half removed would be taken for a damaged one."""
    mark(record)
    remove_made(record.rename(record.with_name(f".{record.name}.old")))


def claimed(folder: Path) -> Path:
    """The folder that a runner opened for this cell; LabError where it is none, as in a copy of an executed notebook."""
    if not (folder / CLAIM).is_file():
        raise LabError(f"record_dir {folder} is not being filled by a runner; set record_dir = '' to run this notebook by hand")
    return folder


def keep(folder: Path, record: Path) -> None:
    """Seal the record in `folder` and put it in its place."""
    (folder / CLAIM).unlink()
    (folder / MARK).unlink()  # a finished record is nothing that may be removed
    seal(folder)
    clear(record)
    folder.rename(record)


def keep_failed(folder: Path, record: Path, message: str) -> Path:
    """Keep what a failed cell left, with its message and its notebook, unsealed; returns the notebook's place."""
    (folder / CLAIM).unlink(missing_ok=True)
    (folder / ERROR).write_text(message + "\n", encoding="utf-8")
    if (folder / NOTEBOOK).exists():
        (folder / NOTEBOOK).rename(folder / FAILED_NOTEBOOK)
    clear(record)
    folder.rename(record)
    return record / FAILED_NOTEBOOK


def clear(record: Path) -> None:
    """Free a record's folder: what was never finished is removed, what was altered is kept aside, a complete record raises."""
    if is_complete(record):
        raise LabError(f"finished already: {short(record)}; take another run_id, or keep it aside: {COMMAND} run ... --again")
    clear_record(record)


def short(path: Path) -> str:
    """A path as a person types it: below the repository's root where it is there."""
    return str(path.relative_to(root()) if path.is_relative_to(root()) else path)


@contextmanager
def locked(run: Path, alone: bool) -> Iterator[None]:
    """Hold the lock of a run folder: `alone` for a grid, shared for a single cell. LabError where another holds it."""
    run.mkdir(parents=True, exist_ok=True)
    with (run / ".lock").open("a+") as file:
        try:
            fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise LabError(f"another run works on {short(run)} (process {holder}); wait for it, or take another RUN_ID") from None
        if alone:
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            sweep(run)
        yield


def is_locked(run: Path) -> bool:
    """Whether a grid holds the lock of a run folder; it is asked for a moment only."""
    try:
        with (run / ".lock").open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
