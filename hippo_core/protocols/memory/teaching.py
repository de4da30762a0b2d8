"""Teach: every fact of the worlds is told, in order, to a new store; one row a told fact says what the gate made of it.

The gate's terms are standardised, and its threshold is set, on validation worlds of the same suite and size, in which everything is
written: it is told what a teller knows and never which facts are asked for later.
"""

import json
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd

from hippo_core.files import LabError
from hippo_core.memory.episodic import Episodic
from hippo_core.memory.gate import LOWEST, TERMS, Calibration, Gate, RandomGate, Told, Weights, WriteGate, calibrate
from hippo_core.memory.settings import MemoryPreset
from hippo_core.memory.store import TraceStore
from hippo_core.memory.trace import Decision, Statement
from hippo_core.memory.writing import Teaching, weighed, write
from hippo_core.models.language_model import LanguageModel
from hippo_core.models.prompt import lines_of, too_long
from hippo_core.protocols.memory.altering import altered
from hippo_core.suites.types import Fact, Suite, World

CALIBRATED_ON = 512  # facts of validation worlds, in whole worlds, at least
SEED = 1337  # of the control that writes by chance
COLUMNS = [
    *("fact_id", "world", "time", "S", "surprise", "novelty", "reward", "pin", "contributions"),
    *("action", "trace_id", "evicted", "ms", "asked"),
]


def teach(
    lm: LanguageModel,
    suite: Suite,
    worlds: Sequence[World],
    validation_worlds: Sequence[World],
    preset: MemoryPreset,
    store_dir: Path,
    session_id: str,
) -> pd.DataFrame:
    """Write the store of these worlds below `store_dir`; the row table (see COLUMNS; `asked` is the hidden label that judges a gate).

    `ms` is a fact's share of what its world took. What a gate was calibrated to is noted in the store as `calibration`. Facts that no
    prompt can hold are refused. LabError where a gate needs validation worlds and has none.
    """
    memory, told_worlds = Episodic(lm, preset), altered(worlds) if preset.memory.runtime.alter_answers else worlds
    if writes(preset):
        memory.warm_up()
    budget = suite.answer_budget
    gate = gate_for(memory, [parted(memory, world, budget)[0] for world in validation_worlds]) if preset.episodic.use_gate else None
    rows: list[dict[str, object]] = []
    with TraceStore.create(store_dir, session_id, memory.identity(), lm.spec.context_limit) as store:
        if isinstance(gate, WriteGate):
            store.note("calibration", asdict(gate.calibration))
        for world in told_worlds:
            short, long = parted(memory, world, budget)
            rows += told(memory, store, short, gate) if writes(preset) else untold(short)
            rows += untold(long)
    return pd.DataFrame(rows, columns=COLUMNS)


def parted(memory: Episodic, world: World, max_new_tokens: int) -> tuple[World, World]:
    """The world with the facts that a prompt can hold, and the world with those that are too long for any."""
    long = set(too_long(memory.lm, [fact.text for fact in world.facts], memory.preset.decoding, max_new_tokens))
    parts = ([fact for index, fact in enumerate(world.facts) if (index in long) == is_long] for is_long in (False, True))
    short, rest = (replace(world, facts=tuple(facts)) for facts in parts)
    return short, rest


def writes(preset: MemoryPreset) -> bool:
    """Whether anything is written at all."""
    return preset.memory.runtime.enable_writes and preset.traces == "episodic"


def told(memory: Episodic, store: TraceStore, world: World, gate: Gate | None) -> Iterator[dict[str, object]]:
    """Tell one world, then let go of what exceeds the budget."""
    settings = memory.preset.episodic
    protects = settings.gate.policy == "salience" and settings.gate.delta > 0
    begin = time.perf_counter()
    decisions = write(memory, store, [teaching(fact) for fact in world.facts], gate, protects)
    if settings.store.budget is not None:
        store.evict({world.id: math.ceil(settings.store.budget * len(world.facts))})
    each = (time.perf_counter() - begin) * 1e3 / max(1, len(world.facts))
    memory.forget()
    left = {trace.id for trace in store.traces(world.id)}
    for fact, decision in zip(world.facts, decisions, strict=True):
        evicted = decision.trace_id is not None and decision.trace_id not in left
        yield row(fact, decision) | {"evicted": evicted, "ms": each}


def untold(world: World) -> Iterator[dict[str, object]]:
    """One world that is not written."""
    for fact in world.facts:
        yield row(fact, Decision(teaching(fact).statement, math.nan, {}, {}, "refuse")) | {"evicted": False, "ms": math.nan}


def row(fact: Fact, decision: Decision) -> dict[str, object]:
    """What is kept of one decision; a term that was not weighed is not a number."""
    raw = {name: decision.raw.get(name, math.nan) for name in ("surprise", "novelty")}
    return {
        "fact_id": fact.id,
        "world": fact.world,
        "time": fact.time,
        "S": decision.S if decision.contributions else math.nan,
        **raw,
        "reward": float(fact.reward),
        "pin": float(fact.pin),
        "contributions": json.dumps({name: round(value, 6) for name, value in decision.contributions.items()}),
        "action": decision.action,
        "trace_id": math.nan if decision.trace_id is None else float(decision.trace_id),
        "asked": float(fact.asked),
    }


def teaching(fact: Fact) -> Teaching:
    """A fact as its teller knows it; whether it is asked for later stays behind."""
    statement = Statement(fact.id, fact.world, fact.text, fact.time)
    return Teaching(statement, fact.slots, fact.reward, fact.pin, fact.provenance, fact.context_key)


def gate_for(memory: Episodic, validation_worlds: Iterable[World]) -> Gate:
    """The gate that the preset asks for, calibrated."""
    told = memory.preset.episodic.gate
    if told.policy == "random":
        return RandomGate(told.write_rate, SEED)
    weights = Weights(told.alpha, told.beta, told.gamma, told.delta)
    samples = [sample for world in enough(validation_worlds) for sample in samples_of(memory, world)]
    if not samples:
        raise LabError("a gate is calibrated on validation worlds, this suite has none; use episodic.use_gate=false")
    found = calibrate(samples, told.write_rate, weights)
    return WriteGate(found if told.tau is None else replace(found, tau=told.tau), weights)


def enough(worlds: Iterable[World]) -> Iterator[World]:
    """The first worlds that hold CALIBRATED_ON facts together."""
    facts = 0
    for world in worlds:
        if facts >= CALIBRATED_ON:
            return
        facts += len(world.facts)
        yield world


def samples_of(memory: Episodic, world: World) -> list[Told]:
    """The gate's terms for a world in which everything is written."""
    facts = [teaching(fact) for fact in world.facts]
    everything = WriteGate(Calibration(dict.fromkeys(TERMS, 0.0), dict.fromkeys(TERMS, 0.0), LOWEST))
    texts = [one.statement.text for one in facts]
    found = weighed(memory, facts, memory.coder.keys(texts), lines_of(memory.lm, texts, memory.preset.decoding), everything)
    memory.forget()
    return [Told(one.raw["surprise"], one.raw["novelty"], fact.reward, fact.pin) for one, fact in zip(found, facts, strict=True)]
