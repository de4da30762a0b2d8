"""A store's file, opened and looked over: what is wrong with one that cannot be opened, and what a store says of itself."""

import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from hippo_core.files import LabError
from hippo_core.store.connection import Connection
from hippo_core.store.identity import SCHEMA_VERSION, Identity, check_same, from_values
from hippo_core.store.places import existing, hold
from hippo_core.store.schema import APPLICATION

GONE = "SELECT (SELECT count(*) FROM traces WHERE gone), (SELECT count(*) FROM undo WHERE field = 'gone')"  # equal, between two commits


class StoreFile(Connection):
    """A store's file. Made by `open`."""

    @classmethod
    def open(cls, folder: Path | str, session_id: str, expect: Identity | None = None, read_only: bool = False) -> Self:
        """The store of a session. LabError, in one line, where it is missing, damaged, not a store, held by another writer, or was
        written with another model or key than `expect` (None: any)."""
        path = existing(folder, session_id)
        if not read_only and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
            raise LabError(f"no write access to {path}; open it read-only, or copy it")
        return cls._opened(path, None if read_only else hold(path.parent), expect)

    @classmethod
    def _opened(cls, path: Path, lock: int | None, expect: Identity | None) -> Self:
        """The store at `path`, checked; the lock goes with it, and is given back where it cannot be opened."""
        try:
            store = cls(path, lock)
        except BaseException:
            if lock is not None:
                os.close(lock)
            raise
        try:
            store._check_file()
            if expect is not None:
                check_same(store.identity, expect, str(path))
            if not store.read_only:
                store._rows("PRAGMA journal_mode = WAL")
                store._rows("PRAGMA synchronous = FULL")
            return store
        except BaseException:
            store._release()
            raise

    def _check_file(self) -> None:
        [[application]], [[version]] = self._rows("PRAGMA application_id"), self._rows("PRAGMA user_version")
        if application != APPLICATION:
            raise LabError(f"{self.path} is an SQLite file of another program, not a store of traces; name another folder or session")
        if version != SCHEMA_VERSION:
            raise LabError(f"{self.path} has schema version {version}, this lab reads version {SCHEMA_VERSION}; use the lab that wrote it")
        [[verdict]] = self._rows("PRAGMA quick_check(1)")
        if verdict != "ok":
            raise self._damaged(verdict)
        [[gone, undoable]] = self._rows(GONE)
        if gone != undoable:
            raise self._damaged(f"{gone} traces are gone, of which {undoable} went by the store's own doing")
        _ = self.identity

    @cached_property
    def meta(self) -> dict[str, Any]:
        """session_id, token_limit, identity, and what `note` added."""
        try:
            return {name: json.loads(value) for name, value in self._rows("SELECT name, value FROM meta ORDER BY name")}
        except ValueError as error:
            raise self._damaged(error) from None

    @cached_property
    def identity(self) -> Identity:
        """What the store was written with."""
        return from_values(self.meta.get("identity", {}), str(self.path))

    @cached_property
    def token_limit(self) -> int:
        """How many tokens a trace may have."""
        return int(self.meta["token_limit"])

    def note(self, name: str, value: Any) -> None:
        """Keep a JSON value with the store, such as a gate's calibration; it is found in `meta`. A note of the same name is replaced."""
        if name in ("identity", "session_id", "token_limit"):
            raise LabError(f"{name} of a store is fixed when it is created; note it under another name")
        try:
            text = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise LabError(f"note {name!r} is no JSON ({error}); give plain values") from None
        with self.together():
            self._rows("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, text))
        self.__dict__.pop("meta", None)
