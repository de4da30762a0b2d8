"""Writing: a statement is encoded to a key, the gate scores it, and a statement that passes is stored as a trace.

Surprise is the frozen model's mean loss on a statement, in nats per token, right after the beginning that all prompts share. Novelty is 1
minus the highest cosine with the keys stored before it in its world. A statement with the same words as a stored one is evidence for it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch

from hippo_core.errors import LabError
from hippo_core.kernels.sparse_recall.index import SparseIndex
from hippo_core.methods.base import Observation
from hippo_core.methods.episodic.components import Components
from hippo_core.methods.episodic.gate import Calibration, Gate, GateFeatures, RandomGate, WriteGate, calibrate, salience_of
from hippo_core.methods.episodic.settings import EpisodicSection
from hippo_core.models.prompt import lines_of
from hippo_core.retrieval.channels import code_of, rows_of
from hippo_core.retrieval.lexicon import words
from hippo_core.retrieval.payload import Payload
from hippo_core.retrieval.sparse_key import SparseKey
from hippo_core.retrieval.text_encoder import payloads
from hippo_core.store import TraceStore
from hippo_core.store.trace import Decision, Statement

CALIBRATED_ON = 512  # the least statements of validation worlds, taken in whole worlds
SEED = 1337  # of the control that writes at random
NO_WORLDS = "a gate is calibrated on validation worlds, this suite has none; use episodic.use_gate=false"
NEAREST = 8  # traces with the most shared units; the nearest of them by cosine counts


class WrittenWorld:
    """What a gate needs to know of the traces of a world: an index of their keys, and their words."""

    def __init__(self, expansion: int) -> None:
        self._index, self._keys, self._numbers = SparseIndex(expansion, torch.int16), list[SparseKey](), dict[tuple[str, ...], int]()

    def add(self, number: int, text: str, keys: Sequence[SparseKey]) -> None:
        """Add the trace with this id, which has been written."""
        self._numbers[tuple(words(text) or [text])] = number
        self._index.add(code_of(rows_of(keys)))
        self._keys += keys

    def duplicate_of(self, text: str) -> int | None:
        """The id of the trace with the same words, or None."""
        return self._numbers.get(tuple(words(text) or [text]))

    def novelty(self, keys: Sequence[SparseKey]) -> float:
        """1 less the highest cosine of a key with the written ones', the mean over the keys of a statement's sentences; 1 where nothing is
        written."""
        return math.fsum(map(self._novelty, keys)) / len(keys)

    def _novelty(self, key: SparseKey) -> float:
        nearest = self._index.recall(code_of(rows_of([key])), NEAREST).ids[0].tolist() if self._keys else []
        near = rows_of([self._keys[row] for row in nearest if row >= 0])
        every = np.arange(len(near.indices))
        return 1.0 - max(0.0, float(near.cosines(every, rows_of([key])).max())) if len(every) else 1.0


class TraceWriter:
    """Write statements to a store one by one. A world is read from the store when it is first needed, and again if something else has
    changed the store since.

    Args:
        gate: decides about each statement. None writes every statement, scores none and merges no duplicates.
        protects_pins: whether traces of pinned statements are evicted last.
    """

    def __init__(self, memory: Components, store: TraceStore, gate: Gate | None, protects_pins: bool) -> None:
        self.memory, self.store, self.gate, self.protects_pins = memory, store, gate, protects_pins
        self._worlds: dict[str, WrittenWorld] = {}
        self._encoded: dict[Statement, tuple[Payload, float]] = {}
        self._seen = store.changes

    def prepare(self, observations: Sequence[Observation]) -> None:
        """Encode the statements that are written next in one batch, which is faster than one by one."""
        statements = [observation.statement for observation in observations]
        self._encoded |= dict(zip(statements, encoded(self.memory, statements, reads=self.gate is not None), strict=True))

    def write(self, observation: Observation) -> Decision:
        """Write one statement to the store, in one transaction. Returns the decision about it."""
        statement = observation.statement
        if statement not in self._encoded:
            self.prepare([observation])
        payload, surprise = self._encoded.pop(statement)
        decision = Decision(statement, 0.0, {}, {}, "insert")
        if self.gate:
            world = self._world(statement.world)
            terms = GateFeatures(surprise, world.novelty(payload.keys), observation.reward, observation.pin)
            decision = self.gate.decide(statement, terms, world.duplicate_of(statement.text))
        with self.store.together():
            decision = replace(decision, told=observation.told)
            if decision.action == "insert":
                pinned, salience = observation.pin and self.protects_pins, salience_of(decision.S)
                trace = observation.trace(payload=payload, salience=salience, pinned=pinned)
                decision = replace(decision, trace_id=self.store.append([trace])[0])
            elif decision.action == "aggregate" and decision.trace_id is not None:
                self.store.aggregate(decision.trace_id)
            self.store.log([decision])
        if self.gate and decision.action == "insert" and decision.trace_id is not None:
            self.memory.passage_kv.keep([payload.token_ids])  # the gate has run the line: recall need not run it again
            written = self._worlds[statement.world]  # as it was before, for only this write has changed it
            written.add(decision.trace_id, statement.text, payload.keys)
        self._seen = self.store.changes
        return decision

    def _world(self, name: str) -> WrittenWorld:
        if self.store.changes != self._seen:
            self._worlds, self._seen = {}, self.store.changes
        if name not in self._worlds:
            self._worlds[name] = WrittenWorld(self.memory.encoder.expansion)
            for trace in self.store.traces(name):
                self._worlds[name].add(trace.id, trace.text, trace.payload.keys)
        return self._worlds[name]


def encoded(memory: Components, statements: Sequence[Statement], reads: bool) -> list[tuple[Payload, float]]:
    """The payload of each statement, encoded in one batch, and where the model `reads` them their surprise in nats."""
    texts = [statement.text for statement in statements]
    lines = lines_of(memory.lm, texts, memory.settings.decoding)
    surprises = [math.nan] * len(texts)
    if reads:  # the mean loss of a line's tokens without the last one, which ends the line
        surprises = [math.fsum(nats[:-1]) / max(1, len(nats) - 1) for nats in memory.passage_kv.read(lines)]
    return list(zip(payloads(memory.encoder, texts, lines), surprises, strict=True))


def gate_of(settings: EpisodicSection, calibration: Mapping[str, Any] | None) -> Gate | None:
    """The gate that the settings ask for, or None if everything is written. LabError where a salience gate has no calibration."""
    if not settings.use_gate:
        return None
    if settings.gate.policy == "random":
        return RandomGate(settings.gate.write_rate, SEED)
    if calibration is None:
        raise LabError(NO_WORLDS)
    return WriteGate(Calibration(**calibration), settings.gate)


def calibration(memory: Components, worlds: Iterable[Sequence[Observation]]) -> dict[str, Any]:
    """Calibrate the gate of the settings on the first worlds that together hold at least CALIBRATED_ON statements, all of which are
    written. Returns a `Calibration` as plain values; a `tau` of the settings replaces the fitted one. LabError where there are no
    statements."""
    gate, samples = memory.settings.episodic.gate, []
    for observations in worlds:
        samples += samples_of(memory, observations)
        if len(samples) >= CALIBRATED_ON:
            break
    if not samples:
        raise LabError(NO_WORLDS)
    fitted = calibrate(samples, gate.write_rate, gate)
    return asdict(fitted if gate.tau is None else replace(fitted, tau=gate.tau))


def samples_of(memory: Components, observations: Sequence[Observation]) -> list[GateFeatures]:
    """The gate's terms for each statement of a world in which every statement is written, except repetitions in the same words."""
    world, samples = WrittenWorld(memory.encoder.expansion), []
    made = encoded(memory, [observation.statement for observation in observations], reads=True)
    for number, (observation, (payload, surprise)) in enumerate(zip(observations, made, strict=True)):
        samples.append(GateFeatures(surprise, world.novelty(payload.keys), observation.reward, observation.pin))
        if world.duplicate_of(observation.statement.text) is None:
            world.add(number, observation.statement.text, payload.keys)
    memory.passage_kv.forget()
    return samples
