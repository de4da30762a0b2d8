"""Traces and decisions as rows of tables, checked on the way in and on the way out."""

import json
import math
import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, get_args

from hippo_core.errors import LabError
from hippo_core.store.codec import Codec
from hippo_core.store.trace import Action, Decision, Statement, Trace

WIDEST = 2**63  # SQLite's integers have 64 bits
CONTENT_COLUMNS = ("world", "source", "text", "teller", "confidence", "payload", "pinned", "provenance", "context_key", "time")
COLUMNS = ("id", *CONTENT_COLUMNS, "checksum", "salience", "uses", "evidence")
INSERT = f"INSERT INTO traces ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
SELECT = f"SELECT {', '.join(COLUMNS)} FROM traces"
REPAYLOAD = "UPDATE traces SET payload = ?, checksum = ? WHERE id = ?"
ADD_EVIDENCE = (
    "UPDATE traces SET evidence = evidence + 1, payload = ?, checksum = ? WHERE id = ? AND checksum = ? AND NOT gone RETURNING id"
)
DECISION = ("source", "world", "text", "time", "S", "contributions", "raw", "action", "trace", "told")
LOG = f"INSERT INTO decisions ({', '.join(DECISION)}) VALUES ({', '.join('?' * len(DECISION))})"
WORDS = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
READ_LOG = f"SELECT {', '.join(DECISION)} FROM decisions"


def check(trace: Trace, codec: Codec) -> None:
    """LabError where a trace cannot be stored: its payload is not of the store's kind, a number is none or has no room."""
    name = f"trace of {trace.source!r}"
    try:
        codec.check(trace.payload)
    except LabError as error:
        raise LabError(f"{name}: {error}") from None
    if not (math.isfinite(trace.salience) and trace.salience >= 0):
        raise LabError(f"{name}: salience is a number of 0 or more, got {trace.salience}; a gate makes one of S")
    if trace.uses < 0 or trace.evidence < 1 or max(trace.uses, trace.evidence, abs(trace.time)) >= WIDEST:
        raise LabError(
            f"{name}: uses {trace.uses} (0 or more), evidence {trace.evidence} (1 or more), time {trace.time}: one is out of range"
        )
    if trace.confidence is not None and not 0 <= trace.confidence <= 1:
        raise LabError(f"{name}: confidence is a number from 0 to 1, or nothing, got {trace.confidence}")
    for text in (trace.world, trace.source, trace.text, trace.teller, trace.provenance, trace.context_key):
        check_text(name, text)


def check_text(name: str, text: str) -> None:
    """LabError for text that is no Unicode, as half of a surrogate pair."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise LabError(f"{name}: {text!r} is not valid Unicode; read the source with its own encoding") from None


def trace_row(trace: Trace, identifier: int, codec: Codec) -> tuple[Any, ...]:
    """The values of COLUMNS, under this id."""
    columns = _content(trace, codec.encode(trace.payload))
    return (identifier, *columns, checksum(identifier, columns), float(trace.salience), trace.uses, trace.evidence)


def payload_row(trace: Trace, codec: Codec) -> tuple[bytes, int, int]:
    """The values of REPAYLOAD."""
    payload = codec.encode(trace.payload)
    return payload, checksum(trace.id, _content(trace, payload)), trace.id


def _content(trace: Trace, payload: bytes) -> tuple[Any, ...]:
    """The values of CONTENT_COLUMNS."""
    confidence = None if trace.confidence is None else float(trace.confidence)
    by = (trace.teller, confidence, payload, int(trace.pinned), trace.provenance, trace.context_key, trace.time)
    return (trace.world, trace.source, trace.text, *by)


def row_trace(row: tuple[Any, ...], codec: Codec) -> Trace:
    """A trace as it was written; ValueError where the row was changed by something else than the store."""
    values = dict(zip(COLUMNS, row, strict=True))
    if checksum(values["id"], row[1 : 1 + len(CONTENT_COLUMNS)]) != values.pop("checksum"):
        raise ValueError(f"trace {values['id']} does not match its checksum")
    values |= {"pinned": bool(values["pinned"]), "payload": codec.decode(values["payload"])}
    return Trace(**values)


def checksum(identifier: int, columns: tuple[Any, ...]) -> int:
    """CRC-32 of what was told, and of its payload."""
    return zlib.crc32(repr((identifier, columns)).encode())


def check_decision(decision: Decision) -> None:
    """LabError where S or a term is not finite, or the time has no room."""
    if abs(decision.statement.time) >= WIDEST:
        raise LabError(f"decision about {decision.statement.source!r}: time {decision.statement.time} is out of range")
    if not all(map(math.isfinite, (decision.S, *decision.contributions.values(), *decision.raw.values()))):
        numbers = (("S", decision.S), *decision.contributions.items(), *decision.raw.items())
        name, value = next((name, value) for name, value in numbers if not math.isfinite(value))
        raise LabError(f"decision about {decision.statement.source!r}: {name} is {value}, expected a finite number; mend what measures it")
    for text in (decision.statement.source, decision.statement.world, decision.statement.text):
        check_text(f"decision about {decision.statement.source!r}", text)


def decision_row(decision: Decision) -> tuple[Any, ...]:
    """The values of DECISION."""
    statement, terms = decision.statement, (_json(decision.contributions), _json(decision.raw))
    row = (statement.source, statement.world, statement.text, statement.time, float(decision.S))
    return (*row, *terms, decision.action, decision.trace_id, WORDS.encode(dict(decision.told)))


def row_decision(row: tuple[Any, ...]) -> Decision:
    """A decision as it was logged; ValueError where the row was changed by something else than the store."""
    source, world, text, time, score, contributions, raw, action, trace, told = row
    statement = Statement(source, world, text, time)
    try:
        terms = [json.loads(encoded) for encoded in (contributions, raw, told)]
    except RecursionError:
        raise ValueError(f"the decision about {source!r} is nested too deep") from None
    if action not in get_args(Action) or not all(isinstance(term, dict) for term in terms):
        raise ValueError(f"the decision about {source!r} is none")
    return Decision(statement, score, terms[0], terms[1], action, trace, terms[2])


def _json(terms: Mapping[str, float]) -> str:
    """Finite numbers by name as `json.dumps` writes them; a gate writes as many of these as anything, and an encoder is made for each."""
    return "{" + ", ".join([f"{_quoted(name)}: {float(value)!r}" for name, value in terms.items()]) + "}"


_quoted = lru_cache(1 << 10)(json.dumps)
