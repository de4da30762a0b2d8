"""Teaching: traces and decisions are written together or not at all."""

import math
from dataclasses import dataclass

import pytest

from hippo_core.files import LabError
from hippo_core.methods.base import Observation
from hippo_core.methods.episodic.writing import write
from hippo_core.methods.presets import load_preset
from hippo_core.store import TraceStore
from hippo_core.store.trace import Decision, Statement
from tests.experiments.memory.conftest import SESSION

TOLD = [Observation(Statement(f"f{number}", "w1", f"Lea lives in {city}.", number)) for number, city in enumerate(("Rome", "Oslo", "Rome"))]


@dataclass(frozen=True)
class Sure:
    """A gate that writes everything; `why` is what it says for the second statement."""

    why: float

    def decide(self, statement, features, duplicate_of=None):
        why = self.why if statement.source == "f1" else 1.0
        return Decision(statement, 1.0, {"sure": why}, {}, "insert" if duplicate_of is None else "aggregate", duplicate_of)


def test_a_failure_between_traces_and_decisions_leaves_neither(hippo, tmp_path):
    preset = load_preset("memory/hei_nw")
    method = preset.method(hippo, preset.settings)
    memory = method.parts
    with TraceStore.create(tmp_path, SESSION, method.identity()) as store:
        with pytest.raises(LabError, match="sure is nan"):
            write(memory, store, TOLD, Sure(math.nan))
        assert (store.traces(), store.decisions()) == ([], [])
        write(memory, store, TOLD, Sure(1.0))
        assert [(trace.source, trace.evidence) for trace in store.traces()] == [("f0", 2), ("f1", 1)]
        assert [decision.action for decision in store.decisions()] == ["insert", "insert", "aggregate"]
