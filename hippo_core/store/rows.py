"""Traces and decisions as rows of tables, checked on the way in and on the way out."""

import json
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from hippo_core.files import LabError
from hippo_core.retrieval.sparse_key import SparseKey
from hippo_core.store.identity import Identity
from hippo_core.store.trace import Decision, Statement, Trace

WIDEST = 2**63  # SQLite's integers have 64 bits
TOLD = ("world", "source", "text", "token_ids", "slots", "key_indices", "key_values", "pinned", "provenance", "context_key", "time")
COLUMNS = ("id", *TOLD, "checksum", "salience", "uses", "evidence")
INSERT = f"INSERT INTO traces ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
SELECT = f"SELECT {', '.join(COLUMNS)} FROM traces"
REKEY = "UPDATE traces SET key_indices = ?, key_values = ?, checksum = ? WHERE id = ?"
DECISION = ("source", "world", "text", "time", "S", "contributions", "raw", "action", "trace")
LOG = f"INSERT INTO decisions ({', '.join(DECISION)}) VALUES ({', '.join('?' * len(DECISION))})"
READ_LOG = f"SELECT {', '.join(DECISION)} FROM decisions"


def check(trace: Trace, identity: Identity, token_limit: int) -> None:
    """LabError where a trace cannot be stored: its key is of another space, it is too long, a number is none or has no room."""
    name, length = f"trace of {trace.source!r}", len(trace.token_ids)
    if trace.key.dims != identity.dims:
        raise LabError(f"{name}: expected a key of {identity.dims} dimensions, got {trace.key.dims}; encode it as the store's others")
    if len(trace.key.indices) > identity.winners:
        raise LabError(
            f"{name}: expected at most {identity.winners} winners, got {len(trace.key.indices)}; encode it as the store's others"
        )
    if not 1 <= length <= token_limit:
        raise LabError(
            f"{name}: expected 1 to {token_limit} tokens, got {length}; shorten the fact, split it, or create a store for longer"
        )
    if not all(0 <= token < 2**31 for token in trace.token_ids):
        raise LabError(f"{name}: a token id is not from 0 to {2**31 - 1}; give the ids of the model's tokenizer")
    if not (math.isfinite(trace.salience) and trace.salience >= 0):
        raise LabError(f"{name}: salience is a number of 0 or more, got {trace.salience}; `gate.salience_of` makes one of S")
    if trace.uses < 0 or trace.evidence < 1 or max(trace.uses, trace.evidence, abs(trace.time)) >= WIDEST:
        raise LabError(
            f"{name}: uses {trace.uses} (0 or more), evidence {trace.evidence} (1 or more), time {trace.time}: one is out of range"
        )
    for text in (trace.world, trace.source, trace.text, trace.provenance, trace.context_key, *trace.slots, *trace.slots.values()):
        check_text(name, text)


def check_text(name: str, text: str) -> None:
    """LabError for text that is no Unicode, as half of a surrogate pair."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise LabError(f"{name}: {text!r} is not valid Unicode; read the source with its own encoding") from None


def trace_row(trace: Trace, identifier: int) -> tuple[Any, ...]:
    """The values of COLUMNS, under this id."""
    told = (
        *(trace.world, trace.source, trace.text),
        np.asarray(trace.token_ids, dtype="<i4").tobytes(),
        json.dumps(dict(trace.slots), ensure_ascii=False),
        *(trace.key.indices.astype("<i4").tobytes(), trace.key.values.tobytes()),
        *(int(trace.pinned), trace.provenance, trace.context_key, trace.time),
    )
    return (identifier, *told, checksum(identifier, told), float(trace.salience), trace.uses, trace.evidence)


def key_row(trace: Trace) -> tuple[bytes, bytes, int, int]:
    """The values of REKEY."""
    row = dict(zip(COLUMNS, trace_row(trace, trace.id), strict=True))
    return row["key_indices"], row["key_values"], row["checksum"], trace.id


def row_trace(row: tuple[Any, ...], identity: Identity) -> Trace:
    """A trace as it was written; ValueError where the row was changed by something else than the store."""
    identifier, (*told, found, salience, uses, evidence) = row[0], row[1:]
    if checksum(identifier, tuple(told)) != found:
        raise ValueError(f"trace {identifier} does not match its checksum")
    world, source, text, tokens, slots, indices, values, pinned, provenance, context_key, time = told
    return Trace(
        *(world, source, text, tuple(np.frombuffer(tokens, "<i4").tolist())),
        key=SparseKey(np.frombuffer(indices, "<i4"), np.frombuffer(values, "i1"), identity.dims),
        slots=json.loads(slots),
        salience=salience,
        pinned=bool(pinned),
        provenance=provenance,
        context_key=context_key,
        time=time,
        uses=uses,
        evidence=evidence,
        id=identifier,
    )


def checksum(identifier: int, told: tuple[Any, ...]) -> int:
    """CRC-32 of what was told, and of its key."""
    return zlib.crc32(repr((identifier, told)).encode())


def check_decision(decision: Decision) -> None:
    """LabError where S or a term is not finite, or the time has no room."""
    if abs(decision.statement.time) >= WIDEST:
        raise LabError(f"decision about {decision.statement.source!r}: time {decision.statement.time} is out of range")
    for name, value in (("S", decision.S), *decision.contributions.items(), *decision.raw.items()):
        if not math.isfinite(value):
            raise LabError(
                f"decision about {decision.statement.source!r}: {name} is {value}, expected a finite number; mend what measures it"
            )
    for text in (decision.statement.source, decision.statement.world, decision.statement.text):
        check_text(f"decision about {decision.statement.source!r}", text)


def decision_row(decision: Decision) -> tuple[Any, ...]:
    """The values of DECISION."""
    told = decision.statement
    terms = (_json(decision.contributions), _json(decision.raw))
    return (told.source, told.world, told.text, told.time, float(decision.S), *terms, decision.action, decision.trace_id)


def row_decision(row: tuple[Any, ...]) -> Decision:
    """A decision as it was logged."""
    source, world, text, time, score, contributions, raw, action, trace = row
    return Decision(Statement(source, world, text, time), score, json.loads(contributions), json.loads(raw), action, trace)


def _json(terms: Mapping[str, float]) -> str:
    return json.dumps({name: float(value) for name, value in terms.items()}, allow_nan=False)
