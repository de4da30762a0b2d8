"""A store's seal: a sum over the SHA-256 of every row of its tables, kept in the file and brought up to date with every change.

The sum goes with the change, in the same transaction: a temporary trigger of the writer's connection takes the row as it was out of the
sum, and puts the row as it is in. So the seal holds after a kill too, and costs no second look at the rows that stay.
"""

import hashlib
import sqlite3
from typing import Any

FILE_VERSION = 6  # of the file, the first that has a seal
SEAL = "seal"  # a row of `meta`: the sum in hex, and the highest id that a trace was ever given; no note of the user's
TABLES = ("meta", "traces", "decisions", "batches", "undo")
WIDTH = 2**256


def watch(connection: sqlite3.Connection) -> None:
    """Bring the seal up to date with whatever this connection changes from now on."""
    connection.create_function("resealed", -1, _resealed, deterministic=True)
    for table in TABLES:
        columns = [name for _, name, *_ in connection.execute(f"PRAGMA main.table_info({table})")]
        old, new = (", ".join(f"{row}.{name}" for name in columns) for row in ("OLD", "NEW"))
        changes = {"INSERT": [("NEW", 1, new)], "DELETE": [("OLD", -1, old)], "UPDATE": [("OLD", -1, old), ("NEW", 1, new)]}
        for change, rows in changes.items():
            steps = [f"UPDATE meta SET value = resealed(value, {sign}, '{table}', {row}) WHERE name = '{SEAL}';" for _, sign, row in rows]
            # the seal's own row is no part of the sum
            own = " OR ".join(f"{row}.name = '{SEAL}'" for row, *_ in rows)
            when = f"WHEN NOT ({own})" if table == "meta" else ""
            connection.execute(
                f"CREATE TEMP TRIGGER sealed_{table}_{change} AFTER {change} ON main.{table} {when} BEGIN {' '.join(steps)} END"
            )


def seal_now(connection: sqlite3.Connection) -> None:
    """Seal a file as it stands."""
    connection.execute(f"PRAGMA user_version = {FILE_VERSION}")
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (SEAL, _counted(connection)))


def fault(connection: sqlite3.Connection) -> str:
    """What does not fit the seal, as a file stands; "" where all does."""
    values = dict(connection.execute("SELECT name, value FROM meta WHERE name = ?", (SEAL,)))
    if SEAL not in values:
        return "its seal is missing"
    return "" if values[SEAL] == _counted(connection) else "its rows do not fit its seal"


def _counted(connection: sqlite3.Connection) -> str:
    [[last]] = connection.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'traces'")
    total = sum(_number("schema", row) for row in connection.execute("SELECT type, name, tbl_name, sql FROM main.sqlite_schema"))
    for table in TABLES:
        for row in connection.execute(f"SELECT * FROM {table}"):
            if (table, row[0]) != ("meta", SEAL):
                total += _number(table, row)
    return _written(total, last)


def _resealed(seal: str, sign: int, table: str, *row: Any) -> str:
    total, _, last = seal.partition(" ")
    given = row[0] if (table, sign) == ("traces", 1) else 0
    return _written(int(total, 16) + sign * _number(table, row), max(int(last), given))


def _written(total: int, last: int) -> str:
    return f"{total % WIDTH:064x} {last}"


def _number(table: str, row: tuple[Any, ...]) -> int:
    """The SHA-256 of a row; bytes go in as they are, after their lengths."""
    plain = repr((table, [_plain(value) for value in row]))
    hashed = hashlib.sha256(plain.encode("utf-8", "surrogatepass"))
    for value in row:
        if isinstance(value, bytes):
            hashed.update(value)
    return int.from_bytes(hashed.digest())


def _plain(value: Any) -> Any:
    """A number as a file gives it back, which knows no -0.0; of bytes their length."""
    if isinstance(value, float):
        return value + 0.0
    return len(value) if isinstance(value, bytes) else value
