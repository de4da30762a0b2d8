"""Stores that cannot be used: missing, foreign, of another model, damaged. Each is one line that says why and what to do."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from random import Random

import pytest

from hippo_core.errors import LabError
from hippo_core.store import TraceStore, store_path
from tests.store.made import IDENTITY, trace


@pytest.fixture
def taught(tmp_path):
    """The file of a closed store with 200 traces."""
    with TraceStore.create(tmp_path, "s1", IDENTITY) as store:
        store.append([trace(f"f{number}", text=f"fact number {number}") for number in range(200)])
    return store.path


def refused(folder, read_only=True, expect=IDENTITY):
    """What opening a store says, and that it says it in one line."""
    with pytest.raises(LabError) as error:
        TraceStore.open(folder, "s1", expect, read_only)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_store_that_is_missing_names_those_that_are_there(tmp_path):
    assert "sessions there: none" in refused(tmp_path)
    for name in ("s3", "s2"):
        TraceStore.create(tmp_path, name, IDENTITY).close()
    assert "sessions there: s2, s3; teach first" in refused(tmp_path)


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"model": "other"}, "model expected 'other', got 'made'"),
        ({"weights": "1" * 64}, "weights expected"),
        ({"key": "learned"}, "key expected 'learned', got 'by hand'"),
        ({"dims": 64}, "dims expected 64, got 32"),
        ({"winners": 3}, "winners expected 3, got 4"),
        ({"model": "other", "dims": 64}, "dims expected 64, got 32; teach anew"),
    ],
)
def test_a_store_of_another_model_or_key_is_not_opened(taught, tmp_path, read_only, other, said):
    assert said in refused(tmp_path, read_only, changed(**other))
    TraceStore.open(tmp_path, "s1", IDENTITY).close()  # the failed one has let go of it


def changed(**other):
    """The identity with other parts, its own or its codec's."""
    own = {name: value for name, value in other.items() if name in ("model", "weights")}
    codec = {name: value for name, value in other.items() if name not in own}
    return replace(IDENTITY, **own, codec=replace(IDENTITY.codec, **codec))


def test_a_foreign_database_is_not_a_store(tmp_path):
    path = store_path(tmp_path, "s1", "hei_nw")
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE traces (id)")
    before = path.read_bytes()
    for read_only in (True, False):
        assert "another program" in refused(tmp_path, read_only)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"x", b"no database at all\n" * 500, b"SQLite format 3\0"])
def test_a_file_of_something_else_is_not_a_store(tmp_path, content):
    path = store_path(tmp_path, "s1", "hei_nw")
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    for read_only in (True, False):
        assert str(path) in refused(tmp_path, read_only)
    assert path.read_bytes() == content


def test_a_store_of_another_version_is_not_opened(taught, tmp_path):
    with closing(sqlite3.connect(taught)) as file:
        file.execute("PRAGMA user_version = 1")
    assert "schema version 1, this lab reads version 5; teach anew" in refused(tmp_path)


def test_a_store_without_its_tables_is_damaged(taught, tmp_path):
    with closing(sqlite3.connect(taught)) as file:
        file.execute("DROP TABLE meta")
    assert "damaged" in refused(tmp_path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut_is_damaged(taught, tmp_path, share):
    content = taught.read_bytes()
    taught.write_bytes(content[: int(share * len(content))])
    assert "damaged" in refused(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE traces SET text = 'another fact' WHERE id = 7",
        "UPDATE traces SET pinned = 1 - pinned WHERE id = 7",
        "UPDATE traces SET payload = x'010203' WHERE id = 7",
        "UPDATE traces SET confidence = 0.5 WHERE id = 7",
        "UPDATE meta SET value = '{' WHERE name = 'identity'",
        "UPDATE meta SET value = '{\"schema_version\": 5}' WHERE name = 'identity'",
        "DELETE FROM meta WHERE name = 'identity'",
    ],
)
def test_what_was_altered_behind_the_stores_back_is_noticed(taught, tmp_path, change):
    with closing(sqlite3.connect(taught)) as file:
        file.execute(change)
        file.commit()
    with pytest.raises(LabError, match=r"damaged|schema version None"):
        read(tmp_path)


def test_a_byte_that_flips_is_noticed_or_changes_nothing_that_was_told(taught, tmp_path):
    content, draw, detected = taught.read_bytes(), Random(3), 0
    contents = [content_of(stored) for stored in read(tmp_path)]
    for _ in range(150):
        offset = draw.randrange(len(content))
        flipped = bytearray(content)
        flipped[offset] ^= 1 << draw.randrange(8)
        taught.write_bytes(flipped)
        try:
            assert [content_of(stored) for stored in read(tmp_path)] == contents
        except LabError:
            detected += 1
    assert detected > 50


def read(folder):
    """All traces of the store."""
    with TraceStore.open(folder, "s1", IDENTITY, read_only=True) as store:
        return store.traces()


def content_of(stored):
    """What is fixed when a trace is written; salience and counts change later and have no checksum."""
    return replace(stored, salience=0.0, uses=0, evidence=1)
