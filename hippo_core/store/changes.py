"""Changes of traces in batches that can be undone.

A batch is one call of the store's upkeep, or a `maintenance` block. `rollback` undoes the last batches exactly; what was told in between
(appended, told again) stays. A trace that goes becomes a tombstone, until `purge` removes what cannot come back.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

import numpy as np

from hippo_core.files import LabError
from hippo_core.retrieval.sparse_key import SparseKey
from hippo_core.store import rows
from hippo_core.store.file import StoreFile
from hippo_core.store.trace import Trace

Field = Literal["salience", "uses", "evidence", "gone", "key"]


class Changes(StoreFile):
    """A store's file whose traces can be changed, and changed back."""

    _batch: int | None = None

    @contextmanager
    def maintenance(self, kind: str) -> Iterator[None]:
        """One batch, one transaction, of all that is done within; `kind` says in `history` what it was. Blocks may be nested."""
        with self.together():
            if self._batch is not None:
                yield
                return
            [[self._batch]] = self._rows("INSERT INTO batches (kind) VALUES (?) RETURNING id", (kind,))
            try:
                yield
            finally:
                self._batch = None

    def history(self) -> list[str]:
        """The kinds of the batches that can be undone, oldest first."""
        return [kind for (kind,) in self._rows("SELECT kind FROM batches ORDER BY id")]

    def rollback(self, batches: int = 1) -> None:
        """Undo the last `batches` batches: every trace is as it was, but for what was told since."""
        found = [batch for (batch,) in self._rows("SELECT id FROM batches ORDER BY id DESC")]
        if not 1 <= batches <= len(found):
            raise LabError(f"expected from 1 to {len(found)} batches to undo, as many as there are, got {batches}")
        if self._batch is not None:
            raise LabError("a maintenance block is under way: end it before its batch can be undone")
        with self.together():
            for batch in found[:batches]:
                self._undo(batch)

    def purge(self) -> int:
        """Forget how to undo, and remove for good what is gone: its words are in the file no more. How many tombstones went."""
        if self._connection.in_transaction:
            raise LabError("a block is under way: end it before the store is purged")
        with self.together():
            removed = self._rows("DELETE FROM traces WHERE gone RETURNING id")
            self._rows("DELETE FROM undo")
            self._rows("DELETE FROM batches")
        self._rows("VACUUM")
        return len(removed)

    def _undo(self, batch: int) -> None:
        for trace, field, value in self._rows("SELECT trace, field, value FROM undo WHERE batch = ? ORDER BY id DESC", (batch,)):
            if field == "key":
                self._write_keys({trace: key_of(value, self.identity.dims)})
                continue
            before = "?" if field == "salience" else f"{field} - ?"
            self._rows(f"UPDATE traces SET {field} = {before} WHERE id = ?", (value, trace))
        self._rows("DELETE FROM undo WHERE batch = ?", (batch,))
        self._rows("DELETE FROM batches WHERE id = ?", (batch,))

    def _ids(self, where: str, values: tuple[str | int, ...], order: str = "id") -> list[int]:
        return [trace for (trace,) in self._rows(f"SELECT id FROM traces WHERE NOT gone AND {where} ORDER BY {order}", values)]

    def _living(self, ids: Sequence[int]) -> list[int]:
        """Each of these ids once, in order; LabError where one is not there, or is gone."""
        found = self._ids("id IN (SELECT value FROM json_each(?))", (json.dumps([int(one) for one in ids]),))
        if missing := sorted(set(ids) - set(found)):
            raise LabError(f"{self.path} has no trace {missing[0]} ({len(missing)} such ids); give ids that `traces` returns")
        return found

    def _saliences(self, ids: Sequence[int] | None) -> dict[int, float]:
        """Of these traces, or of all that are there."""
        chosen = ("", ()) if ids is None else (" AND id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),))
        return dict(self._rows(f"SELECT id, salience FROM traces WHERE NOT gone{chosen[0]} ORDER BY id", chosen[1]))

    def _all_of(self, ids: Sequence[int]) -> list[Trace]:
        """These traces, gone or not, by id."""
        found = self._rows(f"{rows.SELECT} WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id", (json.dumps(list(ids)),))
        return [rows.row_trace(row, self.identity) for row in found]

    def _write_keys(self, keys: Mapping[int, SparseKey]) -> None:
        """Other keys in the places of those that are there."""
        self._many(rows.REKEY, [rows.key_row(replace(trace, key=keys[trace.id])) for trace in self._all_of(list(keys))])

    def _rise(self, field: Field, by: Mapping[int, int], kind: str) -> None:
        self._living(list(by))
        with self.maintenance(kind):
            self._many(f"UPDATE traces SET {field} = {field} + ? WHERE id = ?", ((count, trace) for trace, count in by.items()))
            self._remember(field, by)

    def _set_salience(self, after: Mapping[int, float], before: Mapping[int, float], kind: str) -> None:
        with self.maintenance(kind):
            self._many("UPDATE traces SET salience = ? WHERE id = ?", ((value, trace) for trace, value in after.items()))
            self._remember("salience", before)

    def _remember(self, field: Field, values: Mapping[int, float | str]) -> None:
        kept = ((self._batch, trace, field, value) for trace, value in values.items())
        self._many("INSERT INTO undo (batch, trace, field, value) VALUES (?, ?, ?, ?)", kept)


def told_key(key: SparseKey) -> str:
    """A key as text, for `undo`."""
    return json.dumps([key.indices.tolist(), key.values.tolist()])


def key_of(told: str, dims: int) -> SparseKey:
    """The key that a text was made of."""
    indices, values = json.loads(told)
    return SparseKey(np.array(indices, dtype=np.int32), np.array(values, dtype=np.int8), dims)
