"""An archive: a second place for records, a shared folder or an object store (`s3://bucket/prefix`, any address that fsspec knows).

A cell writes to its own disk while it runs and is copied whole when it has ended: on a folder by renaming, on an object store with
its DONE file last, without which nobody takes it for a record. Names are paths below `executed/`, as in `smoke/baselines/core/...`.
"""

import json
import os
import shutil
import socket
import time
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil

from hippo_core.errors import LabError
from hippo_core.files import in_a_line, mark, new_folder, root
from hippo_core.results.records.paths import DONE, RUNS, clear_record, files_of
from hippo_core.results.records.sealed import is_complete, sealed_files, wrong_with

TRANSFERS = 8  # records at a time
RENEW, STALE = 20.0, 120.0  # seconds after which a lock is renewed, and after which one that was not belongs to nobody


class Archive:
    """Records at an address. Every method raises LabError where the address cannot be reached, read or written."""

    def __init__(self, url: str) -> None:
        import fsspec
        from fsspec.implementations.local import LocalFileSystem

        self.url = url.rstrip("/")
        with self._translated_errors():
            self._fs, self._base = fsspec.core.url_to_fs(self.url, use_listings_cache=False)
        self._is_folder = isinstance(self._fs, LocalFileSystem)

    def check(self) -> None:
        """Write, read and remove a small file: what is wrong with the address is known before any cell runs."""
        path = self._path(f".probe-{uuid.uuid4().hex}")
        with self._translated_errors():
            self._write(path, b"probe")
            if self._fs.cat_file(path) != b"probe":
                raise OSError("what was written reads differently")
            self._fs.rm_file(path)

    def finished(self, run_id: str) -> set[str]:
        """The names of a run's finished records."""
        with self._translated_errors():
            paths = self._fs.find(self._path(run_id))
        done_files = [path[len(self._base) :].strip("/") for path in paths if path.endswith(f"/{DONE}")]
        return {path.removesuffix(f"/{DONE}") for path in done_files if not any("." in part for part in path.split("/")[1:])}

    def push(self, record: Path) -> None:
        """Copy what a cell left; a finished record that is there stays as it is. LabError for one that was changed since."""
        if (record / DONE).exists() and (wrong := wrong_with(record)):
            raise LabError(f"{record} is not copied to {self.url}: {wrong[0]}")
        target = self._path(record.relative_to(root() / RUNS).as_posix())
        with self._translated_errors():
            if self._fs.exists(f"{target}/{DONE}"):
                return
            if self._is_folder:
                clear_record(Path(target))
                with new_folder(Path(target)) as folder:
                    shutil.copytree(record, folder, dirs_exist_ok=True)
                if not (record / DONE).exists():
                    mark(Path(target))  # the copy of a failed cell goes when the cell is done
                return
            if self._fs.exists(target):
                self._fs.rm(target, recursive=True)
            for name in sorted(files_of(record), key=lambda name: name == DONE):
                self._fs.put_file(str(record / name), f"{target}/{name}")

    def pull(self, names: Iterable[str]) -> None:
        """Bring finished records to `executed/`, each whole or not at all; those that are whole there stay."""
        with ThreadPoolExecutor(TRANSFERS) as pool:
            list(pool.map(self._pull, names))

    def _pull(self, name: str) -> None:
        target = root() / RUNS / name
        if is_complete(target):
            return
        with self._translated_errors():
            try:
                with new_folder(target) as folder:
                    self._fs.get_file(f"{self._path(name)}/{DONE}", str(folder / DONE))
                    for file in sealed_files(folder / DONE):  # and nothing else, wherever it would lead
                        (folder / file).parent.mkdir(parents=True, exist_ok=True)
                        self._fs.get_file(f"{self._path(name)}/{file}", str(folder / file))
                    if wrong := wrong_with(folder):
                        raise OSError(f"it is damaged there: {wrong[0]}")
                    if target.exists() and not is_complete(target):  # asked in this order: one that came in between is whole, and stays
                        clear_record(target)
            except (OSError, LabError) as error:
                if not is_complete(target):  # another cell of this machine may have been quicker
                    raise OSError(f"{name}: {error}") from None

    @contextmanager
    def locked(self, run_id: str) -> Iterator[None]:
        """Hold a run, so that no runner on another machine works on it. The lock of a runner that died is taken over:
        at once where it ran on this machine, after two minutes otherwise."""
        path, ended = self._path(f"{run_id}/.lock"), Event()

        def renew() -> None:
            while not ended.wait(RENEW):
                with suppress(LabError), self._translated_errors():  # the next time may go well
                    self._hold(path)

        with self._translated_errors():
            self._take(path, run_id)
        renewing = Thread(target=renew, daemon=True)
        renewing.start()
        try:
            yield
        finally:
            ended.set()
            renewing.join()
            with self._translated_errors():
                self._fs.rm_file(path)

    def _take(self, path: str, run_id: str) -> None:
        try:
            return self._hold(path, mode="create")
        except FileExistsError:
            holder = json.loads(self._fs.cat_file(path))
        stale = time.time() - holder["renewed"] > STALE
        if holder["host"] == socket.gethostname():
            stale = not psutil.pid_exists(holder["pid"])
        if not stale:
            who = f"process {holder['pid']} on {holder['host']}"
            raise LabError(f"another run works on {run_id} at {self.url} ({who}); wait for it, or take another RUN_ID")
        self._hold(path)

    def _hold(self, path: str, **options: Any) -> None:
        holder = {"host": socket.gethostname(), "pid": os.getpid(), "renewed": time.time()}
        self._write(path, json.dumps(holder).encode(), **options)

    def _write(self, path: str, content: bytes, **options: Any) -> None:
        if self._is_folder:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._fs.pipe_file(path, content, **options)

    def _path(self, name: str) -> str:
        return f"{self._base.rstrip('/')}/{name}"

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Whatever the library of a file system raises, told in one line."""
        try:
            yield
        except (LabError, FileExistsError):
            raise
        except Exception as error:
            expected = "expected a folder, or an address such as s3://bucket/prefix, that this machine may read and write"
            raise LabError(f"records cannot be kept at {self.url}: {in_a_line(error)}; {expected}") from None


@contextmanager
def shared(url: str, run_id: str, records: Iterable[Path]) -> Iterator[None]:
    """Hold a run in the archive at an address; these records of it are then whole in both places, where they are whole in one. Without an
    address nothing is done."""
    if not url:
        yield
        return
    archive = Archive(url)
    archive.check()
    with archive.locked(run_id):
        there, names = archive.finished(run_id), {record.relative_to(root() / RUNS).as_posix() for record in records}
        archive.pull(sorted(there & names))
        for record in (root() / RUNS / name for name in sorted(names - there)):
            if is_complete(record):
                archive.push(record)
        yield
