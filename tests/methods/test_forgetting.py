"""Forgetting: what is stale goes and near-equal traces are one, where settings say so; nothing else is lost."""

import pytest

from hippo_core.methods.base import Memory, MemorySettings, Observation, Query
from hippo_core.methods.spatial import Smpd
from hippo_core.methods.spatial.settings import SmpdSettings
from hippo_core.store import TraceStore
from hippo_core.store.codec import NoPayload
from hippo_core.store.identity import Identity
from hippo_core.store.near_equal import near_equal
from hippo_core.store.trace import Statement, Trace

TOLD = ["The well is north of the mill.", "The barn is east of the well.", "The wel is north of the mill!", "A lamp hangs in the barn."]


@pytest.mark.parametrize(
    ("text", "other", "equal"),
    [
        ("Anna left the bicycle at the station.", "Anna left a bicyle at the station", True),
        ("Anna left the bicycle at the station.", "Anna left the bicycle at the market.", False),
        ("The well is north of the mill.", "The mill is north of the well.", False),
        ("The old pump costs 145 dollars.", "The old pump costs 146 dollars.", False),
        ("It is legal to fish in the river.", "It is illegal to fish in the river.", False),
        ("Omar is a good frend of Lea.", "Lea is a good friend of Omar.", False),
        ("The shop in the old town is open.", "The shop in the old town is not open.", False),
        ("Carl left the bicycle at the station.", "Carla left the bicycle at the station.", False),
    ],
)
def test_traces_are_near_equal_that_differ_in_spelling_alone(text, other, equal):
    traces = [Trace("w", "a", text, id=1), Trace("w", "b", other, id=2)]
    assert near_equal(traces, 0.7, {2}) == ([traces] if equal else [])
    assert near_equal(traces, 0.7, {1}) == near_equal(traces, 0.999, {2}) == []
    assert near_equal([traces[0], Trace("w", "b", text, id=2, teller="Omar")], 0.7, {2}) == []


def taught(folder, texts, **forgetting):
    """A memory, and its store, which was told these texts."""
    memory = Memory(None, MemorySettings(memory={"forgetting": forgetting}))
    store = TraceStore.create(folder, "s", Identity("m", "0", "a:B", NoPayload()))
    memory.teach([Observation(Statement(f"f{time}", "w", text, time)) for time, text in enumerate(texts)], store)
    return memory, store


def test_a_memory_forgets_what_its_settings_say_and_no_more(tmp_path):
    left = {}
    for name, settings in {"all": {}, "ttl": {"ttl": 1}, "merge": {"merge": 0.8}, "both": {"ttl": 2, "merge": 0.8}}.items():
        with taught(tmp_path / name, TOLD, **settings)[1] as store:
            left[name] = [(trace.time, trace.evidence) for trace in store.traces("w")]
    assert left["all"] == [(0, 1), (1, 1), (2, 1), (3, 1)]
    assert left["ttl"] == [(2, 1), (3, 1)]
    assert left["merge"] == [(1, 1), (2, 2), (3, 1)]
    assert left["both"] == [(1, 1), (2, 1), (3, 1)]


def test_a_deleted_statement_leaves_the_store_as_if_it_had_never_been_told(tmp_path):
    memory, store = taught(tmp_path, TOLD, merge=0.8)
    with store:
        memory.delete(store, [trace.id for trace in store.traces("w") if trace.time == 2])
        assert [(trace.text, trace.evidence) for trace in store.traces("w")] == [(text, 1) for text in (*TOLD[:2], TOLD[3])]


def test_a_map_answers_from_what_is_left():
    left = [Trace("w", f"f{time}", TOLD[time], id=time + 1, time=time) for time in (0, 1)]
    retrieve = Smpd(None, SmpdSettings(encoder="own")).open(left)
    query = Query("Which directions lead from the mill to the barn?", ("f0", "f1", "forgotten"))
    assert retrieve(query).answer == "north, east"
