"""Changes of traces in batches that can be undone.

A batch is one call of the store's upkeep, or a `maintenance` block. `rollback` undoes the last batches exactly; what was told in between
(appended, told again) stays. A trace that goes becomes a tombstone, until `purge` removes what cannot come back.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

from hippo_core.errors import LabError
from hippo_core.store import rows
from hippo_core.store.file import StoreFile
from hippo_core.store.trace import Trace

Field = Literal["salience", "uses", "evidence", "gone", "payload"]


class Journal:
    """The changes of a store's file: made, remembered, undone."""

    def __init__(self, file: StoreFile) -> None:
        self.file = file
        self.batch: int | None = None

    @contextmanager
    def maintenance(self, kind: str) -> Iterator[None]:
        """One batch, one transaction, of all that is done within; `kind` says in `history` what it was. Blocks may be nested."""
        with self.file.together():
            if self.batch is not None:
                yield
                return
            [[self.batch]] = self.file.rows("INSERT INTO batches (kind) VALUES (?) RETURNING id", (kind,))
            try:
                yield
            finally:
                self.batch = None

    def history(self) -> list[str]:
        """The kinds of the batches that can be undone, oldest first."""
        return [kind for (kind,) in self.file.rows("SELECT kind FROM batches ORDER BY id")]

    def rollback(self, batches: int = 1) -> None:
        """Undo the last `batches` batches: every trace is as it was, but for what was told since."""
        batch_ids = [batch for (batch,) in self.file.rows("SELECT id FROM batches ORDER BY id DESC")]
        if not 1 <= batches <= len(batch_ids):
            raise LabError(f"expected from 1 to {len(batch_ids)} batches to undo, as many as there are, got {batches}")
        if self.batch is not None:
            raise LabError("a maintenance block is under way: end it before its batch can be undone")
        with self.file.together():
            for batch in batch_ids[:batches]:
                self._undo(batch)

    def purge(self) -> int:
        """Forget how to undo, and remove for good what is gone: its words are in no file any more. How many tombstones went. LabError
        within a block."""
        self.file.check_idle()
        with self.file.together():
            self.file.owe()
            removed = self.file.rows("DELETE FROM traces WHERE gone RETURNING id")
            self.file.rows("DELETE FROM undo")
            self.file.rows("DELETE FROM batches")
        self.file.compact()
        return len(removed)

    def _undo(self, batch: int) -> None:
        for trace, field, value in self.file.rows("SELECT trace, field, value FROM undo WHERE batch = ? ORDER BY id DESC", (batch,)):
            if field == "payload":
                self.write_payloads({trace: self.file.codec.decode(value)})
                continue
            before = "?" if field == "salience" else f"{field} - ?"
            self.file.rows(f"UPDATE traces SET {field} = {before} WHERE id = ?", (value, trace))
        self.file.rows("DELETE FROM undo WHERE batch = ?", (batch,))
        self.file.rows("DELETE FROM batches WHERE id = ?", (batch,))

    def ids(self, where: str, values: tuple[str | int, ...], order: str = "id") -> list[int]:
        """The ids of traces that are there, of those that `where` holds for."""
        return [trace for (trace,) in self.file.rows(f"SELECT id FROM traces WHERE NOT gone AND {where} ORDER BY {order}", values)]

    def living(self, ids: Sequence[int]) -> list[int]:
        """Each of these ids once, in order; LabError where one is not there, or is gone."""
        return self._each(ids, self.ids("id IN (SELECT value FROM json_each(?))", (json.dumps([int(number) for number in ids]),)))

    def known(self, ids: Sequence[int]) -> list[int]:
        """Each of these ids once, in order, there, gone, or purged with what was decided left; LabError where one is none of these."""
        among = "IN (SELECT value FROM json_each(?1))"
        sql = f"SELECT id FROM traces WHERE id {among} UNION SELECT trace FROM decisions WHERE trace {among} ORDER BY 1"
        return self._each(ids, [trace for (trace,) in self.file.rows(sql, (json.dumps([int(number) for number in ids]),))])

    def _each(self, ids: Sequence[int], known: list[int]) -> list[int]:
        if missing := sorted(set(ids) - set(known)):
            raise LabError(f"{self.file.path} has no trace {missing[0]} ({len(missing)} such ids); give ids that `traces` returns")
        return known

    def saliences(self, ids: Sequence[int] | None) -> dict[int, float]:
        """Of these traces, or of all that are there."""
        chosen = ("", ()) if ids is None else (" AND id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),))
        return dict(self.file.rows(f"SELECT id, salience FROM traces WHERE NOT gone{chosen[0]} ORDER BY id", chosen[1]))

    def all_of(self, ids: Sequence[int]) -> list[Trace]:
        """These traces, gone or not, by id."""
        table_rows = self.file.rows(f"{rows.SELECT} WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id", (json.dumps(list(ids)),))
        return [rows.row_trace(row, self.file.codec) for row in table_rows]

    def write_payloads(self, payloads: Mapping[int, Any]) -> None:
        """Give traces other payloads, which have been checked; nothing is remembered."""
        changed = [replace(trace, payload=payloads[trace.id]) for trace in self.all_of(list(payloads))]
        self.file.many(rows.REPAYLOAD, [rows.payload_row(trace, self.file.codec) for trace in changed])

    def rise(self, field: Field, by: Mapping[int, int], kind: str) -> None:
        """Let a count of each of these traces rise."""
        self.living(list(by))
        with self.maintenance(kind):
            self.file.many(f"UPDATE traces SET {field} = {field} + ? WHERE id = ?", ((count, trace) for trace, count in by.items()))
            self._remember(field, by)

    def set_salience(self, after: Mapping[int, float], before: Mapping[int, float], kind: str) -> None:
        """Give traces another salience."""
        with self.maintenance(kind):
            self.file.many("UPDATE traces SET salience = ? WHERE id = ?", ((value, trace) for trace, value in after.items()))
            self._remember("salience", before)

    def replace_payloads(self, payloads: Mapping[int, Any]) -> None:
        """Give traces other payloads; LabError, before anything changes, for one that is not of the store's kind."""
        before = self.all_of(self.living(list(payloads)))
        for trace in before:
            rows.check(replace(trace, payload=payloads[trace.id]), self.file.codec)
        with self.maintenance("payloads"):
            self._remember("payload", {trace.id: self.file.codec.encode(trace.payload) for trace in before})
            self.write_payloads(payloads)

    def _remember(self, field: Field, values: Mapping[int, float | bytes]) -> None:
        undo_rows = ((self.batch, trace, field, value) for trace, value in values.items())
        self.file.many("INSERT INTO undo (batch, trace, field, value) VALUES (?, ?, ?, ?)", undo_rows)
