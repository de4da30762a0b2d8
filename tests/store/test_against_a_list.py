"""The store against the plainest model there is: the list of what was done, done again from the start without what was undone."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hippo_core.errors import LabError
from hippo_core.retrieval.payload import Payload
from hippo_core.store import TraceStore
from tests.store.made import IDENTITY, drawn, keys, trace

QUICK = Path("/dev/shm")  # a disk in memory, where there is one: what is tested here is not durability


def keyed(payload, key):
    """A payload of one sentence with another key."""
    return Payload(payload.token_ids, (key,))


class Events:
    """What each thing that can be done to a store does to a dict of traces by id."""

    @staticmethod
    def append(traces, appended):
        traces |= {appended.id: appended}

    @staticmethod
    def aggregate(traces, number):
        traces[number] = replace(traces[number], evidence=traces[number].evidence + 1)

    @staticmethod
    def use(traces, ids):
        for number in ids:
            traces[number] = replace(traces[number], uses=traces[number].uses + 1)

    @staticmethod
    def shift(traces, ids, by):
        for number in set(ids):
            traces[number] = replace(traces[number], salience=max(0.0, traces[number].salience + by))

    @staticmethod
    def decay(traces, rate, ids):
        for number in set(traces if ids is None else ids):
            traces[number] = replace(traces[number], salience=(1 - rate) * traces[number].salience)

    @staticmethod
    def rekey(traces, given):
        for number, key in given.items():
            traces[number] = replace(traces[number], payload=keyed(traces[number].payload, key))

    @staticmethod
    def delete(traces, ids):
        for number in set(ids):
            del traces[number]

    @staticmethod
    def delete_provenance(traces, provenance):
        Events.delete(traces, [number for number in traces if traces[number].provenance == provenance])

    @staticmethod
    def evict(traces, budget):
        for world in {stored.world for stored in traces.values()}:
            own = sorted((stored.pinned, stored.salience, number) for number, stored in traces.items() if stored.world == world)
            Events.delete(traces, [number for *_, number in own[: max(0, len(own) - budget)]])


class AgainstAList(RuleBasedStateMachine):
    """`events` are all that happened since the last purge, each with the kind of its batch, or None for what cannot be undone."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="store-", dir=QUICK if QUICK.is_dir() else None))
        self.store = TraceStore.create(self.folder, "s1", IDENTITY)
        self.start, self.events, self.next = {}, [], 1

    def teardown(self):
        self.store.close()
        shutil.rmtree(self.folder)

    def expected(self):
        """The traces after all events, in order."""
        traces = dict(self.start)
        for _, steps in self.events:
            for name, *values in steps:
                getattr(Events, name)(traces, *values)
        return traces

    def did(self, kind, *steps):
        """Something happened; a kind of None cannot be undone."""
        self.events.append((kind, steps))

    def pick(self, data, least=0):
        """Some ids of traces that are there, perhaps with repeats."""
        there = sorted(self.expected())
        return data.draw(st.lists(st.sampled_from(there), min_size=least, max_size=5)) if there else []

    @rule(traces=st.lists(drawn, max_size=5))
    def append(self, traces):
        ids = self.store.append(traces)
        assert ids == list(range(self.next, self.next + len(traces)))
        self.did(None, *(("append", replace(appended, id=number)) for number, appended in zip(ids, traces, strict=True)))
        self.next += len(traces)

    @rule(traces=st.lists(drawn, max_size=3))
    def append_with_a_bad_one(self, traces):
        with pytest.raises(LabError, match="tokens"):
            self.store.append([*traces, trace(token_ids=())])

    @precondition(lambda self: self.expected())
    @rule(data=st.data())
    def aggregate(self, data):
        [number] = self.pick(data, 1)[:1]
        self.store.aggregate(number)
        self.did(None, ("aggregate", number))

    @rule(data=st.data())
    def use(self, data):
        ids = self.pick(data)
        self.store.use(ids)
        self.did("use", ("use", ids))

    @rule(data=st.data(), by=st.floats(-1e9, 1e9))
    def shift(self, data, by):
        ids = self.pick(data)
        if by < 0:
            self.store.lower_salience(ids, -by)
        else:
            self.store.raise_salience(ids, by)
        self.did("lower" if by < 0 else "raise", ("shift", ids, by))

    @rule(data=st.data(), rate=st.floats(0, 1), some=st.booleans())
    def decay(self, data, rate, some):
        ids = self.pick(data) if some else None
        self.store.decay(rate, ids)
        self.did("decay", ("decay", rate, ids))

    @rule(data=st.data())
    def rekey(self, data):
        given = {number: data.draw(keys) for number in self.pick(data)}
        stored = {number.id: number.payload for number in self.store.traces() if number.id in given}
        self.store.update_payloads({number: keyed(stored[number], key) for number, key in given.items()})
        self.did("payloads", ("rekey", given))

    @rule(data=st.data())
    def delete(self, data):
        ids = self.pick(data)
        self.store.delete(ids)
        self.did("delete", ("delete", ids))

    @rule(provenance=st.sampled_from(["chat", "tool", "nothing"]))
    def delete_provenance(self, provenance):
        count = sum(stored.provenance == provenance for stored in self.expected().values())
        assert self.store.delete_provenance(provenance) == count
        self.did("delete", ("delete_provenance", provenance))

    @rule(budget=st.integers(0, 4))
    def evict(self, budget):
        before = len(self.expected())
        removed = self.store.evict(budget)
        self.did("evict", ("evict", budget))
        assert removed == before - len(self.expected())

    @precondition(lambda self: self.expected())
    @rule(data=st.data(), rate=st.floats(0, 1))
    def replay(self, data, rate):
        hits = self.pick(data, 1)
        with self.store.maintenance("replay"):
            self.store.use(hits)
            self.store.raise_salience(hits, 1.5)
            self.store.decay(rate)
            self.store.aggregate(hits[0])
            self.store.delete(hits[-1:])
        steps = ("use", hits), ("shift", hits, 1.5), ("decay", rate, None), ("aggregate", hits[0]), ("delete", hits[-1:])
        self.did("replay", *steps)

    @precondition(lambda self: self.expected())
    @rule(data=st.data(), block=drawn)
    def nothing_of_a_block_that_fails(self, data, block):
        ids = self.pick(data, 1)
        with pytest.raises(ZeroDivisionError), self.store.maintenance("never"):
            self.store.append([block])
            self.store.use(ids)
            self.store.delete(ids)
            raise ZeroDivisionError

    @precondition(lambda self: any(kind for kind, _ in self.events))
    @rule(data=st.data())
    def rollback(self, data):
        batches = [position for position, (kind, _) in enumerate(self.events) if kind]
        count = data.draw(st.integers(1, len(batches)))
        self.store.rollback(count)
        self.events = [event for position, event in enumerate(self.events) if position not in batches[-count:]]

    @rule(more=st.integers(1, 3))
    def rollback_of_too_many(self, more):
        with pytest.raises(LabError, match="batches to undo"):
            self.store.rollback(sum(bool(kind) for kind, _ in self.events) + more)

    @precondition(lambda self: self.next > 1)
    @rule(data=st.data())
    def touch_what_is_not_there(self, data):
        number = data.draw(st.sampled_from(sorted({0, self.next, *range(1, self.next)} - set(self.expected()))))
        for change in (self.store.use, self.store.delete):
            with pytest.raises(LabError, match=f"no trace {number} "):
                change([number])
        with pytest.raises(LabError, match=f"no trace {number} "):
            self.store.aggregate(number)

    @rule()
    def purge(self):
        self.store.purge()
        self.start, self.events = self.expected(), []

    @rule()
    def reopen(self):
        self.store.close()
        assert {path.name for path in self.store.path.parent.iterdir()} == {"traces.sqlite", "store_meta.json"}
        self.store = TraceStore.open(self.folder, "s1", IDENTITY)

    @invariant()
    def holds_what_it_should(self):
        traces = self.expected()
        assert self.store.traces() == [traces[number] for number in sorted(traces)]
        assert self.store.worlds() == sorted({stored.world for stored in traces.values()})
        assert self.store.size() == len(traces)
        assert self.store.traces("w1") == [traces[number] for number in sorted(traces) if traces[number].world == "w1"]
        assert self.store.size("w1") == len(self.store.traces("w1"))
        assert self.store.history() == [kind for kind, _ in self.events if kind]


TestAgainstAList = AgainstAList.TestCase
TestAgainstAList.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
