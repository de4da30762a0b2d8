"""A store as text: `episodic.jsonl`, one trace a line, and `store_meta.json` beside it; for reading elsewhere, and back.

A line: {schema: "episodic.v2", id, key, value, ts, salience}; `key` and what else the payload holds are as the store's codec says, `ts` is
the order of telling. Tombstones, decisions and what could be undone stay behind.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

from hippo_core.errors import LabError, unknown
from hippo_core.files import parse_json, read_sealed, write_sealed, write_text
from hippo_core.store import rows
from hippo_core.store.codec import Codec
from hippo_core.store.identity import SCHEMA_VERSION, Identity, as_values, check_same, from_values
from hippo_core.store.trace import Trace
from hippo_core.store.trace_store import TraceStore

Source = Literal["replay", "teach", "stub"]
SOURCES: tuple[Source, ...] = get_args(Source)
LINES, META = "episodic.jsonl", "store_meta.json"
SCHEMA, META_SCHEMA = "episodic.v2", "episodic.store_meta.v1"
EARLIER = {"schema", "schema_version", "session_id", "source", "replay_samples", "created_at", "traces", "sha256", "identity"}
# fields that go into `value` as they are
PLAIN = ("world", "source", "text", "teller", "confidence", "pinned", "provenance", "context_key", "uses", "evidence")


def export_store(store: TraceStore, folder: Path, source: Source, replay_samples: int, created_at: str, dense: bool = False) -> None:
    """Write both files, each whole or not at all, the meta file last: it holds the checksum of the lines.

    `source` is replay where `replay_samples` is above 0. `created_at`: ISO 8601, given by the caller so that equal stores give equal files.
    """
    check_meta(source, replay_samples, created_at)
    traces = store.traces()
    text = "".join(json.dumps(to_line(trace, store.file.codec, dense), ensure_ascii=False, allow_nan=False) + "\n" for trace in traces)
    write_text(folder / LINES, text)
    meta = {"schema": META_SCHEMA, "schema_version": SCHEMA_VERSION, "session_id": store.meta["session_id"], "source": source}
    meta |= {"replay_samples": replay_samples, "created_at": created_at, "traces": len(traces)}
    write_sealed(folder / META, {**meta, "sha256": _sha256(text), "identity": as_values(store.identity)})


def check_meta(source: Source, replay_samples: int, created_at: str) -> None:
    """LabError where what is said of a store cannot be true."""
    if source not in SOURCES:
        raise unknown("source of a store", source, SOURCES)
    if replay_samples < 0 or (source == "replay") != (replay_samples > 0):
        raise LabError(f"source is 'replay' where there are replay samples and only there, got {source!r} with {replay_samples} samples")
    try:
        datetime.fromisoformat(created_at)
    except ValueError:
        raise LabError(f"created_at is an ISO 8601 time such as 2030-01-31T12:00:00+00:00, got {created_at!r}") from None


def import_store(exported: Path, folder: Path | str, identity: Identity, session_id: str | None = None) -> TraceStore:
    """A new store of exported files, open for writing, with the same traces under the same ids; by default of the same session.
    `identity` is that of the memory that wrote them.

    LabError, before anything is written, where a file is missing, altered, or holds no such traces.
    """
    text, meta = _read(exported / LINES), _parsed(_read(exported / META), str(exported / META))
    if meta.get("schema") != META_SCHEMA or meta.get("sha256") != _sha256(text):
        raise LabError(f"{exported / META} is not of the {LINES} beside it; export the store again")
    if meta.keys() != EARLIER:  # what an earlier lab exported has no seal, and is read as it is
        read_sealed(exported / META, "export the store again")
    check_same(from_values(meta["identity"], str(exported / META)), identity, str(exported / META))
    lines = text.split("\n")[:-1]  # by line feeds alone: other separators of lines may stand within texts
    traces = [_of_text(line, identity.codec, f"{exported / LINES}, line {number}") for number, line in enumerate(lines, 1)]
    return TraceStore.create(folder, session_id or str(meta["session_id"]), identity, traces)


def to_line(trace: Trace, codec: Codec, dense: bool = False) -> dict[str, Any]:
    """A trace as a line of `episodic.jsonl`."""
    payload = codec.to_json(trace.payload, dense)
    value = {
        "trace_id": trace.id,
        **{name: getattr(trace, name) for name in PLAIN},
        "payload": {name: values for name, values in payload.items() if name != "key"},
        "salience_tags": ["pin"] if trace.pinned else [],
    }
    identified = {"schema": SCHEMA, "id": trace.id, "key": payload.get("key")}
    return {**identified, "value": value, "ts": trace.time, "salience": trace.salience}


def of_line(line: Mapping[str, Any], codec: Codec) -> Trace:
    """The trace of a line."""
    value = line["value"]
    key = {} if line["key"] is None else {"key": line["key"]}
    return Trace(
        **{name: value[name] for name in PLAIN},
        payload=codec.from_json({**value["payload"], **key}),
        salience=line["salience"],
        time=line["ts"],
        id=line["id"],
    )


def _of_text(text: str, codec: Codec, where: str) -> Trace:
    line = _parsed(text, where)
    if line.get("schema") != SCHEMA:
        raise LabError(f"{where}: expected schema {SCHEMA!r}, got {line.get('schema')!r}; export the store with this lab")
    try:
        trace = of_line(line, codec)
        rows.check(trace, codec)
        numbers = (trace.id, trace.time, trace.uses, trace.evidence)
        if any(type(number) is not int or abs(number) >= rows.WIDEST for number in numbers) or type(trace.pinned) is not bool:
            raise ValueError("expected whole numbers as id, ts, uses and evidence, and pinned true or false")
        return trace
    except (KeyError, TypeError, ValueError, AttributeError, LabError) as error:
        raise LabError(f"{where} holds no trace ({type(error).__name__}: {error}); export the store again") from None


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise LabError(f"no such file: {path}; an exported store has {LINES} and {META}") from None
    except UnicodeDecodeError:
        raise LabError(f"{path} is not UTF-8; export the store again") from None


def _parsed(text: str, where: str) -> dict[str, Any]:
    try:
        return parse_json(text, where)
    except LabError as error:
        raise LabError(f"{error}; export the store again") from None


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
