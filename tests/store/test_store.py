"""What a store keeps, in which order, and what it refuses before it writes anything."""

import math
import sqlite3
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hippo_core.errors import LabError
from hippo_core.retrieval.payload import Payload, PayloadCodec
from hippo_core.retrieval.sparse_key import SparseKey
from hippo_core.store import TraceStore, store_path
from hippo_core.store.trace import Decision, Refused, Statement
from tests.store.made import DIMS, IDENTITY, drawn, key_of, texts, trace

finite = st.floats(allow_nan=False, allow_infinity=False)
terms = st.dictionaries(st.sampled_from(["surprise", "novelty", "reward", "pin"]), finite)
statements = st.builds(Statement, texts, texts, texts, st.integers(-9, 9))
decisions = st.builds(Decision, statements, finite, terms, terms, st.sampled_from(["insert", "aggregate", "refuse"]), st.none())


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(drawn, max_size=6), st.lists(decisions, max_size=4))
def test_what_is_read_is_what_was_written(tmp_path_factory, traces, told):
    folder = tmp_path_factory.mktemp("lab")
    with TraceStore.create(folder, "s1", IDENTITY) as store:
        ids = store.append(traces)
        store.log(told)
    with TraceStore.open(folder, "s1", IDENTITY, read_only=True) as store:
        assert store.traces() == [replace(given, id=number) for number, given in zip(ids, traces, strict=True)]
        assert store.decisions() == told
        assert store.refused() == [Refused(given.statement, given.S) for given in told if given.action == "refuse"]


def test_both_ways_to_name_the_folder_lead_to_the_same_place(tmp_path):
    assert store_path(tmp_path, "s1", "hei_nw") == store_path(tmp_path / "hei_nw", "s1", "hei_nw") == tmp_path / "hei_nw/s1/traces.sqlite"
    TraceStore.create(tmp_path, "s1", IDENTITY).close()
    for folder, expect in product((tmp_path, str(tmp_path / "hei_nw"), tmp_path / "hei_nw/s1/traces.sqlite"), (None, IDENTITY)):
        TraceStore.open(folder, "s1", expect).close()


def test_a_session_of_two_memories_is_opened_by_the_memory_s_identity(tmp_path):
    other = replace(IDENTITY, kind="mine:Mine")
    for identity in (IDENTITY, other):
        TraceStore.create(tmp_path, "s1", identity).close()
    with pytest.raises(LabError, match="more than once"):
        TraceStore.open(tmp_path, "s1")
    with TraceStore.open(tmp_path, "s1", other) as store:
        assert store.path == tmp_path / "mine/s1/traces.sqlite"


def test_two_tellings_give_the_same_bytes(tmp_path):
    files = []
    for name in ("a", "b"):
        with TraceStore.create(tmp_path / name, "s1", IDENTITY) as store:
            store.append([trace(f"f{number}", salience=number / 7) for number in range(50)])
            store.decay(0.1)
            store.evict(20)
            store.rollback()
        files.append(store.path.read_bytes())
    assert files[0] == files[1]


def test_ids_rise_and_are_never_given_twice(store):
    assert store.append([trace(), trace(id=77)]) == [1, 2]
    store.delete([2])
    store.purge()
    assert store.append([trace()]) == [3]


BAD = {
    "dimensions": trace(key=SparseKey(np.array([1]), np.array([1]), DIMS + 1)),
    "winners": trace(key=key_of(dict.fromkeys(range(5), 1))),
    "got 9; shorten the fact": trace(token_ids=tuple(range(9))),
    "got 0; shorten the fact": trace(token_ids=()),
    "token id": trace(token_ids=(-1,)),
    "salience is a number of 0 or more, got nan": trace(salience=math.nan),
    "salience is a number of 0 or more, got inf": trace(salience=math.inf),
    "salience is a number of 0 or more, got -0.1": trace(salience=-0.1),
    "evidence": trace(evidence=0),
    "uses": trace(uses=2**63),
    "Unicode": trace(teller="\ud800"),
    "confidence is a number from 0 to 1, or nothing, got 1.5": trace(confidence=1.5),
    "confidence is a number from 0 to 1, or nothing, got nan": trace(confidence=math.nan),
}


@pytest.mark.parametrize("said", BAD)
def test_one_bad_trace_keeps_all_of_them_out(store, said):
    store.append([trace("before")])
    with pytest.raises(LabError, match=said) as error:
        store.append([trace("good"), BAD[said]])
    assert "\n" not in str(error.value)
    assert [stored.source for stored in store.traces()] == ["before"]


@pytest.mark.parametrize(
    "broken", [{"S": math.nan}, {"S": math.inf}, {"contributions": {"surprise": math.nan}}, {"raw": {"pin": math.inf}}]
)
def test_a_decision_that_is_not_finite_is_not_logged(store, broken):
    good = Decision(Statement("f1", "w1", "words", 0), 0.0, {}, {}, "insert")
    with pytest.raises(LabError, match="finite"):
        store.log([good, replace(good, **broken)])
    assert store.decisions() == []


def test_a_block_is_written_whole(store):
    with store.together():
        [inserted] = store.append([trace()])
        store.log([Decision(Statement("f1", "w1", "words", 0), 1.0, {"pin": 1.0}, {"pin": 1.0}, "insert", inserted)])
    assert store.decisions()[0].trace_id == inserted
    with pytest.raises(LabError, match="dimensions"), store.together():
        store.append([trace("half")])
        store.append([BAD["dimensions"]])
    assert [stored.source for stored in store.traces()] == ["f1"]


def test_a_store_that_is_closed_in_the_middle_of_a_block_has_nothing_of_it(store, tmp_path):
    with pytest.raises(sqlite3.ProgrammingError, match="closed"), store.together():
        store.append([trace()])
        store.close()
    assert store.path.read_bytes()[18] == 1  # SQLite's sign of a file without a write-ahead log
    with TraceStore.open(tmp_path, "s1", read_only=True) as again:
        assert again.size() == 0
    assert {path.name for path in store.path.parent.iterdir()} == {"traces.sqlite", "store_meta.json"}


def test_the_weakest_goes_first_and_a_pinned_trace_only_when_no_other_is_left(store):
    strengths = [(0.5, False), (0.1, True), (0.5, False), (0.9, False), (0.0, True)]
    store.append([trace(salience=salience, pinned=pinned) for salience, pinned in strengths])
    left = []
    for budget in (4, 3, 2, 1, 0):
        store.evict(budget)
        left.append([stored.id for stored in store.traces()])
    assert left == [[2, 3, 4, 5], [2, 4, 5], [2, 5], [2], []]


def test_a_budget_is_a_worlds_own(store):
    store.append([trace(world=world, salience=salience) for world in "abc" for salience in range(3)])
    assert store.evict({"a": 1, "b": 2, "nowhere": 0}) == 3
    assert [store.size(world) for world in "abc"] == [1, 2, 3]
    assert store.evict(1) == 3
    assert [stored.salience for stored in store.traces()] == [2, 2, 2]


def test_what_was_told_long_ago_in_its_world_expires_unless_it_is_pinned(store):
    store.append([trace(world="a", time=time, pinned=time == 1) for time in range(6)] + [trace(world="b", time=0)])
    assert store.expire(3) == 1
    assert [stored.time for stored in store.traces("a")] == [1, 2, 3, 4, 5]
    assert store.expire(0) == 3
    assert [stored.time for stored in store.traces()] == [1, 5, 0]
    store.rollback(2)
    assert store.size() == 7
    again = Decision(Statement("again", "a", "Again.", 7), 0.0, {}, {}, "aggregate", store.traces("a")[0].id)
    store.log([again])  # what is told again is as old as its last telling
    assert store.expire(0, "b") == 0 and store.expire(1, "a") == 4
    assert [stored.time for stored in store.traces("a")] == [0, 1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda store: store.decay(1.5), "from 0 to 1, got 1.5"),
        (lambda store: store.decay(math.nan), "from 0 to 1, got nan"),
        (lambda store: store.raise_salience([1], math.nan), "finite number, got nan"),
        (lambda store: [store.raise_salience([1], 1.7e308) for _ in range(2)], "beyond all numbers"),
        (lambda store: store.evict(-1), "0 or more, got -1"),
        (lambda store: store.expire(-1), "0 or more"),
        (lambda store: store.aggregate(1, 0), "once or more often"),
        (lambda store: store.rollback(0), "from 1 to 0 batches"),
        (lambda store: store.note("identity", {}), "fixed"),
        (lambda store: store.note("tau", math.inf), "no JSON"),
    ],
)
def test_an_order_without_sense_changes_nothing(store, change, said):
    store.append([trace()])
    with pytest.raises(LabError, match=said):
        change(store)
    assert store.traces()[0].salience in (1.0, 1.7e308)
    assert store.size() == 1


def test_rollback_brings_back_keys_one_batch_after_the_other(store):
    ids = store.append([trace("f1"), trace("f2", key=key_of({1: 2}))])
    states = [store.traces()]
    for number in (1, 2):
        store.update_payloads(
            {trace_id: Payload((1,), (key_of(dict.fromkeys(range(trace_id, trace_id + number), number)),)) for trace_id in ids}
        )
        states.append(store.traces())
    with store.maintenance("replay"):
        store.update_payloads({ids[0]: Payload((1,), (key_of({9: -9}),))})
        store.delete(ids)
    assert [[stored.payload.keys[0] for stored in state] for state in states[1:]] == [
        [key_of({1: 1}), key_of({2: 1})],
        [key_of({1: 2, 2: 2}), key_of({2: 2, 3: 2})],
    ]
    for state in reversed(states):
        store.rollback()
        assert store.traces() == state
    assert store.history() == []


def test_rollback_and_purge_wait_for_the_end_of_a_block(store):
    store.append([trace()])
    store.decay(0.5)
    with pytest.raises(LabError, match="under way"), store.maintenance("replay"):
        store.rollback()
    with pytest.raises(LabError, match="under way"), store.together():
        store.purge()
    assert store.history() == ["decay"]


def test_what_is_purged_is_in_the_file_no_more(tmp_path):
    with TraceStore.create(tmp_path, "s1", IDENTITY) as store:
        store.append([trace(text="a secret of Marta's " * 5000), trace(text="the weather")])
        store.delete([1])
    before = store.path.read_bytes()
    assert b"Marta" in before
    with TraceStore.open(tmp_path, "s1") as store:
        assert store.purge() == 1
        assert store.history() == []
    after = store.path.read_bytes()
    assert b"Marta" not in after and b"the weather" in after
    assert len(after) < len(before) - 50_000


def test_what_was_erased_and_not_compacted_is_in_no_file_when_a_writer_has_opened_it(tmp_path):
    def content():
        return b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())

    with TraceStore.create(tmp_path, "s1", IDENTITY) as store:
        store.file.rows("PRAGMA secure_delete = OFF")  # which some builds of SQLite have on, so that they overwrite what is deleted
        store.append([trace(text="a secret of Marta's"), trace(text="the weather"), trace(text="a key of Otto's")])
        store.erase([1])
    assert b"Marta" in content()
    with TraceStore.open(tmp_path, "s1") as store:
        assert b"Marta" not in content()
        store.file.rows("PRAGMA secure_delete = OFF")
        store.erase([3])
        store.compact()
        assert b"Otto" not in content()
        assert [stored.text for stored in store.traces()] == ["the weather"]
        assert "compact" not in store.meta


def test_tombstones_are_erased_too_and_what_was_decided_about_purged_traces(store):
    first, second, third = store.append([trace(), trace(), trace()])
    store.log([Decision(Statement("f1", "w1", "words", 0), 1.0, {}, {}, "insert", number) for number in (first, second, third)])
    store.delete([first])
    store.purge()
    store.delete([second])
    store.erase([first, second])
    assert [decision.trace_id for decision in store.decisions()] == [stored.id for stored in store.traces()] == [third]
    with pytest.raises(LabError, match="has no trace 1 "):
        store.erase([first])


@pytest.mark.parametrize(
    "erase", [lambda store, number: store.erase([number]), lambda store, _: store.erase_world("w2")], ids=["trace", "world"]
)
def test_what_could_be_undone_of_what_is_erased_goes_with_it(store, erase):
    """A change of the erased trace alone is no batch any more; a change of another one, and what stays of a common one, can be undone."""
    kept, erased = store.append([trace(), trace(world="w2")])
    store.raise_salience([erased], 0.5)
    store.raise_salience([kept], 0.25)
    store.raise_salience([kept, erased], 0.5)
    erase(store, erased)
    assert len(store.history()) == 2
    assert {number for (number,) in store.file.rows("SELECT trace FROM undo")} == {kept}
    store.rollback(2)
    assert [(kept_trace.id, kept_trace.salience) for kept_trace in store.traces()] == [(kept, 1.0)]


def test_ids_may_come_as_a_recall_returns_them(store):
    ids = np.array(store.append([trace(), trace(), trace()]))
    store.use(ids[[0, 0, 2]])
    store.raise_salience(ids[:1], 0.5)
    store.decay(0.5, ids[1:2])
    store.aggregate(ids[1])
    store.delete(ids[2:])
    assert [(stored.uses, stored.salience, stored.evidence) for stored in store.traces()] == [(2, 1.5, 1), (0, 0.5, 2)]


def test_notes_are_kept_and_replaced(tmp_path):
    with TraceStore.create(tmp_path, "s1", IDENTITY) as store:
        store.note("calibration", {"tau": 0.1})
        store.note("calibration", {"tau": 0.2})
    with TraceStore.open(tmp_path, "s1", read_only=True) as store:
        assert store.meta["calibration"] == {"tau": 0.2}
        assert (store.meta["session_id"], store.identity.parts) == ("s1", IDENTITY.parts)


def test_a_commit_waits_for_the_disk_however_a_store_was_opened(tmp_path):
    """SQLite's `synchronous` is 2, FULL: it belongs to a connection, no file keeps it, and no test without a power cut sees it missing."""
    with TraceStore.create(tmp_path / "a", "s1", IDENTITY) as made:
        assert made.file.rows("PRAGMA synchronous") == [(2,)]
        with made.copy(tmp_path / "b") as copied:
            assert copied.file.rows("PRAGMA synchronous") == [(2,)]
    with TraceStore.open(tmp_path / "a", "s1") as again:
        assert again.file.rows("PRAGMA synchronous") == [(2,)]


def test_a_copy_has_all_and_goes_its_own_way(tmp_path):
    with TraceStore.create(tmp_path / "a", "s1", IDENTITY) as first:
        first.append([trace("f1"), trace("f2")])
        first.delete([1])
    before = first.path.read_bytes()
    with TraceStore.open(tmp_path / "a", "s1", IDENTITY, read_only=True) as first, first.copy(tmp_path / "b") as second:
        assert second.traces() == first.traces()
        second.rollback()
        second.append([trace("f3")])
        assert [stored.source for stored in second.traces()] == ["f1", "f2", "f3"]
    with TraceStore.open(tmp_path / "a", "s1", read_only=True) as first, pytest.raises(LabError, match="already"):
        first.copy(tmp_path / "b")
    assert first.path.read_bytes() == before


@pytest.mark.parametrize("winners", [0, DIMS + 1])
def test_a_kind_of_key_makes_sense(winners):
    with pytest.raises(LabError, match="winners"):
        PayloadCodec("k", DIMS, winners)


@pytest.mark.parametrize("name", ["", "../s1", "a/b", ".hidden", "a" * 101, "new\nline"])
def test_a_session_is_a_plain_name(tmp_path, name):
    with pytest.raises(LabError, match="plain name"):
        TraceStore.create(tmp_path, name, IDENTITY)
    assert list(tmp_path.iterdir()) == []


def test_what_is_told_again_has_more_evidence_and_the_payload_that_is_given(store):
    store.append([trace("a"), trace("b", confidence=1, pinned=True)])
    payload = Payload((4, 5), (key_of({1: 9}),))
    store.retell(store.traces()[1], payload)
    assert store.traces() == [trace("a", id=1), replace(trace("b", confidence=1, pinned=True, id=2), payload=payload, evidence=2)]


def test_what_has_changed_since_it_was_read_is_not_told_again(store):
    store.append([trace("a"), trace("b")])
    before = store.traces()
    store.retell(before[0], Payload((4, 5), (key_of({1: 9}),)))
    store.delete([2])
    after = store.traces()
    for stale, said in (
        (before[0], "anew"),
        (before[1], "no trace 2"),
        (replace(before[0], text="others", id=1), "anew"),
        (trace(id=9), "9"),
    ):
        with pytest.raises(LabError, match=said) as error:
            store.retell(stale, stale.payload)
        assert "\n" not in str(error.value)
    assert store.traces() == after


def test_of_what_a_block_changed_twice_the_first_value_comes_back(store):
    [number] = store.append([trace()])
    before = store.traces()
    with store.maintenance("replay"):
        store.raise_salience([number], 1.0)
        store.raise_salience([number], 2.0)
        store.update_payloads({number: Payload((1,), (key_of({1: 1}),))})
        store.update_payloads({number: Payload((1,), (key_of({2: 2}),))})
    store.rollback()
    assert store.traces() == before
