"""Teaching: traces and decisions are written together or not at all."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from hippo_core.errors import LabError
from hippo_core.methods.base import Memory, Observation, Query, Retrieved
from hippo_core.methods.episodic.gate import TERMS
from hippo_core.methods.episodic.writing import TraceWriter
from hippo_core.methods.presets import load_preset
from hippo_core.protocols.questions import run
from hippo_core.store import TraceStore, store_path
from hippo_core.store.trace import Decision, Statement
from hippo_core.suites import get_suite
from hippo_core.suites.draw import worlds
from tests.protocols.questions.conftest import SESSION

FACTS = [
    Observation(Statement(f"f{number}", "w1", f"Lea lives in {city}.", number)) for number, city in enumerate(("Rome", "Oslo", "Rome"))
]


@dataclass(frozen=True)
class Confident:
    """A gate that writes everything; `why` is what it says for the second statement."""

    why: float

    def decide(self, statement, features, duplicate_of=None):
        why = self.why if statement.source == "f1" else 1.0
        return Decision(statement, 1.0, {"sure": why}, {}, "insert" if duplicate_of is None else "aggregate", duplicate_of)


TEXTS = (
    ("w1", "Lea lives in Rome.", "monday"),
    ("w1", "Otto keeps the key in the blue jar.", "tuesday"),
    ("w1", "lea lives in Rome", "wednesday"),
    ("w2", "Mia sold the boat to Jan.", "tuesday"),
    ("w1", "Ivo painted the fence green.", "monday"),
    ("w2", "Mia sold the old boat to Jan.", "monday"),  # less of a novelty behind the other
)
NOTES = [Observation(Statement(f"n{n}", world, text, n), provenance=when) for n, (world, text, when) in enumerate(TEXTS)]
CALIBRATION = {"mean": dict.fromkeys(TERMS, 0.0), "sd": dict.fromkeys(TERMS, 1.0), "tau": 0.0, "samples": 1}


@pytest.fixture(params=["open", "gated", "plain"])
def memory(request, hippo):
    """HEI-NW without a gate, with one, and a memory that keeps texts."""
    if request.param == "plain":
        return Plain(hippo, Memory.Settings())
    preset = load_preset("memory/hei_nw", {"episodic.use_gate": request.param == "gated"})
    return preset.method(hippo, preset.settings)


class Plain(Memory):
    """Every statement is kept; nothing is asked of it here."""


def stored(store, world):
    """What a store holds of a world, whatever its ids are."""
    indexes = {trace.id: index for index, trace in enumerate(store.traces(world))}
    traces = [replace(trace, id=indexes[trace.id]) for trace in store.traces(world)]
    decisions = [replace(d, trace_id=None if d.trace_id is None else indexes[d.trace_id]) for d in store.decisions(world)]
    return traces, decisions


def test_a_failure_between_traces_and_decisions_leaves_neither(hippo, tmp_path):
    preset = load_preset("memory/hei_nw")
    method = preset.method(hippo, preset.settings)
    with TraceStore.create(tmp_path, SESSION, method.identity()) as store:
        for why, due in ((math.nan, 0), (1.0, 2)):
            method._writes = TraceWriter(method.components, store, Confident(why), protects_pins=True)
            if due:
                method.teach(FACTS, store)
            else:
                with pytest.raises(LabError, match="sure is nan"):
                    method.teach(FACTS, store)
            assert len(store.traces()) == due
        assert [(trace.source, trace.evidence) for trace in store.traces()] == [("f0", 2), ("f1", 1)]
        assert [decision.action for decision in store.decisions()] == ["insert", "insert", "aggregate"]


def test_what_is_told_one_by_one_is_what_is_taught_together(memory, tmp_path):
    with TraceStore.create(tmp_path / "a", SESSION, memory.identity()) as batch:
        for world in ("w1", "w2"):
            memory.teach([note for note in NOTES if note.statement.world == world], batch, CALIBRATION)
        memory.forget()
        with TraceStore.create(tmp_path / "b", SESSION, memory.identity()) as apart:
            for note in sorted(NOTES, key=lambda note: note.statement.world):
                memory.write(note, apart, CALIBRATION)
                memory.forget()  # as another process would begin
            assert all(equal(stored(apart, world), stored(batch, world)) for world in ("w1", "w2"))


def equal(store, other):
    """Equal but for the last digits of S, which hang on what was read together."""
    (traces, decisions), (their_traces, their_decisions) = store, other
    decisions_only = [[replace(d, S=0.0, contributions={}, raw={}) for d in some] for some in (decisions, their_decisions)]
    kept = [[replace(trace, salience=0.0) for trace in some] for some in (traces, their_traces)]
    same = kept[0] == kept[1] and decisions_only[0] == decisions_only[1]
    numbers = [[*(d.S for d in ds), *(trace.salience for trace in ts)] for ts, ds in (store, other)]
    return same and numbers[0] == pytest.approx(numbers[1], abs=1e-4)


@pytest.mark.parametrize("chosen", [{"provenance": "tuesday"}, {"provenance": "monday"}, {"provenance": "wednesday"}, {"ids": (2,)}])
def test_a_store_from_which_was_deleted_equals_one_that_was_never_told(memory, tmp_path, chosen):
    """Its rows, its codes, what it recalls; and the words of what went are in its file no more."""
    with TraceStore.create(tmp_path / "a", SESSION, memory.identity()) as store:
        store.file.rows("PRAGMA secure_delete = OFF")  # which some builds of SQLite have on, so that they overwrite what is deleted
        for note in NOTES:
            memory.write(note, store, CALIBRATION)
        by_id = {trace.source for trace in store.traces() if trace.id in chosen.get("ids", ())}
        deleted = [note for note in NOTES if note.provenance == chosen.get("provenance") or note.statement.source in by_id]
        assert memory.delete(store, calibration=CALIBRATION, **chosen) == len(deleted)
        memory.forget()
        left = [note for note in NOTES if note not in deleted]
        with TraceStore.create(tmp_path / "b", SESSION, memory.identity()) as never:
            for note in left:
                memory.write(note, never, CALIBRATION)
            for world in ("w1", "w2"):
                assert equal(stored(store, world), stored(never, world))
                assert ranked(memory, store.traces(world)) == ranked(memory, never.traces(world))
    kept_texts = {note.statement.text for note in left}
    words = b"".join(path.read_bytes() for path in (tmp_path / "a").rglob("*.sqlite"))
    assert not [note for note in deleted if note.statement.text not in kept_texts and note.statement.text.encode() in words]


def ranked(memory, traces):
    """What a cue brings, by source; nothing of a memory that recalls nothing."""
    if isinstance(memory, Plain):
        return []
    taught = tuple(note.statement.source for note in NOTES)
    return [trace.source for trace in memory.open(traces)(Query("Where does Otto keep the key?", taught)).ranking or ()]


def test_a_statement_whose_decision_cannot_be_logged_leaves_no_trace(memory, tmp_path, monkeypatch):
    def fails(decisions):
        raise LabError("no room is left")

    with TraceStore.create(tmp_path, SESSION, memory.identity()) as store:
        with monkeypatch.context() as patch, pytest.raises(LabError, match="no room"):
            patch.setattr(store, "log", fails)
            memory.write(NOTES[0], store, CALIBRATION)
        assert not store.traces() and not store.decisions()
        memory.write(NOTES[0], store, CALIBRATION)
        assert len(store.traces()) == len(store.decisions()) == 1


class Counted(Plain):
    """A memory with numbers of its own: how long what it was told is, and how many traces it was asked with."""

    columns: ClassVar = {"teach": ("letters",), "test": ("held",)}

    def write(self, observation, store, calibration=None):
        return replace(super().write(observation, store, calibration), columns={"letters": len(observation.statement.text)})

    def open(self, traces, questions=()):
        return lambda query: Retrieved(tuple(traces[:1]), columns={"held": len(traces)})


def test_the_numbers_of_a_memory_s_own_reach_its_rows(hippo, tmp_path):
    memory, suite = Counted(hippo, Counted.Settings()), get_suite("episodic")
    drawn = list(worlds("episodic", "default", 5, 1337, "val", hippo.spec.context_limit))
    taught = run.teach(memory, suite, drawn, [], tmp_path, SESSION)
    assert taught["letters"].tolist() == [len(fact.text) for world in drawn for fact in world.facts]
    asked = run.test(memory, suite, drawn, "delayed", {"": store_path(tmp_path, SESSION, "counted")})
    assert asked["held"].tolist() == [len(world.facts) for world in drawn for _ in world.items]


def test_what_is_written_already_is_read_once_whoever_decides(hippo, tmp_path, monkeypatch):
    preset = load_preset("memory/hei_nw", {"episodic.use_gate": True})
    memory, reads, usual = preset.method(hippo, preset.settings), [], TraceStore.traces
    monkeypatch.setattr(TraceStore, "traces", lambda store, world=None: reads.append(world) or usual(store, world))
    notes = [replace(NOTES[1], statement=Statement(f"{n}", "w1", f"Otto keeps key {key}.", n)) for n, key in enumerate((0, 1, 2, 3, 2))]
    with TraceStore.create(tmp_path, SESSION, memory.identity()) as store:
        actions = [memory.write(note, store, CALIBRATION).action for note in notes]
        assert reads == ["w1"] and actions[-1] == "aggregate"
        store.decay(0.1)  # something else changes it
        memory.write(NOTES[0], store, CALIBRATION)
        assert reads == ["w1", "w1"]
