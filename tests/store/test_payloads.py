"""A second method's payloads go through the store without a change of it: here a few floats a trace."""

import json
import struct
from dataclasses import dataclass, field, replace

import pytest

from hippo_core.errors import LabError
from hippo_core.store import Identity, TraceStore, export_store, import_store
from hippo_core.store.trace import Trace
from tests.store.made import IDENTITY

TIME = "2030-01-31T12:00:00+00:00"


@dataclass(frozen=True)
class Floats:
    """Payloads of `width` floats."""

    width: int = 3
    settings: dict = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "settings", {"width": self.width})

    def check(self, payload):
        if len(payload) != self.width:
            raise LabError(f"expected {self.width} floats, got {len(payload)}")

    def encode(self, payload):
        return struct.pack(f"<{self.width}d", *payload)

    def decode(self, data):
        return list(struct.unpack(f"<{self.width}d", data))

    def to_json(self, payload, dense=False):
        return {"floats": payload}

    def from_json(self, values):
        return values["floats"]


OTHER = Identity("made", "0" * 64, "mine:Mine", Floats())


def traces():
    return [Trace("w1", f"f{number}", f"words {number}", payload=[0.5, number, -1.0]) for number in range(3)]


def test_they_are_stored_changed_undone_and_brought_back(tmp_path):
    with TraceStore.create(tmp_path, "s1", OTHER) as store:
        ids = store.append(traces())
        store.update_payloads({ids[0]: [9.0, 9.0, 9.0]})
        assert store.traces()[0].payload == [9.0, 9.0, 9.0]
        store.rollback()
        assert [trace.payload for trace in store.traces()] == [trace.payload for trace in traces()]
        with pytest.raises(LabError, match=r"f1.*expected 3 floats, got 2"):
            store.append([replace(traces()[1], payload=[1.0, 2.0])])
        export_store(store, tmp_path / "out", "teach", 0, TIME)
    with import_store(tmp_path / "out", tmp_path, OTHER, "s2") as again:
        assert again.traces()[2].payload == [0.5, 2.0, -1.0]


def test_a_store_opens_for_its_own_method_alone(tmp_path):
    with TraceStore.create(tmp_path, "s1", OTHER) as store:
        store.append(traces())
    with pytest.raises(LabError, match=r"no store at .*hei_nw/s1"):
        TraceStore.open(tmp_path, "s1", IDENTITY)
    with pytest.raises(LabError, match="kind expected 'hei_nw', got 'mine:Mine'"):
        TraceStore.open(tmp_path / "mine/s1/traces.sqlite", "s1", IDENTITY)
    with pytest.raises(LabError, match="width expected 4, got 3"):
        TraceStore.open(tmp_path, "s1", replace(OTHER, codec=Floats(4)))
    with TraceStore.open(tmp_path, "s1", read_only=True) as store:
        assert store.traces()[1].payload == Floats().encode([0.5, 1.0, -1.0])


def test_what_a_store_holds_is_said_beside_it(tmp_path):
    with TraceStore.create(tmp_path, "s1", OTHER) as store:
        store.append(traces())
        store.note("calibration", {"tau": 0.5})
    meta = json.loads((store.path.parent / "store_meta.json").read_text())
    assert (meta["kind"], meta["codec"], meta["traces"], meta["worlds"]) == ("mine:Mine", {"width": 3}, 3, 1)
    assert meta["session_id"] == "s1" and meta["calibration"] == {"tau": 0.5} and meta["bytes"] == store.path.stat().st_size
