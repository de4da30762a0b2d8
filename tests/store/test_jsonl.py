"""A store as text and back: nothing is lost, and what was altered is not taken for a store."""

import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hippo_core.errors import LabError
from hippo_core.files import read_sealed, write_json, write_sealed
from hippo_core.store import TraceStore, export_store, import_store
from tests.store.made import IDENTITY, drawn, key_of, trace

TIME = "2030-01-31T12:00:00+00:00"


@settings(max_examples=25, deadline=None)
@given(st.lists(drawn, max_size=6), st.booleans())
def test_there_and_back_is_the_same(tmp_path_factory, traces, dense):
    folder = tmp_path_factory.mktemp("lab")
    with TraceStore.create(folder, "s1", IDENTITY) as store:
        store.append([trace(), *traces])
        store.delete([1])  # so that ids do not begin with 1
        export_store(store, folder / "a", "teach", 0, TIME, dense)
        with import_store(folder / "a", folder / "back", IDENTITY) as back:
            assert back.traces() == store.traces()
            assert (back.identity, back.meta["session_id"]) == (IDENTITY, "s1")
            export_store(back, folder / "b", "teach", 0, TIME, dense)
            assert back.append([trace()]) == [max((stored.id for stored in store.traces()), default=0) + 1]
    for name in ("episodic.jsonl", "store_meta.json"):
        assert (folder / "a" / name).read_bytes() == (folder / "b" / name).read_bytes()


def test_a_line_and_the_meta_file_say_what_the_schema_asks_for(store, tmp_path):
    marked = trace(pinned=True, teller="Marta", confidence=0.6, time=4, salience=0.25, key=key_of({2: 5, 9: -3}), provenance="chat")
    store.append([marked])
    export_store(store, tmp_path, "replay", 3, TIME)
    [line] = (tmp_path / "episodic.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "schema": "episodic.v2",
        "id": 1,
        "key": {"dims": 32, "indices": [2, 9], "values": [5, -3]},
        "value": {
            "trace_id": 1,
            "world": "w1",
            "source": "f1",
            "text": "words of f1",
            "teller": "Marta",
            "confidence": 0.6,
            "pinned": True,
            "provenance": "chat",
            "context_key": "",
            "uses": 0,
            "evidence": 1,
            "payload": {"token_ids": [1, 2, 3]},
            "salience_tags": ["pin"],
        },
        "ts": 4,
        "salience": 0.25,
    }
    meta = read_sealed(tmp_path / "store_meta.json", "")
    assert meta.pop("sha256") == hashlib.sha256(f"{line}\n".encode()).hexdigest()
    assert meta == {
        "schema": "episodic.store_meta.v1",
        "schema_version": 5,
        "session_id": "s1",
        "source": "replay",
        "replay_samples": 3,
        "created_at": TIME,
        "traces": 1,
        "identity": {
            **{"schema_version": 5, "model": "made", "weights": "0" * 64, "kind": "hei_nw"},
            "codec": {"key": "by hand", "dims": 32, "winners": 4, "token_limit": 8, "width": 0},
        },
    }


def test_a_dense_key_has_all_its_dimensions(store, tmp_path):
    store.append([trace(key=key_of({2: 5, 9: -3}))])
    export_store(store, tmp_path, "teach", 0, TIME, dense=True)
    key = json.loads((tmp_path / "episodic.jsonl").read_text())["key"]
    assert (len(key), {dim: value for dim, value in enumerate(key) if value}) == (32, {2: 5.0, 9: -3.0})


@pytest.mark.parametrize(("source", "samples"), [("replay", 0), ("teach", 1), ("stub", 2), ("replay", -1), ("hand", 0)])
def test_the_source_is_known_and_agrees_with_the_samples(store, tmp_path, source, samples):
    with pytest.raises(LabError, match=r"replay samples|legal: replay, stub, teach"):
        export_store(store, tmp_path / "out", source, samples, TIME)
    assert not (tmp_path / "out").exists()


def test_a_time_is_a_time(store, tmp_path):
    with pytest.raises(LabError, match="ISO 8601"):
        export_store(store, tmp_path / "out", "teach", 0, "yesterday")


@pytest.fixture
def exported(store, tmp_path):
    """The files of a store with two traces."""
    store.append([trace("f1"), trace("f2")])
    export_store(store, tmp_path / "out", "teach", 0, TIME)
    return tmp_path / "out"


@pytest.mark.parametrize("name", ["episodic.jsonl", "store_meta.json"])
def test_both_files_are_needed(exported, tmp_path, name):
    (exported / name).unlink()
    refused(exported, tmp_path, "no such file")


def test_altered_lines_are_not_taken(exported, tmp_path):
    lines = exported / "episodic.jsonl"
    lines.write_text(lines.read_text().replace("words of f2", "words of f3"))
    refused(exported, tmp_path, "not of the episodic.jsonl beside it")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda line: {**line, "schema": "relational.v1"}, "line 2: expected schema 'episodic.v2', got 'relational.v1'"),
        (lambda line: {name: value for name, value in line.items() if name != "salience"}, "line 2 holds no trace .*salience"),
        (lambda line: {**line, "key": [0.5, 1.0]}, "line 2 holds no trace .*quantise"),
        (lambda line: {**line, "key": [float("nan")] * 32}, "line 2 holds no trace .*NaN"),
        (lambda line: {**line, "key": {"dims": 64, "indices": [1], "values": [1]}}, "expected a key of 32 dimensions, got 64"),
        (lambda line: {**line, "id": 1}, "ids from 1 on, each its own"),
        (lambda line: {**line, "salience": -1}, "salience is a number of 0 or more"),
    ],
)
def test_lines_that_hold_no_trace_are_named(exported, tmp_path, change, said):
    first, second = map(json.loads, (exported / "episodic.jsonl").read_text().splitlines())
    text = "".join(json.dumps(line) + "\n" for line in (first, change(second)))
    (exported / "episodic.jsonl").write_text(text)
    meta = read_sealed(exported / "store_meta.json", "")
    write_sealed(exported / "store_meta.json", {**meta, "sha256": hashlib.sha256(text.encode()).hexdigest()})
    refused(exported, tmp_path, said)


@pytest.mark.parametrize(("version", "remedy"), [(4, "teach anew"), (6, "use the lab")])
def test_a_version_that_is_not_known_is_not_read(exported, tmp_path, version, remedy):
    meta = read_sealed(exported / "store_meta.json", "")
    write_sealed(exported / "store_meta.json", {**meta, "identity": {**meta["identity"], "schema_version": version}})
    refused(exported, tmp_path, f"schema version {version}, this lab reads version 5; {remedy}")


@pytest.mark.parametrize("change", [{"session_id": "s2"}, {"source": "stub"}, {"traces": 3}, {"created_at": "2031-01-31"}, {"seam": 1}])
def test_what_is_said_of_an_export_is_as_it_was_written(exported, tmp_path, change):
    meta = json.loads((exported / "store_meta.json").read_text())
    write_json(exported / "store_meta.json", {**meta, **change})
    refused(exported, tmp_path, "its seal does not fit; export the store again")


@pytest.mark.parametrize("content", ["[]", "5", '{"schema": 1, "schema": 2}', "[" * 100_000])
def test_a_meta_file_that_is_no_object_is_one_line(exported, tmp_path, content):
    (exported / "store_meta.json").write_text(content)
    refused(exported, tmp_path, "is damaged: expected a JSON object, each key once; export the store again")


def test_an_export_of_an_earlier_lab_is_read(exported, tmp_path):
    write_json(exported / "store_meta.json", read_sealed(exported / "store_meta.json", ""))
    with import_store(exported, tmp_path / "new", IDENTITY) as back:
        assert back.size() == 2


def refused(exported, tmp_path, said):
    """The files are not imported, and nothing is written."""
    with pytest.raises(LabError, match=said) as error:
        import_store(exported, tmp_path / "new", IDENTITY)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "new").exists()


def test_an_import_under_another_session_stands_beside_the_first(exported, tmp_path):
    with import_store(exported, tmp_path, IDENTITY, "s2") as second:
        assert second.traces() == [replace(trace("f1"), id=1), replace(trace("f2"), id=2)]
    assert second.path.parent.name == "s2"
