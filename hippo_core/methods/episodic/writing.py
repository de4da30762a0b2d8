"""Writing: what is told becomes a key, the gate weighs it, and what passes becomes a trace.

Surprise is what a statement costs the frozen model, in nats a token, right after the beginning that all prompts share. Novelty is 1 less
the highest cosine with the keys stored before it in its world. A statement in the very words of a stored one is evidence for that one.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch

from hippo_core.files import LabError
from hippo_core.kernels.code import Code
from hippo_core.kernels.sparse_recall.index import SparseIndex
from hippo_core.methods.base import Observation
from hippo_core.methods.episodic.gate import LOWEST, TERMS, Calibration, Gate, GateFeatures, RandomGate, WriteGate, calibrate, salience_of
from hippo_core.methods.episodic.parts import Parts
from hippo_core.methods.episodic.payload import Payload
from hippo_core.methods.episodic.settings import Episodic
from hippo_core.models.prompt import lines_of
from hippo_core.retrieval.lexicon import words
from hippo_core.retrieval.sparse_key import SparseKey
from hippo_core.retrieval.sparse_matrix import SparseMatrix
from hippo_core.retrieval.trace_index import rows_of
from hippo_core.store import TraceStore
from hippo_core.store.trace import Decision

CALIBRATED_ON = 512  # statements of validation worlds, in whole worlds, at least
SEED = 1337  # of the control that writes by chance
NEAREST = 8  # traces by shared units, of which the nearest by cosine is taken


def write(
    memory: Parts, store: TraceStore, observations: Sequence[Observation], gate: Gate | None, protects_pins: bool = True
) -> list[Decision]:
    """Tell the statements of one world, in order, to a store that has none of that world yet; what was decided about each. Without a gate
    everything is written, nothing is weighed and nothing is joined. All is on the disk when this returns."""
    texts = [one.statement.text for one in observations]
    keys, lines = memory.encoder.keys(texts), lines_of(memory.lm, texts, memory.settings.decoding)
    decisions = (
        weighed(memory, observations, keys, lines, gate)
        if gate
        else [Decision(one.statement, 0.0, {}, {}, "insert") for one in observations]
    )
    traces = [
        one.trace(payload=Payload(tuple(ids), key), salience=salience_of(decision.S), pinned=one.pin and protects_pins)
        for one, key, ids, decision in zip(observations, keys, lines, decisions, strict=True)
    ]
    if gate:  # what it read of them leaves behind what they are recalled by
        memory.known.keep([lines[number] for number in _written(decisions)])
    with store.together():
        ids = dict(zip(_written(decisions), store.append(traces[number] for number in _written(decisions)), strict=True))
        known = [_known(decision, number, ids) for number, decision in enumerate(decisions)]
        for decision in known:
            if decision.action == "aggregate" and decision.trace_id is not None:
                store.aggregate(decision.trace_id)
        store.log(known)
    return known


def weighed(
    memory: Parts, observations: Sequence[Observation], keys: Sequence[SparseKey], lines: Sequence[list[int]], gate: Gate
) -> list[Decision]:
    """The gate's word on each statement, in order of telling, from its key and its tokens as a line; `trace_id` of one told again is its
    first telling's number here."""
    surprises = surprise(memory, lines)
    rows, index = rows_of(keys), SparseIndex(memory.encoder.expansion)
    stored: list[int] = []  # numbers of statements, by row of the index
    stored_texts: dict[tuple[str, ...], int] = {}
    decisions = []
    for number, (one, nats) in enumerate(zip(observations, surprises, strict=True)):
        terms = GateFeatures(nats, novelty(index, rows, stored, number), one.reward, one.pin)
        decision = gate.decide(one.statement, terms, stored_texts.get(tuple(words(one.statement.text))))
        decisions.append(decision)
        if decision.action == "insert":
            stored_texts[tuple(words(one.statement.text))] = number
            index.add(_code(rows, number))
            stored.append(number)
    return decisions


def surprise(memory: Parts, lines: Sequence[list[int]]) -> list[float]:
    """The mean loss of each line's tokens in nats, right after the prompts' beginning; its last one, which ends the line, is left out."""
    return [math.fsum(nats[:-1]) / max(1, len(nats) - 1) for nats in memory.known.read(lines)]


def novelty(index: SparseIndex, rows: SparseMatrix, stored: Sequence[int], number: int) -> float:
    """1 less the highest cosine of a statement's key with the stored ones'; 1 where nothing is stored."""
    nearest = index.recall(_code(rows, number), NEAREST).ids[0].numpy() if stored else np.empty(0, np.int64)
    near = np.array([stored[int(row)] for row in nearest if row >= 0], dtype=np.int64)
    return 1.0 - max(0.0, float(rows.cosines(near, rows.one(number)).max())) if len(near) else 1.0


def _code(rows: SparseMatrix, number: int) -> Code:
    return Code(torch.from_numpy(rows.indices[number : number + 1]), torch.from_numpy(rows.values[number : number + 1].astype(np.int8)))


def _written(decisions: Sequence[Decision]) -> list[int]:
    return [number for number, decision in enumerate(decisions) if decision.action == "insert"]


def _known(decision: Decision, number: int, ids: Mapping[int, int]) -> Decision:
    about = number if decision.action == "insert" else decision.trace_id
    return replace(decision, trace_id=None if about is None else ids[about])


def gate_of(settings: Episodic, calibration: Mapping[str, Any] | None) -> Gate | None:
    """The gate that the settings ask for; `calibration` as `calibration` gives it. None where everything is written."""
    if not settings.use_gate:
        return None
    if settings.gate.policy == "random":
        return RandomGate(settings.gate.write_rate, SEED)
    if calibration is None:
        raise LabError("a gate is calibrated on validation worlds, this suite has none; use episodic.use_gate=false")
    return WriteGate(Calibration(**calibration), settings.gate)


def calibration(memory: Parts, worlds: Iterable[Sequence[Observation]]) -> dict[str, Any]:
    """What the gate of the settings is calibrated to, on the first worlds that hold CALIBRATED_ON statements together, in which everything
    is written. LabError without any."""
    gate, samples = memory.settings.episodic.gate, []
    for observations in worlds:
        samples += samples_of(memory, observations)
        if len(samples) >= CALIBRATED_ON:
            break
    if not samples:
        raise LabError("a gate is calibrated on validation worlds, this suite has none; use episodic.use_gate=false")
    fitted = calibrate(samples, gate.write_rate, gate)
    return asdict(fitted if gate.tau is None else replace(fitted, tau=gate.tau))


def samples_of(memory: Parts, observations: Sequence[Observation]) -> list[GateFeatures]:
    """The gate's terms for a world in which everything is written."""
    none: dict[str, float] = dict.fromkeys(TERMS, 0.0)
    everything = WriteGate(Calibration(none, none, LOWEST), memory.settings.episodic.gate)
    texts = [one.statement.text for one in observations]
    lines = lines_of(memory.lm, texts, memory.settings.decoding)
    decisions = weighed(memory, observations, memory.encoder.keys(texts), lines, everything)
    memory.known.forget()
    return [
        GateFeatures(one.raw["surprise"], one.raw["novelty"], observation.reward, observation.pin)
        for one, observation in zip(decisions, observations, strict=True)
    ]
