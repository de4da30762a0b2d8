"""The seal of a store: whatever is changed behind the store's back is noticed, and whatever the store changes itself is not."""

import re
import shutil
import sqlite3
import warnings
from contextlib import closing
from dataclasses import replace

import pytest

from hippo_core.errors import LabError
from hippo_core.methods.base import Memory, Observation
from hippo_core.store import TraceStore
from hippo_core.store.seal import SEAL
from hippo_core.store.trace import Decision, Statement
from tests.store.made import IDENTITY, trace

NAMES = "Anna", "Ben", "Carla", "Dora"


def observation_of(number, name):
    return Observation(Statement(f"{number}", "w", f"{name} is at the station.", number), provenance=f"diary {name}")


@pytest.fixture
def taught(tmp_path):
    """The file of a closed store in which something was told, decided, changed and noted."""
    with TraceStore.create(tmp_path, "s1", IDENTITY) as store:
        ids = store.append([trace(f"{number}", text=f"{name} is at the station.") for number, name in enumerate(NAMES)])
        store.log(
            [
                Decision(observation_of(n, name).statement, 0.5, {}, {}, "insert", trace, observation_of(n, name).told)
                for n, name, trace in zip(range(4), NAMES, ids, strict=True)
            ]
        )
        store.decay(0.5)
        store.use(ids)
        store.delete(ids[-1:])
        store.note("taught", 4)
    return store.path


CHANGES = {
    "a word of a decision": "UPDATE decisions SET text = 'Anna is in the kitchen.' WHERE id = 1",
    "a number of a decision": "UPDATE decisions SET trace = 3 WHERE id = 1",
    "a provenance": "UPDATE decisions SET told = replace(told, 'Anna', 'Ben') WHERE id = 1",
    "a score": "UPDATE decisions SET S = S + 1e-9 WHERE id = 2",
    "a decision that is gone": "DELETE FROM decisions WHERE id = 2",
    "a salience": "UPDATE traces SET salience = salience + 1e-9 WHERE id = 2",
    "an evidence": "UPDATE traces SET evidence = 7 WHERE id = 2",
    "a count of uses": "UPDATE traces SET uses = 0 WHERE id = 2",
    "a note": "UPDATE meta SET value = '0' WHERE name = 'taught'",
    "a note that is gone": "DELETE FROM meta WHERE name = 'taught'",
    "a note that is new": "INSERT INTO meta VALUES ('calibration', '{}')",
    "what can be undone": "UPDATE undo SET value = 9 WHERE id = 1",
    "a batch": "UPDATE batches SET kind = 'replay' WHERE id = 1",
    "the next number": "UPDATE sqlite_sequence SET seq = 1 WHERE name = 'traces'",
    "the seal": f"UPDATE meta SET value = replace(value, 'a', 'b') WHERE name = '{SEAL}'",
    "the name of the seal": f"UPDATE meta SET name = 'seam' WHERE name = '{SEAL}'",
    "the version": "PRAGMA user_version = 5",
    "an index": "DROP INDEX traces_of_world",
    "a trigger": "CREATE TRIGGER more AFTER INSERT ON traces BEGIN DELETE FROM decisions; END",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_whatever_is_changed_behind_the_stores_back_is_noticed(taught, tmp_path, change):
    with closing(sqlite3.connect(taught)) as file:
        file.execute(change)
        file.commit()
    for read_only in (True, False):
        with pytest.raises(LabError, match=r"is damaged or no store \(.*\); bring back a copy"):
            TraceStore.open(tmp_path, "s1", IDENTITY, read_only=read_only)


def test_whatever_a_store_changes_itself_fits_its_seal(taught, tmp_path):
    with TraceStore.open(tmp_path, "s1", IDENTITY) as store:
        for change in (
            lambda: store.append([trace("4", salience=-0.0, confidence=1), trace("5")]),
            lambda: store.aggregate(1),
            lambda: store.retell(store.traces()[0], store.traces()[1].payload),
            lambda: store.update_payloads({2: store.traces()[0].payload}),
            lambda: store.raise_salience([1, 2], 0.25),
            lambda: store.rollback(2),
            lambda: store.evict(3),
            lambda: store.expire(0),
            lambda: store.note("taught", 6),
            lambda: store.log([Decision(Statement("4", "w", "Otto.", 4), -0.0, {}, {}, "refuse")]),
            lambda: store.erase([1]),
            store.purge,
            lambda: store.erase_world("w"),
            lambda: store.append([trace("6")]),
        ):
            change()
            store.file.check_seal()
        with pytest.raises(ZeroDivisionError), store.together():
            store.append([trace("7")])
            _ = 1 / 0
        store.file.check_seal()
        store.copy(tmp_path / "copy").close()
    for folder in (tmp_path, tmp_path / "copy"):
        TraceStore.open(folder, "s1", IDENTITY).close()


def test_a_seal_holds_after_a_kill(taught, tmp_path):
    with TraceStore.open(tmp_path, "s1", IDENTITY) as store:
        store.append([trace("4")])
        shutil.copytree(tmp_path / "hei_nw", tmp_path / "killed/hei_nw")
    with TraceStore.open(tmp_path / "killed", "s1", IDENTITY) as store:
        assert store.size() == 4


def as_unsealed(path, change="SELECT 1"):
    """A store as an earlier lab wrote it, which had no seal."""
    with closing(sqlite3.connect(path)) as file:
        file.execute("DELETE FROM meta WHERE name = ?", (SEAL,))
        file.execute("PRAGMA user_version = 5")
        file.execute(change)
        file.commit()


def test_a_store_of_an_earlier_lab_is_read_as_it_is_and_sealed_by_its_next_writer(taught, tmp_path):
    as_unsealed(taught)
    with TraceStore.open(tmp_path, "s1", IDENTITY, read_only=True) as store:
        before = store.traces(), store.decisions(), store.meta
    with TraceStore.open(tmp_path, "s1", IDENTITY) as store:
        assert (store.traces(), store.decisions(), store.meta) == before
        store.append([trace("4")])
    with closing(sqlite3.connect(taught)) as file:
        file.execute(CHANGES["a word of a decision"])
        file.commit()
    with pytest.raises(LabError, match="do not fit its seal"):
        TraceStore.open(tmp_path, "s1", IDENTITY)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE traces SET text = 'Anna is in the kitchen.' WHERE id = 1",
        "UPDATE decisions SET told = '[' WHERE id = 1",
        "UPDATE decisions SET action = 'inserb' WHERE id = 1",
        f"UPDATE decisions SET raw = '{'[' * 100_000}' WHERE id = 1",
        f"INSERT INTO meta VALUES ('deep', '{'[' * 100_000}')",
        "UPDATE meta SET value = '[]' WHERE name = 'identity'",
        "UPDATE meta SET value = json_set(value, '$.codec', 7) WHERE name = 'identity'",
    ],
)
def test_a_row_of_an_unsealed_store_that_cannot_be_is_one_line(taught, tmp_path, change):
    as_unsealed(taught, change)
    for read_only in (True, False):
        with pytest.raises(LabError, match=r"damaged|schema version None"):
            TraceStore.open(tmp_path, "s1", IDENTITY, read_only=read_only)


class Plain(Memory):
    """A memory without a model, of what is told alone."""

    def __init__(self):
        self.settings = self.Settings()


@pytest.fixture
def plain(tmp_path):
    """A store that `Plain` has told four statements."""
    identity = replace(IDENTITY, codec=Plain().codec)
    with TraceStore.create(tmp_path, "s1", identity) as store:
        Plain().teach([observation_of(number, name) for number, name in enumerate(NAMES)], store)
        yield store


def altered(store, change):
    """Change an open store's file as damage does, without its seal."""
    with closing(sqlite3.connect(store.path)) as file:
        file.execute(change)
        file.commit()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE decisions SET trace = 3 WHERE id = 1",
        "UPDATE decisions SET trace = 77 WHERE id = 1",
        "UPDATE decisions SET text = 'Ben is in the kitchen.' WHERE id = 2",
        "UPDATE decisions SET told = replace(told, 'Ben', 'Anna') WHERE id = 2",
    ],
)
def test_nothing_is_forgotten_by_a_damaged_decision(plain, change):
    before = plain.traces()
    altered(plain, change)
    with pytest.raises(LabError, match="do not fit its seal"):
        Plain().delete(plain, provenance="diary Anna")
    assert plain.traces() == before


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("world", [b"v1", b"w3"])
def test_an_index_that_finds_other_rows_than_its_table_holds_is_refused(taught, tmp_path, number, world):
    with closing(sqlite3.connect(taught)) as file:
        [[page]] = file.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'traces_of_world'")
        [[size]] = file.execute("PRAGMA page_size")
    content = taught.read_bytes()
    offsets = [match.start() for match in re.finditer(b"w1", content) if (page - 1) * size <= match.start() < page * size]
    taught.write_bytes(content[: offsets[number]] + world + content[offsets[number] + 2 :])
    with pytest.raises(LabError, match="is damaged or no store"):
        TraceStore.open(tmp_path, "s1", IDENTITY, read_only=True)


def test_a_trace_of_another_statement_is_never_removed(plain, monkeypatch):
    before = plain.traces()
    altered(plain, "UPDATE decisions SET trace = 3 WHERE id = 1")
    monkeypatch.setattr(plain.file, "check_seal", lambda: None)  # as of a store that was damaged before it was first sealed
    with pytest.raises(LabError, match="trace 3 is not of the statement '0'"):
        Plain().delete(plain, provenance="diary Anna")
    assert plain.traces() == before


@pytest.mark.parametrize("empty", ["", " ", "\n\t", "\u200b", "\ufeff", "\u3000"])
def test_an_empty_provenance_removes_nothing(plain, empty):
    Plain().teach([Observation(Statement("9", "w", "Otto is at home.", 9))], plain)
    for remove in (lambda: Plain().delete(plain, provenance=empty), lambda: plain.delete_provenance(empty)):
        with pytest.raises(LabError, match="a provenance is needed, got an empty one"):
            remove()
    assert plain.size() == 5


@pytest.mark.parametrize("chance", ["write", "close", "open"])
def test_words_that_a_reader_holds_back_go_at_the_next_chance(plain, tmp_path, chance):
    def content(folder="hei_nw"):
        return b"".join(path.read_bytes() for path in (tmp_path / folder).rglob("traces.sqlite*"))

    plain.file.rows("PRAGMA busy_timeout = 50")
    with closing(sqlite3.connect(plain.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM traces").fetchall()
        with pytest.warns(UserWarning, match="its words stay in .* while another process reads there"):
            assert Plain().delete(plain, provenance="diary Anna") == 1
        assert b"Anna" in content()
        plain.note("more", 1)  # a write while the reader is still there
        assert b"Anna" in content()
        if chance == "open":
            shutil.copytree(tmp_path / "hei_nw", tmp_path / "killed/hei_nw")
    if chance == "write":
        plain.note("more", 2)
    elif chance == "close":
        plain.close()
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            TraceStore.open(tmp_path / "killed", "s1", plain.identity).close()
    remaining = content("killed" if chance == "open" else "hei_nw")
    assert b"Anna" not in remaining and b"Ben" in remaining
