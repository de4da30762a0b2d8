"""A trace: what a memory keeps of one told statement. And the record of what was decided about each statement."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Action = Literal["insert", "aggregate", "route", "refuse"]  # route: kept as an episodic trace, until evidence promotes it


@dataclass(frozen=True, slots=True)
class Trace:
    """A told statement as it is stored.

    `world` is the scope in which it can be recalled, `source` the id of the statement: recall is measured against it and never reads it.
    `teller` is who said it, `confidence` how sure that one said to be, from 0 to 1 (None: nothing was said). `salience`, 0 or more, is
    what decay lowers and eviction compares. `provenance` says where it came from and can be deleted by; `context_key` is what the teller
    knew of the occasion. `time` is the order of telling in the world, `uses` counts recalls, `evidence` how often it was told. `id` is
    given by the store, from 1 on, in order of writing; 0 until then. `payload` is what the method that wrote it keeps besides, in a form
    of its own (`codec.py`). `memory` says which of several memories it was read from; no store keeps it.
    """

    world: str
    source: str
    text: str
    teller: str = ""
    confidence: float | None = None
    salience: float = 1.0
    pinned: bool = False
    provenance: str = ""
    context_key: str = ""
    time: int = 0
    uses: int = 0
    evidence: int = 1
    id: int = 0
    payload: Any = None
    memory: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """What a gate decides about: a fact's id, its world, its words, and when it was told."""

    source: str
    world: str
    text: str
    time: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What a gate decided about a statement, and why.

    `S` is the sum of `contributions`, one a term; `raw` holds the terms as they were measured. `trace_id`: the trace that was
    inserted or told again; None for a refused statement, and until it is written. `told`: what else its teller said (plain values), from
    which the store can be taught again. `columns`: numbers of the method's own, by the names that it declares; no store keeps them.
    """

    statement: Statement
    S: float
    contributions: Mapping[str, float]
    raw: Mapping[str, float]
    action: Action
    trace_id: int | None = None
    told: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refused:
    """A statement that was not written; it cannot be recalled. `S` says how far below the gate's threshold it was."""

    statement: Statement
    S: float
